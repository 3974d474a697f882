"""The cooperative cancel signal: one flag, one reason, one event, shared by the loop, the model and the tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import anyio


class Signal:
    """Says that a run should stop, and why. It is set once and never cleared; each run has a fresh one.

    Belongs to the event loop's thread. Reading `cancelled` and `reason` is safe from any thread.
    """

    __slots__ = ("_event", "_reason", "_scopes")

    def __init__(self) -> None:
        self._reason: str | None = None
        self._event: anyio.Event | None = None
        self._scopes: list[anyio.CancelScope] = []

    @property
    def cancelled(self) -> bool:
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """The reason given by whoever cancelled first, or None."""
        return self._reason

    def cancel(self, reason: str = "cancelled") -> bool:
        """Set the signal and cancel the scopes that follow it. True the first time, False afterwards."""
        if self._reason is not None:
            return False
        self._reason = reason
        if self._event is not None:
            self._event.set()
        for scope in self._scopes:
            scope.cancel()
        return True

    async def wait(self) -> None:
        """Return once the signal is set; at once if it is."""
        if self._reason is None:
            if self._event is None:
                self._event = anyio.Event()
            await self._event.wait()

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """A cancel scope that is cancelled when the signal is set, or at once if it is."""
        with anyio.CancelScope() as scope:
            self._scopes.append(scope)
            if self._reason is not None:
                scope.cancel()
            try:
                yield scope
            finally:
                self._scopes.remove(scope)

    def __repr__(self) -> str:
        return f"<Signal cancelled: {self._reason}>" if self.cancelled else "<Signal>"
