"""EventStream: events that can be read again and again, and one result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from typing import Any, Generic, TypeVar

import anyio

Event = TypeVar("Event")
Result = TypeVar("Result")


class EventStream(Generic[Event, Result]):
    """Events in order, for any number of readers, and one result for any number of waiters.

    The producer never waits: events go into a list, and readers who wait are woken. A reader who comes late, or
    again, starts at the first event. All events are kept as long as the stream is.
    """

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._result: Result | None = None
        self._closed = False
        self._changed: anyio.Event | None = None  # what readers wait for
        self._ended: anyio.Event | None = None  # what those wait for who want the result alone

    @property
    def closed(self) -> bool:
        """Whether the result is there and no event will follow."""
        return self._closed

    def publish(self, event: Event) -> None:
        """Add an event. Raises RuntimeError when the stream is closed."""
        if self._closed:
            raise RuntimeError("this stream is closed; nothing can follow its result")
        self._events.append(event)
        if self._changed is not None:
            self._wake_readers()

    def close(self, result: Result) -> None:
        """Set the result and end every reader after the last event. Raises RuntimeError the second time."""
        if self._closed:
            raise RuntimeError("this stream is closed; it has its one result")
        self._closed = True
        self._result = result
        if self._changed is not None:
            self._wake_readers()
        if self._ended is not None:
            self._ended.set()

    async def result(self) -> Result:
        """The result, once it is there. Cancelling one waiter touches neither the producer nor other waiters."""
        if not self._closed:
            if self._ended is None:
                self._ended = anyio.Event()
            await self._ended.wait()
        return self._result  # type: ignore[return-value]

    def __await__(self) -> Generator[Any, None, Result]:
        return self.result().__await__()

    def __aiter__(self) -> AsyncIterator[Event]:
        return _Reader(self)

    async def _change(self) -> None:
        """Wait until something is published. Whoever wakes the readers takes the event away, so none fires twice."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()

    def _wake_readers(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()


class _Reader(AsyncIterator[Event]):
    """A place in a stream. An object, not a generator: one that is left early has nothing to clean up."""

    def __init__(self, stream: EventStream[Event, Any]) -> None:
        self._stream = stream
        self._next = 0

    async def __anext__(self) -> Event:
        stream = self._stream
        while self._next == len(stream._events):
            if stream._closed:
                raise StopAsyncIteration
            await stream._change()
        event = stream._events[self._next]
        self._next += 1
        return event
