"""Marks one file again and again, with the next marking's processes started before they are needed."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from pathlib import Path

from course.catalog import Checkpoint
from course.errors import CannotMarkError, CourseError
from course.marking.mark import mark
from course.marking.ready import Ready
from course.marking.table import near
from course.marking.verdict import Verdict
from course.practice.folder import into

READ_AGAIN = (0.02, 0.05, 0.1, 0.2)
"""Seconds to wait for a file that an editor has taken away for a moment, before each new try to read it."""


class Marker(threading.Thread):
    """Gives `notify` a Verdict, or the error that prevented one, for the last time it was asked to mark.

    Asked again during a marking, it gives that one up: what it would say is of a file that is there no more. Every
    marking has fresh processes, so the verdict is the one that `course checkpoint` gives. `notify` is called in this
    thread.
    """

    def __init__(self, checkpoint: Checkpoint, agent_py: Path, notify: Callable[[Verdict | Exception], object]) -> None:
        super().__init__(name="marker", daemon=True)
        self._checkpoint = checkpoint
        self._agent_py = agent_py
        self._notify = notify
        self._changed = threading.Condition()
        self._asked = 0
        self._answered = 0
        self._in_use: Ready | None = None
        self._is_over = False

    def mark(self) -> None:
        """Mark the file as it is now."""
        with self._changed:
            self._asked += 1
            self._give_up()

    def stop(self) -> None:
        """End the thread, and wait until nothing of a marking is left."""
        with self._changed:
            self._is_over = True
            self._give_up()
        self.join()

    def _give_up(self) -> None:
        if self._in_use is not None:
            self._in_use.give_up()
        self._changed.notify_all()

    def run(self) -> None:
        while not self._is_over:
            try:
                with Ready(self._checkpoint, "quick") as ready:
                    self._serve(ready)
            except Exception as error:
                self._notify(error)
                return

    def _serve(self, ready: Ready) -> None:
        """Wait until a marking is asked for, and answer."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_over or self._asked > self._answered)
            self._answered = self._asked
            self._in_use = ready
        if self._is_over:
            return
        answer = self._mark(ready)
        with self._changed:
            self._in_use = None
            is_current = self._asked == self._answered and not self._is_over
        if is_current:
            self._notify(answer)
        importlib.import_module("course.marking.nbval_comparison")  # now that nobody waits: some later marking needs it

    def _mark(self, ready: Ready) -> Verdict | CourseError:
        try:
            return mark(self._checkpoint, self._agent_py, source=self._read(), ready=ready)
        except CourseError as error:
            return error

    def _read(self) -> bytes:
        for seconds in READ_AGAIN:
            try:
                return self._agent_py.read_bytes()
            except FileNotFoundError:
                time.sleep(seconds)
            except OSError as error:
                raise CannotMarkError(f"{self._agent_py} cannot be read: {error.strerror}.") from error
        raise CourseError(
            f"There is no {near(str(self._agent_py))}. Save it there, or lay the starter:\n"
            f"  {into(self._checkpoint, self._agent_py.parent)}"
        )
