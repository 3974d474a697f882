"""What happened to an Agent, told in moments: everything between which nothing else could have come is one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from course.agent.events import (
    AgentEvent,
    AssistantMessageEvent,
    InputKind,
    MessageAcceptedEvent,
    QueuedMessage,
    RunEndEvent,
    RunStartEvent,
    TextDeltaEvent,
    ToolCallEvent,
    ToolEndEvent,
    ToolProgressEvent,
    ToolSkippedEvent,
    ToolStartEvent,
    TurnEndEvent,
)


class Asked(msgspec.Struct, frozen=True):
    """Something you asked of the agent that no event tells of.

    `text` is the message for "steering", "follow_up" and "withdrawn" (taken back), and the reason for "cancel".
    """

    kind: Literal["steering", "follow_up", "withdrawn", "cancel"]
    text: str


Record = AgentEvent | Asked


class Moment(msgspec.Struct, frozen=True):
    """One moment: who acts ("you", "agent", "model" or a tool's name), in words, and the records it is made of."""

    actor: str
    words: str
    records: tuple[Record, ...]


def tell(records: Iterable[Record]) -> tuple[Moment, ...]:
    """The moments of a recording, in order. Pure: the same records give the same moments."""
    names: dict[tuple[str, str], str] = {}  # a tool's end tells its name, but its progress only the call's id
    turn = 0
    moments = []
    for group in _grouped(records):
        for record in group:
            if isinstance(record, RunStartEvent):
                turn = 0
            elif isinstance(record, TurnEndEvent):
                turn += 1
            elif isinstance(record, ToolStartEvent):
                names[record.run_id, record.call.id] = record.call.name
        words = "; ".join(_phrases(group, turn))
        moments.append(Moment(_actor(group[0], names), words, group))
    return tuple(moments)


def quoted(text: str, limit: int) -> str:
    """The text in quotes, on one line, printable, and cut to `limit` characters between them."""
    text = "".join([char if char.isprintable() else " " for char in text])
    return f'"{text}"' if len(text) <= limit else f'"{text[: limit - 1].rstrip()}…"'


def call_text(kind: InputKind, text: str, limit: int) -> str:
    """How a message was said: `steer("…")`."""
    return f"{_METHODS[kind]}({quoted(text, limit)})"


_METHODS: dict[InputKind, str] = {"prompt": "prompt", "steering": "steer", "follow_up": "follow_up"}

# What may stand in one moment with what came right before it: the agent publishes these without a pause between.
_JOINS: dict[type[Record], tuple[type[Record], ...]] = {
    RunStartEvent: (MessageAcceptedEvent,),
    MessageAcceptedEvent: (MessageAcceptedEvent,),
    TextDeltaEvent: (TextDeltaEvent, ToolCallEvent, AssistantMessageEvent),
    ToolCallEvent: (TextDeltaEvent, ToolCallEvent, AssistantMessageEvent),
    AssistantMessageEvent: (ToolStartEvent, ToolSkippedEvent, TurnEndEvent),
    ToolStartEvent: (ToolStartEvent,),
    ToolEndEvent: (ToolSkippedEvent,),
    ToolSkippedEvent: (ToolSkippedEvent, TurnEndEvent),
    TurnEndEvent: (MessageAcceptedEvent, RunEndEvent),
}


def _grouped(records: Iterable[Record]) -> Iterator[tuple[Record, ...]]:
    group: list[Record] = []
    for record in records:
        if group and not _joins(group[-1], record):
            yield tuple(group)
            group = []
        group.append(record)
    if group:
        yield tuple(group)


def _joins(before: Record, after: Record) -> bool:
    if isinstance(before, Asked) or isinstance(after, Asked):
        return False
    return before.run_id == after.run_id and isinstance(after, _JOINS.get(type(before), ()))


def _actor(record: Record, names: dict[tuple[str, str], str]) -> str:
    match record:
        case Asked() | RunStartEvent():
            return "you"
        case TextDeltaEvent() | ToolCallEvent() | AssistantMessageEvent():
            return "model"
        case ToolStartEvent(call=call):
            return call.name
        case ToolEndEvent(result=result) | ToolSkippedEvent(result=result):
            return result.name
        case ToolProgressEvent(run_id=run_id, call_id=call_id):
            return names.get((run_id, call_id), call_id)
    return "agent"


def _phrases(group: tuple[Record, ...], turn: int) -> Iterator[str]:
    """What to say of each record of a moment; `turn` counts the turns that have ended by then."""
    kinds = {type(record) for record in group}
    written = "".join([record.text for record in group if isinstance(record, TextDeltaEvent)])
    if written and AssistantMessageEvent not in kinds:
        yield f"writes {quoted(written, 40)}, not whole yet"
    if RunStartEvent in kinds and not any(_is_prompt(record) for record in group):
        yield "continue_()"
    for record in sorted(group, key=_is_prompt, reverse=True):  # what was said, then what it started
        yield from _phrase(record, turn)


def _phrase(record: Record, turn: int) -> Iterator[str]:
    match record:
        case Asked(kind="steering" | "follow_up" as kind, text=text):
            yield f"{call_text(kind, text, 40)}, which waits"
        case Asked(kind="cancel", text=reason):
            yield f"cancel({quoted(reason, 40)})"
        case Asked(text=text):
            yield f"takes back {quoted(text, 40)}"
        case RunStartEvent(run_id=run_id):
            yield f"{run_id} starts"
        case MessageAcceptedEvent(kind="prompt", message=message):
            yield call_text("prompt", message.text, 40)
        case MessageAcceptedEvent(kind=kind, message=message):
            yield f"the {kind.replace('_', '-')} {quoted(message.text, 40)} enters"
        case AssistantMessageEvent(message=message) if message.calls:
            yield f"asks for {_listed([call.name for call in message.calls])}"
        case ToolStartEvent(call=call):
            yield f"{call.name} starts"
        case AssistantMessageEvent(message=message):
            yield f"answers {quoted(message.text, 40)}"
        case ToolProgressEvent(text=text):
            yield f"reports {quoted(text, 40)}"
        case ToolEndEvent(result=result):
            yield "ends with an error" if result.is_error else "ends"
        case ToolSkippedEvent(result=result):
            yield f"{result.name} is skipped"
        case TurnEndEvent():
            yield f"turn {turn} ends"
        case RunEndEvent():
            yield from _ending(record)


def _ending(event: RunEndEvent) -> Iterator[str]:
    result = event.result
    why = result.error.text if result.error is not None else result.reason
    yield f"{event.run_id} ends: {result.status}" + (f", {quoted(why, 40)}" if why else "")
    for each in result.dropped:
        yield f"{_name(each)} is dropped"


def _name(queued: QueuedMessage) -> str:
    return f"the {queued.kind.replace('_', '-')} {quoted(queued.message.text, 40)}"


def _is_prompt(record: Record) -> bool:
    return isinstance(record, MessageAcceptedEvent) and record.kind == "prompt"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
