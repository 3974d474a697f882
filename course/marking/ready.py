"""Fresh folders and the processes that will mark in them, started, and waiting to be told what to mark."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from course.catalog import Checkpoint
from course.marking.contained import Contained, Group
from course.marking.notebook import Kernel, role
from course.workspace import workspace


class Ready:
    """Serves one marking. The processes have loaded what they need, and nothing of the learner's.

    Tests and notebook have a folder each: what the learner's code does to one of them is not met in the other.
    Use it as a context manager: leaving the block ends them and removes the folder. On Linux they die with the thread
    that made them, which therefore has to last as long.
    """

    def __init__(self, checkpoint: Checkpoint, kernel: Kernel | None) -> None:
        """Start what runs the focused tests and, unless `kernel` is None, what runs the notebook."""
        self._stack = contextlib.ExitStack()
        self.group = Group()
        with _undisturbed():  # the first time it is asked for, the folder is tried with a file
            name = Path(tempfile.gettempdir(), f"course-{secrets.token_hex(6)}")
        self._remove = weakref.finalize(self, _remove, name)  # before it is there: Ctrl-C may come at any moment
        name.mkdir(mode=0o700)
        with contextlib.ExitStack() as stack:
            self.for_tests, self.for_cells = (name.resolve() / part for part in ("tests", "cells"))
            self.for_tests.mkdir()
            self.for_cells.mkdir()
            with contextlib.suppress(OSError):  # what is wrong with it, the marking tells
                (self.for_tests / checkpoint.test.name).write_bytes(checkpoint.test.read_bytes())
            self.focused = stack.enter_context(self._start("focused_child", self.for_tests))
            self.notebook = stack.enter_context(self._start(role(kernel), self.for_cells)) if kernel else None
            self._stack = stack.pop_all()

    def _start(self, role: str, folder: Path) -> Contained:
        return self.group.add(Contained(role, folder=folder))

    def lay(self, checkpoint: Checkpoint, agent_py: bytes) -> None:
        """Lay the workspace, with the course's files as they are now: they may have changed since the start."""
        (self.for_tests / checkpoint.test.name).unlink(missing_ok=True)
        workspace(checkpoint, agent_py, self.for_tests)
        if self.notebook is not None:
            workspace(checkpoint, agent_py, self.for_cells)

    def __enter__(self) -> Ready:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def give_up(self) -> None:
        """From any thread: a marking that uses this returns at once, and what it says is worth nothing."""
        self.group.give_up()

    def end(self) -> None:
        """End the processes and remove the folder. May be called twice."""
        self._stack.close()
        self._remove()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Have Ctrl-C and its like wait until the block is left."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _remove(folder: Path) -> None:
    """Remove the folder, also where the learner's code has shut a folder in it."""
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            if not path.is_symlink():
                with contextlib.suppress(OSError):
                    path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
