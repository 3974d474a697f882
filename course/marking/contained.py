"""A process that runs a learner's code, held so that it can neither outlive its parent's patience nor flood it.

It has no standard input, a session of its own, a capped output and a pipe for its records. Ending it ends every process
that descends from it: those still below it, those that detached themselves but carry its environment tag, and on Linux
those that a crash has left to us, who then are their parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec

from course.catalog import PACKAGE
from course.marking.child import PR_SET_CHILD_SUBREAPER
from course.marking.steps import END_OF_DUMP, Frame

if TYPE_CHECKING:
    import psutil

OUTPUT_LIMIT = 1 << 20
"""Bytes of standard output and standard error together, 1 MiB; one more and the process is to be ended."""

FLOOD = f"It printed more than {OUTPUT_LIMIT >> 20} MiB, and was ended."

RECORDS_LIMIT = 16 << 20
"""Bytes of records. They carry at most the capped output again, quoted, and tracebacks."""

TAG = "COURSE_CONTAINED"
"""The environment variable by which detached descendants are found."""

_CLEARED = ("PYTHON", "PYTEST", "COVERAGE", "COV_", "IPYTHON", "JUPYTER", "JPY_", "COURSE_")
_BOOT = (
    "import gc, sys; gc.disable(); sys.path.insert(0, {root!r}); "
    "from course.marking.child import main; main({fd}, {role!r})"
)

Event = Literal["silent", "gone", "flooded"]

CLOCKS_MAY_DIFFER = 1.0
"""Seconds: the time at which a process began is told in ticks since the machine started."""

_starting = threading.Lock()
_ours: set[int] = set()
"""The processes that this class has started and not ended. No other child of ours may be taken for a crashed one's."""


class Contained:
    """One such process. Use it as a context manager: leaving the block ends the whole tree and closes the pipes.

    Without a `body` it gets ready, and waits until `ask` is called. On Linux it dies with the thread that started it.
    `prefix` is put before the command line, for a sandbox to stand in front; `environment` is added to the cleaned one.
    """

    def __init__(
        self,
        role: str,
        body: msgspec.Struct | None = None,
        *,
        learner: str = "",
        folder: Path,
        prefix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.token = secrets.token_hex(16)
        self.printed = bytearray()
        self.errors = bytearray()
        self._records = bytearray()
        self._received = 0
        self._tag = secrets.token_hex(16)
        self._stopped = False
        report, write_end = os.pipe()
        boot = _BOOT.format(root=str(PACKAGE.parent), fd=write_end, role=role)
        command = [*prefix, sys.executable, "-P", "-B", "-c", boot]
        try:
            with _starting:
                _adopt_orphans()
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env={**clean_environment(folder), TAG: self._tag, **(environment or {})},
                    pass_fds=[write_end],
                    start_new_session=True,
                )
                _ours.add(self._process.pid)
                self._began = time.time() - CLOCKS_MAY_DIFFER
        except BaseException:
            os.close(report)
            raise
        finally:
            os.close(write_end)
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._open = {"report": report}
        for name, pipe in (("out", self._process.stdout), ("err", self._process.stderr)):
            self._open[name] = os.dup(pipe.fileno())
            pipe.close()
        self._pipes = selectors.DefaultSelector()
        for fd in self._open.values():
            os.set_blocking(fd, False)
            self._pipes.register(fd, selectors.EVENT_READ)
        if body is not None:
            self.ask(body, learner)

    def __enter__(self) -> Contained:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def ask(self, body: msgspec.Struct, learner: str) -> None:
        """Send the request, and close its standard input with that."""
        request = {"token": self.token, "learner": learner, "body": body}
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin:
            self._process.stdin.write(msgspec.json.encode(request, enc_hook=str))

    def receive(self, seconds: float) -> bytes | Event:
        """The next record's line, or what came instead: `seconds` of silence, its end, or too much output.

        What it printed before it wrote the record is in `printed` and `errors` by then, and perhaps more.
        """
        deadline = time.monotonic() + seconds
        while True:
            if self._stopped:
                return "gone"
            gone = self._process.poll() is not None
            self._drain()
            if self._is_flooded():
                return "flooded"
            line, newline, _ = self._records.partition(b"\n")
            if newline:
                del self._records[: len(line) + 1]
                return bytes(line)
            if gone or "report" not in self._open:
                return "gone"
            left = deadline - time.monotonic()
            if left <= 0:
                return "silent"
            self._pipes.select(min(left, 0.05))  # a child that keeps the pipe open hides the end from it

    @property
    def exit_code(self) -> int | None:
        """The exit code once it has ended by itself, minus the signal's number when a signal ended it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(0.2)
        return None if self._stopped else self._process.returncode

    def stack(self) -> tuple[Frame, ...]:
        """Where it is now, the likeliest place first, as far as it answers within half a second."""
        before = len(self.errors)
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + 0.5
        while time.monotonic() < deadline and END_OF_DUMP.encode() not in self.errors[before:]:
            self._pipes.select(0.05)
            self._drain()
        return dumped_frames(self.errors[before:].decode(errors="replace"))

    def give_up(self) -> None:
        """From any thread: whoever listens hears at once that it is gone, and is to end it."""
        self._stopped = True

    def end(self) -> None:
        """End the process and everything that descends from it, and close the pipes. May be called twice."""
        for _ in range(5):  # a child may be starting another while we look
            with _starting:
                family = list(self._family())
                for pid in family:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
                self._process.wait()
                _ours.discard(self._process.pid)
                _bury(family)
            if not family:
                break
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._pipes.close()
        for fd in self._open.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self._open.clear()

    def _family(self) -> Iterator[int]:
        """This process, what is below it, what carries its tag or is below something that does, and the orphans."""
        import psutil

        family = {self._process.pid} if self._process.poll() is None else set()
        for pid in psutil.pids():  # not process_iter(): it remembers processes whose number another one has by now
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                is_orphan = self._is_orphan(process)
                below = is_orphan or process.pid in family or process.ppid() in family
                is_alive = is_orphan or process.status() != psutil.STATUS_ZOMBIE  # a dead orphan is ours to bury
                if is_alive and (below or process.environ().get(TAG) == self._tag):
                    family.add(process.pid)
                    yield process.pid

    def _is_orphan(self, process: psutil.Process) -> bool:
        """Whether a crash has left it to us: our child, younger than this, and in no process group of ours."""
        return (
            process.ppid() == os.getpid()
            and process.pid not in _ours
            and process.create_time() > self._began
            and os.getpgid(process.pid) != os.getpgrp()
        )

    def _drain(self) -> None:
        """Take what lies in the pipes now, up to the limits."""
        for name, into in (("report", self._records), ("out", self.printed), ("err", self.errors)):
            while name in self._open and not self._is_flooded():
                try:
                    got = os.read(self._open[name], 65536)
                except BlockingIOError:
                    break
                if not got:
                    self._pipes.unregister(self._open[name])
                    os.close(self._open.pop(name))
                into += got
                self._received += len(got) if name != "report" else 0

    def _is_flooded(self) -> bool:
        return self._received > OUTPUT_LIMIT or len(self._records) > RECORDS_LIMIT


def _adopt_orphans() -> None:
    """On Linux: be the parent of whatever a child of ours leaves behind, however it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)


def _bury(killed: Sequence[int]) -> None:
    """Take note of the end of those that were our own children: else they would stay zombies as long as we live."""
    for pid in killed:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


class Group:
    """Processes that run side by side and are given up together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._members: list[Contained] = []
        self._is_over = False

    def add(self, contained: Contained) -> Contained:
        """Count `contained` in; it is given up at once when the group has been already."""
        with self._lock:
            self._members.append(contained)
            if self._is_over:
                contained.give_up()
        return contained

    def give_up(self) -> None:
        with self._lock:
            self._is_over = True
            for contained in self._members:
                contained.give_up()


def clean_environment(folder: Path) -> dict[str, str]:
    """Our own environment without what would steer Python, pytest or Jupyter, and with what makes output repeatable."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_CLEARED)}
    return {
        **kept,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUTF8": "1",
        "TMPDIR": str(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "IPYTHONDIR": str(folder / ".ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / ".jupyter"),
        "JUPYTER_RUNTIME_DIR": str(folder / ".jupyter"),
        "NO_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "80",
        "LINES": "24",
    }


def dumped_frames(dump: str) -> tuple[Frame, ...]:
    """The frames that faulthandler, or our list of waiting coroutines, wrote in `dump`."""
    found = re.findall(r'^  File "(.+)", line (\d+) in (.+)$', dump, re.MULTILINE)
    return tuple(Frame(path, int(line), name) for path, line, name in found)
