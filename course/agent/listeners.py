"""Who listens to an Agent, and who awaits what an async listener returns."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from course.agent.events import AgentEvent
from course.agent.tasks import TaskOwner, is_failure

Listener = Callable[[AgentEvent], Awaitable[object] | object]


class SubscriberError(msgspec.Struct, frozen=True):
    """A listener raised: the event it was called with, and the error as text."""

    run_id: str
    sequence: int
    event_type: str
    error: str


class ErrorLog:
    """What listeners raised: the last 256, and a count of all."""

    def __init__(self) -> None:
        self.count = 0
        self._last: deque[SubscriberError] = deque(maxlen=256)

    @property
    def last(self) -> tuple[SubscriberError, ...]:
        """What was recorded, oldest first: a tuple, which does not grow."""
        return tuple(self._last)

    def record(self, event: AgentEvent, error: BaseException) -> None:
        """Add what a listener raised when it was called with this event."""
        try:
            text = repr(error)
        except Exception:  # a broken __repr__ must not hurt the run either
            text = type(error).__name__
        self.count += 1
        self._last.append(SubscriberError(event.run_id, event.sequence, event.type, text))


class Subscription:
    """One registration of a listener, and the worker that awaits what it returns."""

    __slots__ = ("listener", "worker")

    def __init__(self, listener: Listener, owner: TaskOwner, errors: ErrorLog) -> None:
        self.listener = listener
        self.worker = ListenerWorker(owner, errors)


class ListenerWorker:
    """Awaits what one listener returned, one after the other in the order of the events.

    It runs as a task of `owner`, and only while there is something to await. What an awaitable raises is
    recorded in `errors` and goes nowhere else.
    """

    def __init__(self, owner: TaskOwner, errors: ErrorLog) -> None:
        self._owner = owner
        self._errors = errors
        self._waiting: deque[tuple[AgentEvent, Awaitable[Any]]] = deque()
        self._running = False

    def add(self, event: AgentEvent, awaitable: Awaitable[Any]) -> None:
        """Await this after everything that was added before."""
        self._waiting.append((event, awaitable))
        if not self._running:
            self._running = True
            self._owner.start(self._work)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._await(*self._waiting.popleft())
        finally:
            self._running = False
            for _, awaitable in self._waiting:  # cancelled: coroutines that never began are closed, not forgotten
                close = getattr(awaitable, "close", None)
                if close is not None:
                    close()
            self._waiting.clear()

    async def _await(self, event: AgentEvent, awaitable: Awaitable[Any]) -> None:
        try:
            await awaitable
        except BaseException as error:
            if not is_failure(error):
                raise
            self._errors.record(event, error)
