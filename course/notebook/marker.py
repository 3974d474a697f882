"""Marking as the notebook sees it: `course checkpoint` in a process of its own, and what came of it."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from course.catalog import PACKAGE, Checkpoint
from course.marking.verdict import Verdict

COLUMNS = 100

_Ended = tuple[str, str, int]
"""What a command wrote to its standard output and to its standard error, and its exit code."""

_COMMAND = (sys.executable, "-P", "-m", "course", "checkpoint")


class Outcome(msgspec.Struct, frozen=True):
    """What came of one marking: a verdict, or a `problem`, the text that says why there is none.

    `saved` is when the marked file was saved, in seconds since the epoch; None when it was saved again since.
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
        self._running: list[_Command] = []

    async def mark(self) -> Outcome | None:
        """Mark, while the event loop goes on. None when it was stopped. Cancelled, it ends the marking."""
        with self._command() as command:
            ended = await to_thread.run_sync(command.run, abandon_on_cancel=True)
            return None if command.is_stopped else _outcome(*ended)

    def mark_here(self) -> Outcome | None:
        """Mark, and block this thread meanwhile. None when it was stopped. Interrupted, it ends the marking."""
        with self._command() as command:
            ended = command.run()
            return None if command.is_stopped else _outcome(*ended)

    def stop(self) -> None:
        """End every marking under way, whichever thread it is on."""
        for command in tuple(self._running):
            command.stop()

    @contextlib.contextmanager
    def _command(self) -> Iterator[_Command]:
        labs = [part for lab in self.labs for part in ("--lab", lab)]
        line = [*_COMMAND, self.checkpoint.id, "--in", str(self.folder), "--json", *labs]
        command = _Command(line, self.folder)
        self._running.append(command)
        try:
            yield command
        except BaseException:
            command.stop()
            raise
        finally:
            self._running.remove(command)


class _Command:
    """One run of a command line in a session of its own, which another thread can stop."""

    def __init__(self, line: Sequence[str], folder: Path) -> None:
        self._line = line
        self._folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self.is_stopped = False

    def run(self) -> _Ended:
        with self._lock:
            if self.is_stopped:
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
            self.is_stopped = True
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
    return Outcome(verdict, "", saved_at(verdict))


def saved_at(verdict: Verdict) -> float | None:
    """When the file that was marked was saved; None when it holds something else by now, or is gone."""
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
