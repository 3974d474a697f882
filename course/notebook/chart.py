"""What a picture of a timeline holds: what lasts from one moment to another, lane by lane, before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeVar

import msgspec

from course.agent.events import (
    AssistantMessageEvent,
    MessageAcceptedEvent,
    RunEndEvent,
    RunStartEvent,
    TextDeltaEvent,
    ToolEndEvent,
    ToolProgressEvent,
    ToolSkippedEvent,
    ToolStartEvent,
    TurnEndEvent,
)
from course.agent.messages import AssistantMessage
from course.notebook.moments import Asked, Moment, Record, call_text, quoted


class Turn(msgspec.Struct):
    """A turn that is complete; the first of a run is number 1."""

    number: int
    start: int
    end: int


class Run(msgspec.Struct):
    """A run of the agent. `status` is how it ended; without one it is still running."""

    name: str
    start: int
    end: int
    status: str = ""
    turns: list[Turn] = []


class Bar(msgspec.Struct):
    """Something that a model or a tool did from one moment to another.

    `look` is "whole", "broken" (an error, or nothing that was kept), "skipped" or "open" (no end yet).
    """

    lane: str
    start: int
    end: int
    label: str
    look: Literal["whole", "broken", "skipped", "open"] = "open"
    ticks: list[int] = []


class Said(msgspec.Struct):
    """Something you said, and its fate: it "entered" at `end`, was "dropped" or "taken back" there, or "waits"."""

    kind: str
    text: str
    start: int
    end: int
    label: str
    fate: Literal["entered", "dropped", "taken back", "waits"] = "waits"


class Chart:
    """The lanes of a recording: `said` is yours, `runs` the agent's, `bars` the model's and the tools'.

    Places are counted from the moment `begin`. What ended before it is left out, and what began before it is cut.
    """

    def __init__(self, moments: Sequence[Moment], begin: int = 0) -> None:
        self.runs: list[Run] = []
        self.bars: list[Bar] = []
        self.said: list[Said] = []
        self.last = max(len(moments) - 1, 0)
        self._calls: dict[str, Bar] = {}
        self._request: Bar | None = None
        self._turn_start = 0
        for place, moment in enumerate(moments):
            for record in moment.records:
                self._add(place, record)
        unfinished: list[Run | Bar | Said] = [run for run in self.runs if not run.status]
        unfinished += [bar for bar in self.bars if bar.look == "open"]
        unfinished += [said for said in self.said if said.fate == "waits"]
        for each in unfinished:
            each.end = self.last
        self._cut(begin)

    @property
    def lanes(self) -> list[str]:
        """The model, and the tools that were called in the order of their first call."""
        return list(dict.fromkeys(["model", *(bar.lane for bar in self.bars)]))

    def _cut(self, begin: int) -> None:
        self.last -= begin
        self.runs, self.bars, self.said = _rest(self.runs, begin), _rest(self.bars, begin), _rest(self.said, begin)
        for run in self.runs:
            run.turns = _rest(run.turns, begin)
        for bar in self.bars:
            bar.ticks = [tick - begin for tick in bar.ticks if tick >= begin]

    def _add(self, place: int, record: Record) -> None:
        match record:
            case Asked(kind="withdrawn", text=text):
                self._settle_said(place, None, text, "taken back")
            case Asked(kind="cancel", text=reason):
                self.said.append(Said("cancel", reason, place, place, f"cancel({quoted(reason, 18)})", "entered"))
            case Asked(kind="steering" | "follow_up" as kind, text=text):
                self.said.append(Said(kind, text, place, place, call_text(kind, text, 22)))
            case RunStartEvent(run_id=run_id):
                self.runs.append(Run(run_id, place, place))
                self._turn_start = place
                self._ask_model(place)
            case MessageAcceptedEvent(kind="prompt", message=message):
                words = call_text("prompt", message.text, 24)
                self.said.append(Said("prompt", message.text, place, place, words, "entered"))
            case MessageAcceptedEvent(kind=kind, message=message):
                self._settle_said(place, kind, message.text, "entered")
            case TextDeltaEvent():
                if self._request is not None:
                    self._request.label = "writes"
            case AssistantMessageEvent(message=message):
                self._end_request(place, message)
            case ToolStartEvent(call=call):
                self._calls[call.id] = Bar(call.name, place, place, "works")
                self.bars.append(self._calls[call.id])
            case ToolProgressEvent(call_id=call_id) if call_id in self._calls:
                self._calls[call_id].ticks.append(place)
            case ToolEndEvent(result=result) if result.call_id in self._calls:
                bar = self._calls.pop(result.call_id)
                bar.end, bar.look, bar.label = place, "whole", result.text
                if result.is_error:
                    bar.look, bar.label = "broken", "error"
            case ToolSkippedEvent(result=result):
                self.bars.append(Bar(result.name, place, place, "skipped", "skipped"))
            case TurnEndEvent():
                if self.runs:
                    turns = self.runs[-1].turns
                    turns.append(Turn(len(turns) + 1, self._turn_start, place))
                self._turn_start = place
                self._ask_model(place)
            case RunEndEvent(result=result):
                self._end_request(place, None)
                if self.runs:
                    self.runs[-1].end, self.runs[-1].status = place, result.status
                for each in result.dropped:
                    self._settle_said(place, each.kind, each.message.text, "dropped")

    def _ask_model(self, place: int) -> None:
        self._request = Bar("model", place, place, "works")
        self.bars.append(self._request)

    def _end_request(self, place: int, message: AssistantMessage | None) -> None:
        """The request ended with this message, or with nothing that was kept."""
        bar, self._request = self._request, None
        if bar is None:
            return
        bar.end = place
        if message is not None:
            count = len(message.calls)
            bar.look = "whole"
            bar.label = f"{count} call{'s' if count > 1 else ''}" if count else quoted(message.text, 60)
        elif bar.start == place:  # the run ended where the next request would have begun
            self.bars.remove(bar)
        else:
            bar.look = "broken"
            bar.label = "not kept" if bar.label == "writes" else "no answer"

    def _settle_said(
        self, place: int, kind: str | None, text: str, fate: Literal["entered", "dropped", "taken back"]
    ) -> None:
        for said in self.said:
            if said.fate == "waits" and kind in (None, said.kind) and said.text == text:
                said.end, said.fate = place, fate
                return


Lasting = TypeVar("Lasting", Run, Turn, Bar, Said)


def _rest(lasting: list[Lasting], begin: int) -> list[Lasting]:
    """Those that had not ended by `begin`, with their places counted from there."""
    rest = [each for each in lasting if each.end > begin or each.start >= begin]
    for each in rest:
        each.start, each.end = max(each.start - begin, 0), each.end - begin
    return rest
