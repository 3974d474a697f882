"""Events: one vocabulary, frozen, numbered without gaps (what promise 22 needs of the layers below the Agent)."""

from __future__ import annotations

import pytest
from recording import GO

from course.agent import AgentEvent, Emitter, RunEndEvent, RunError, RunResult, TextDeltaEvent, Transcript

VOCABULARY = {
    "run_start": ("messages",),
    "message_accepted": ("kind", "message", "messages"),
    "text_delta": ("text",),
    "tool_call": ("call_id", "name"),
    "tool_start": ("call",),
    "tool_progress": ("call_id", "text"),
    "tool_end": ("result",),
    "tool_skipped": ("result",),
    "assistant_message": ("message",),
    "turn_end": ("messages",),
    "run_end": ("result",),
}
KINDS = {kind.type: kind for kind in AgentEvent.__subclasses__()}


def test_the_vocabulary_is_the_contracts_and_nothing_beside_it() -> None:
    assert set(KINDS) == set(VOCABULARY)


@pytest.mark.parametrize("kind", VOCABULARY)
def test_each_event_says_its_type_its_run_and_its_place_and_cannot_be_changed(kind: str) -> None:
    event = KINDS[kind]("run-7", 3, *VOCABULARY[kind])  # the fields' names stand in for their values
    assert (event.type, event.run_id, event.sequence) == (kind, "run-7", 3)
    assert event.__struct_config__.tag == kind
    assert event.__struct_fields__ == ("run_id", "sequence", *VOCABULARY[kind])
    for field in ("type", *event.__struct_fields__, "note"):
        with pytest.raises(AttributeError):
            setattr(event, field, "x")


@pytest.mark.parametrize("kind", VOCABULARY)
def test_each_event_is_documented_where_it_is_defined(kind: str) -> None:
    assert KINDS[kind].__doc__
    assert KINDS[kind].__doc__ != AgentEvent.__doc__


def test_an_emitter_numbers_from_zero_and_hands_over_before_it_returns() -> None:
    published: list[AgentEvent] = []
    emit = Emitter("run-1", published.append)
    for number, text in enumerate("abc"):
        emit(TextDeltaEvent, text)
        assert published[-1] == TextDeltaEvent("run-1", number, text)


def test_an_event_emitted_while_another_is_handed_over_has_the_next_number() -> None:
    heard: list[AgentEvent] = []

    def publish(event: AgentEvent) -> None:
        heard.append(event)
        if event.sequence < 2:
            emit(TextDeltaEvent, "again")

    emit = Emitter("run-1", publish)
    emit(TextDeltaEvent, "first")
    emit(TextDeltaEvent, "last")
    assert [event.sequence for event in heard] == [0, 1, 2, 3]


def test_a_result_and_its_error_cannot_be_changed() -> None:
    result = RunResult("failed", Transcript([GO]), error=RunError("MODEL_FAILED", "no line"))
    for value, field in ((result, "status"), (result, "messages"), (result.error, "text"), (result, "note")):
        with pytest.raises(AttributeError):
            setattr(value, field, "x")
    assert RunEndEvent("run-1", 0, result).result is result
