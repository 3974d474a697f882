"""A fresh folder and the processes that will mark in it, started, and waiting to be told what to mark."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from types import TracebackType

from course.catalog import Checkpoint
from course.marking.contained import Contained, Group
from course.marking.notebook import Kernel, role
from course.workspace import workspace


class Ready:
    """Serves one marking. The processes have loaded what they need, and nothing of the learner's.

    Use it as a context manager: leaving the block ends them and removes the folder. On Linux they die with the thread
    that made them, which therefore has to last as long.
    """

    def __init__(self, checkpoint: Checkpoint, kernel: Kernel | None) -> None:
        """Start what runs the focused tests and, unless `kernel` is None, what runs the notebook."""
        self._stack = contextlib.ExitStack()
        self.group = Group()
        with contextlib.ExitStack() as stack:
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True))
            self.folder = Path(name).resolve()
            with contextlib.suppress(OSError):  # what is wrong with it, the marking tells
                (self.folder / checkpoint.test.name).write_bytes(checkpoint.test.read_bytes())
            self.focused = stack.enter_context(self._start("focused_child"))
            self.notebook = stack.enter_context(self._start(role(kernel))) if kernel else None
            self._stack = stack.pop_all()

    def _start(self, role: str) -> Contained:
        return self.group.add(Contained(role, folder=self.folder))

    def lay(self, checkpoint: Checkpoint, agent_py: bytes) -> None:
        """Lay the workspace, with the course's files as they are now: they may have changed since the start."""
        (self.folder / checkpoint.test.name).unlink(missing_ok=True)
        workspace(checkpoint, agent_py, self.folder)

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
