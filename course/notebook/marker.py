"""Marking as the notebook sees it: `course checkpoint` in a process of its own, and what came of it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import msgspec
from anyio import to_thread

from course.catalog import PACKAGE, Checkpoint
from course.marking.verdict import Verdict

COLUMNS = 100

SECONDS_TO_INTERRUPT = 0.3
"""How long an interrupt of `%mark` may go unnoticed."""

_Ended = tuple[str, str, int]
"""What a command wrote to its standard output and to its standard error, and its exit code."""

_COMMAND = (sys.executable, "-P", "-m", "course", "checkpoint")


class Outcome(msgspec.Struct, frozen=True):
    """What came of one marking: a verdict, or a `problem`, the text that says why there is none.

    `saved` is when the marked file was saved, in seconds since the epoch; None when it was saved again meanwhile.
    """

    verdict: Verdict | None
    problem: str = ""
    saved: float | None = None


class Marker:
    """Marks the `agent.py` in `folder`, as often as asked; the progress is kept as the command keeps it.

    The command has a process and a session of its own: an interrupt of the kernel does not reach it, and nothing that
    a cell did to this interpreter touches the marking. When the kernel dies, it ends by itself within its limits.
    """

    def __init__(self, checkpoint: Checkpoint, folder: Path, labs: Sequence[str]) -> None:
        self.checkpoint = checkpoint
        self.folder = folder
        self.labs = tuple(labs)

    async def mark(self) -> Outcome:
        """Mark, while the event loop goes on. Cancelled, it ends the marking."""
        command = self._command()
        try:
            return _outcome(*await _awake(command.run))
        except BaseException:
            command.stop()
            raise

    def mark_here(self) -> Outcome:
        """Mark, and block this thread meanwhile. Interrupted, it ends the marking."""
        return _outcome(*self._command().run())

    def _command(self) -> _Command:
        labs = [part for lab in self.labs for part in ("--lab", lab)]
        return _Command([*_COMMAND, self.checkpoint.id, "--in", str(self.folder), "--json", *labs], self.folder)


async def _awake(run: Callable[[], _Ended]) -> _Ended:
    """Run it in a thread, and wake the loop now and then: ipykernel 7.4 sees no interrupt while its loop is idle."""
    ended: list[_Ended] = []

    async def once() -> None:
        ended.append(await to_thread.run_sync(run, abandon_on_cancel=True))
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(once)
        while True:
            await anyio.sleep(SECONDS_TO_INTERRUPT)
    return ended[0]


class _Command:
    """One run of a command line in a session of its own, which another thread can stop."""

    def __init__(self, line: Sequence[str], folder: Path) -> None:
        self._line = line
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_stopped = False

    def run(self) -> _Ended:
        with self._lock:
            if self._is_stopped:
                return "", "", 0
            self._process = process = self._start()
        with process:
            try:
                out, err = process.communicate()
            except BaseException:
                process.terminate()
                process.wait()
                raise
        return out, err, process.returncode

    def stop(self) -> None:
        """End it; whoever runs it then returns."""
        with self._lock:
            self._is_stopped = True
            if self._process is not None:
                self._process.terminate()

    def _start(self) -> subprocess.Popen[str]:
        path = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        return subprocess.Popen(
            self._line,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUTF8": "1"},
            start_new_session=True,
        )


def _outcome(out: str, err: str, exit_code: int) -> Outcome:
    try:
        verdict = msgspec.json.decode(out, type=Verdict)
    except msgspec.DecodeError:
        return Outcome(None, err.strip() or f"The marking ended with exit code {exit_code}.")
    return Outcome(verdict, "", _saved_at(verdict))


def _saved_at(verdict: Verdict) -> float | None:
    path = Path(verdict.agent.path)
    with contextlib.suppress(OSError):
        saved = path.stat().st_mtime
        if hashlib.sha256(path.read_bytes()).hexdigest() == verdict.agent.sha256:
            return saved
    return None


def as_text(checkpoint: Checkpoint, outcome: Outcome) -> str:
    """What `course checkpoint` prints, in 100 columns without colour."""
    if outcome.verdict is None:
        return outcome.problem
    from rich.console import Console

    from course.marking.notebook import count_cells
    from course.marking.table import show

    file = io.StringIO()
    console = Console(
        file=file,
        width=COLUMNS,
        color_system=None,
        markup=False,
        emoji=False,
        highlight=False,
        force_jupyter=False,  # rich would display it, instead of writing to the file
    )
    show(console, outcome.verdict, checkpoint, count_cells(checkpoint), f"course checkpoint {checkpoint.id}")
    return "\n".join(line.rstrip() for line in file.getvalue().rstrip().splitlines())
