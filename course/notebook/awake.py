"""An event loop that does not sleep while a cell runs: ipykernel 7.4 sees no interrupt while its loop is idle."""

from __future__ import annotations

import asyncio
import threading

SECONDS_TO_INTERRUPT = 0.3
"""How long an interrupt of a cell that only waits may go unnoticed."""


class Waker:
    """Wakes the kernel's loop now and then, from a cell's beginning to its end."""

    def __init__(self) -> None:
        self._next: asyncio.TimerHandle | None = None

    def before_cell(self, *_: object) -> None:
        """IPython's `pre_run_cell`. Does nothing without a loop, or on a subshell's: an interrupt is not theirs."""
        self.after_cell()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if threading.current_thread() is threading.main_thread():
            self._wake(loop)

    def after_cell(self, *_: object) -> None:
        """IPython's `post_run_cell`."""
        if self._next is not None and threading.current_thread() is threading.main_thread():
            self._next.cancel()
            self._next = None

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = loop.call_later(SECONDS_TO_INTERRUPT, self._wake, loop)
