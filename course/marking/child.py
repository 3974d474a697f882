"""The first lines of every marking process: shut what the learner's code must not have, then play the given role.

Started by `Contained`; everything here runs before the learner's code does. A role gets ready as far as it can without
its request, and then waits for it: so a process can be started before there is anything to mark.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import io
import os
import resource
import signal
import sys
import traceback
import types
from typing import Any, Literal, NoReturn, TypeVar

import msgspec

from course.marking.steps import (
    END_OF_DUMP,
    Begin,
    Done,
    Fault,
    Finish,
    Frame,
    Outcome,
    Plan,
    Record,
    Stopped,
    encode,
    mark_in_output,
)

T = TypeVar("T")

CPU_SECONDS = 600
MEMORY_BYTES = 8 << 30
"""Backstops against what outlives its parent or eats the machine; the parent's own limits come long before."""

NO_PIPE = 71
"""The exit code of a process that finds its pipe to the parent closed."""

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36


class Request(msgspec.Struct, frozen=True):
    """What a marking process is asked to do. `learner` is the path of the learner's file, `body` the role's own."""

    token: str
    learner: str
    body: msgspec.Raw

    def read(self, kind: type[T]) -> T:
        """The body as `kind`; paths travel as strings."""
        return msgspec.json.decode(self.body, type=kind, dec_hook=lambda path, text: path(text))


class Reporter:
    """Writes records to the parent, each in one write, through a pipe that nothing we start inherits."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._token = ""
        self._count = 0

    def receive(self) -> Request:
        """Wait for the request and shut standard input; from now on everything is told under the request's token."""
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
        self._token = request.token
        _close_stdin()
        dump_on_signal(request.learner, os.dup(2))
        gc.freeze()
        gc.enable()  # it was off from the first line on: imports make much that stays, and nothing to collect
        return request

    @property
    def has_begun(self) -> bool:
        """True once something was told, and the learner's code may have run."""
        return self._count > 0

    def plan(self, steps: tuple[str, ...]) -> None:
        self._write(Plan(*self._next(), steps))

    def begin(self, step: str) -> None:
        self._write(Begin(*self._next(), step))

    def finish(
        self, step: str, outcome: Outcome, fault: Fault | None = None, outputs: tuple[dict[str, Any], ...] = ()
    ) -> None:
        record = Finish(*self._next(), step, outcome, fault, outputs)
        _flush()
        with contextlib.suppress(OSError):
            os.write(1, mark_in_output(record))
        self._write(record)

    def done(self) -> NoReturn:
        """Say that nothing follows, and wait to be ended: whatever the learner left for the exit never runs."""
        self._write(Done(*self._next()))
        self._rest()

    def _rest(self) -> NoReturn:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
        while True:
            signal.pause()

    def stopped(
        self, word: Literal["crashed", "timed_out", "error"], text: str, stack: tuple[Frame, ...] = ()
    ) -> NoReturn:
        """Say why the run ends here, and wait to be ended. `error` is our own fault, never the learner's."""
        if not self._token:  # not asked yet: no record would be believed, and the exit code says enough
            print(text, file=sys.stderr)
            os._exit(1)
        self._write(Stopped(*self._next(), word, text, stack))
        self._rest()

    def _next(self) -> tuple[str, int]:
        number, self._count = self._count, self._count + 1
        return self._token, number

    def _write(self, record: Record) -> None:
        line = encode(record)
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError:
            os._exit(NO_PIPE)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def main(fd: int, role: str) -> None:
    """Play the role: the module of course.marking whose `run` gets ready, receives its request and does it."""
    _tie_to_parent()
    _set_limits()
    reporter = Reporter(fd)
    try:
        importlib.import_module(f"course.marking.{role}").run(reporter)
    except Exception as error:
        if reporter.has_begun:  # since then the learner's code is in here with us
            traceback.print_exc()
            reporter.stopped("crashed", f"It broke the process that it was marked in ({type(error).__name__}).")
        reporter.stopped("error", f"The marking process failed:\n{traceback.format_exc()}")
    except BaseException:  # an exit that the learner's code caused: no atexit function, no waiting for threads
        traceback.print_exc()
        os._exit(1)


def _close_stdin() -> None:
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.stdin = io.TextIOWrapper(io.FileIO(0, closefd=False), encoding="utf-8")


def _set_limits() -> None:
    limits = {resource.RLIMIT_CORE: 0, resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_AS: MEMORY_BYTES}
    for limit, value in limits.items():
        with contextlib.suppress(ValueError, OSError):  # macOS refuses some of them
            resource.setrlimit(limit, (value, value))


def _tie_to_parent() -> None:
    """On Linux: die with the parent, and become the parent of what our children leave behind."""
    if sys.platform != "linux":
        return
    import ctypes

    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def dump_on_signal(learner: str, fd: int) -> None:
    """On SIGUSR1, write to `fd` where every thread is, then where the learner's coroutines wait; on a crash, too."""
    faulthandler.enable(fd, all_threads=True)

    def waiting(signum: int, frame: types.FrameType | None) -> None:
        lines = [f'  File "{learner}", line {line} in <await>\n' for line in waiting_lines(learner)]
        os.write(fd, ("Waiting coroutines:\n" + "".join(lines) + f"{END_OF_DUMP}\n").encode())

    signal.signal(signal.SIGUSR1, waiting)
    faulthandler.register(signal.SIGUSR1, fd, all_threads=True, chain=True)


def waiting_lines(learner: str) -> list[int]:
    """The lines of the learner's file at which suspended coroutines and async generators stand, sorted."""
    frames = [
        getattr(found, "cr_frame", None) or getattr(found, "ag_frame", None)
        for found in gc.get_objects()
        if isinstance(found, types.CoroutineType | types.AsyncGeneratorType)
    ]
    return sorted({frame.f_lineno for frame in frames if frame and frame.f_code.co_filename == learner})
