"""The timeline of an Agent: a recorder that listens to it, and shows what it heard as a picture or as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Protocol

from course.agent.events import (
    AgentEvent,
    MessageAcceptedEvent,
    QueuedMessage,
    RunEndEvent,
    RunStartEvent,
)
from course.agent.listeners import Listener
from course.agent.messages import UserMessage
from course.notebook.moments import Asked, Record, tell
from course.notebook.picture import draw, framed

COLUMNS = 80


class Watched(Protocol):
    """The public parts of an Agent that a timeline looks at."""

    @property
    def queued(self) -> tuple[QueuedMessage, ...]: ...
    @property
    def cancel_reason(self) -> str | None: ...
    def subscribe(self, listener: Listener, /) -> Callable[[], None]: ...


class Timeline:
    """Records an agent from now on, and shows the recording as the last value of a notebook cell.

    Events tell what the agent did, and not when you called `steer()`, `follow_up()`, `clear_queues()` or
    `cancel()`. So at every event the recorder also looks at what waits and whether a cancel was accepted. A call
    is placed between the event before which and the event after which it must have come; make the Timeline right
    after the agent, so that its look comes before other listeners act on the event.

    `records` is what was heard, oldest first; a slice of it can be drawn with `picture.draw(tell(records))`.
    """

    def __init__(self, agent: Watched) -> None:
        self.records: list[Record] = []
        self._agent = agent
        self._waiting: list[QueuedMessage] = [*agent.queued]
        self._cancelled = agent.cancel_reason is not None
        self._run_start = 0  # where the active run begins in `records`
        self._unsubscribe = agent.subscribe(self._hear)

    def close(self) -> None:
        """Record nothing more."""
        self._unsubscribe()

    def look(self) -> None:
        """Note what was queued, taken back or cancelled since the last event, without waiting for the next one."""
        self._note_queued()
        self._note_withdrawn(())
        self._note_cancel(self._agent.cancel_reason)

    @property
    def svg(self) -> str:
        """The picture as an SVG document. The same recording gives the same text."""
        return draw(tell(self.records))

    @property
    def text(self) -> str:
        """One line a moment, at most 80 columns wide."""
        return as_text(self.records)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/html": framed(tell(self.records)), "text/plain": self.text}

    def _hear(self, event: AgentEvent) -> None:
        self._note_queued()
        match event:
            case RunStartEvent():
                self._note_withdrawn(self._entering(event))
                self._run_start = len(self.records)
                self._cancelled = False
            case MessageAcceptedEvent():
                self._note_entered(event)
            case RunEndEvent(result=result):
                self._note_dropped(result.dropped)
                self._note_cancel(result.reason)  # whoever cancels just before the end is not seen earlier
            case _:
                self._note_withdrawn(())
                self._note_cancel(self._agent.cancel_reason)
        self.records.append(event)

    def _note_queued(self) -> None:
        known = list(self._waiting)
        for each in self._agent.queued:
            if each in known:
                known.remove(each)
            else:
                self._waiting.append(each)
                self._ask(each)

    def _note_entered(self, event: MessageAcceptedEvent) -> None:
        """A message entered. One that was never seen waiting was queued since the last event, or while idle."""
        queued = QueuedMessage(event.kind, event.message)
        if event.kind == "prompt":
            return
        if queued in self._waiting:
            self._waiting.remove(queued)
            return
        is_input = all(isinstance(record, RunStartEvent | MessageAcceptedEvent) for record in self._this_run())
        place = self._run_start if is_input else len(self.records)
        self._ask(queued, place)
        if is_input:
            self._run_start += 1

    def _note_withdrawn(self, gone: Sequence[QueuedMessage]) -> None:
        """What waited and waits no more was taken back, unless it is one of these."""
        withdrawn = list(self._waiting)
        for each in (*self._agent.queued, *gone):
            if each in withdrawn:
                withdrawn.remove(each)
        for each in withdrawn:
            self.records.append(Asked("withdrawn", each.message.text))
        self._forget(withdrawn)

    def _note_dropped(self, dropped: Sequence[QueuedMessage]) -> None:
        """These end with the run. Those that were never seen waiting were queued since the last event."""
        self._note_withdrawn(dropped)
        known = list(self._waiting)
        for each in dropped:
            if each in known:
                known.remove(each)
            else:
                self._ask(each)
        self._forget(dropped)

    def _entering(self, event: RunStartEvent) -> list[QueuedMessage]:
        """What waited and is part of the run's input; it is told as accepted right after."""
        said = list(takewhile(lambda message: isinstance(message, UserMessage), reversed(event.messages)))
        return [each for each in self._waiting if each.message in said]

    def _forget(self, gone: Sequence[QueuedMessage]) -> None:
        for each in gone:
            if each in self._waiting:
                self._waiting.remove(each)

    def _note_cancel(self, reason: str | None) -> None:
        if reason is not None and not self._cancelled:
            self._cancelled = True
            self.records.append(Asked("cancel", reason))

    def _ask(self, queued: QueuedMessage, place: int | None = None) -> None:
        kind = "steering" if queued.kind == "steering" else "follow_up"
        self.records.insert(len(self.records) if place is None else place, Asked(kind, queued.message.text))

    def _this_run(self) -> list[Record]:
        return self.records[self._run_start :]


def as_text(records: list[Record]) -> str:
    """The recording as text: one moment a line, wrapped at 80 columns."""
    moments = tell(records)
    if not moments:
        return "Nothing has happened yet."
    actors = min(max(len(moment.actor) for moment in moments), 20)
    lines = []
    for number, moment in enumerate(moments):
        head = f"{f't{number}':<4}{moment.actor[:actors]:<{actors}}  "
        wrapped = textwrap.wrap(moment.words, max(COLUMNS - len(head), 20)) or [""]
        lines += [head + wrapped[0], *(" " * len(head) + rest for rest in wrapped[1:])]
    return "\n".join(lines)
