"""The scripted model, and the helpers that write its script."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Any

import anyio.lowlevel
import pytest
from recording import GO

from course.agent import (
    Chunk,
    Done,
    MessageError,
    ModelRequest,
    ScriptedModel,
    ScriptError,
    Signal,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    ToolSpec,
    Transcript,
    assemble_response,
    call,
    say,
)

pytestmark = pytest.mark.anyio


def request(number: int = 1) -> ModelRequest:
    return ModelRequest(f"request-{number}", "", Transcript([GO]), ())


async def answer(model: ScriptedModel, number: int = 1) -> list[Chunk]:
    return [chunk async for chunk in model.stream(request(number), signal=Signal())]


def test_say_is_text_and_done() -> None:
    assert say("hi") == [TextDelta("hi"), Done("stop")]
    assert assemble_response(say("hi")).text == "hi"


def test_call_is_a_whole_call_and_done() -> None:
    chunks = call("c1", "add", a=1, name="x", call_id=[None, {"b": 2.5}])
    assert [type(chunk) for chunk in chunks] == [ToolCallStart, ToolCallDelta, Done]
    message = assemble_response(chunks)
    assert message.calls == (ToolCall("c1", "add", {"a": 1, "name": "x", "call_id": [None, {"b": 2.5}]}),)
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("value", [math.nan, {1}, object(), 2**64])
def test_call_refuses_arguments_that_are_not_json_rather_than_change_them(value: object) -> None:
    with pytest.raises(MessageError, match=r"^\$\.a"):
        call("c1", "add", a=value)


async def test_entries_are_played_one_a_request_and_every_request_is_kept() -> None:
    model = ScriptedModel([say("one"), say("two")])
    assert [await answer(model, 1), await answer(model, 2)] == [say("one"), say("two")]
    assert model.requests == [request(1), request(2)]


async def test_running_past_the_end_is_an_error_that_says_so() -> None:
    model = ScriptedModel([say("one")])
    await answer(model)
    with pytest.raises(ScriptError, match="holds 1 responses and this is request 2"):
        await answer(model, 2)


async def test_every_done_but_the_last_is_dropped_so_that_lists_can_be_joined() -> None:
    joined = [*say("Adding."), *call("c1", "add", a=1), *call("c2", "add", a=2)]
    message = assemble_response(await answer(ScriptedModel([joined])))
    assert message.text == "Adding."
    assert [each.id for each in message.calls] == ["c1", "c2"]
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize(
    "broken", [[], [TextDelta("x")], [Done("stop"), TextDelta("after")]], ids=["nothing", "no done", "after done"]
)
async def test_a_broken_stream_stays_the_broken_stream_that_it_is(broken: list[Chunk]) -> None:
    assert await answer(ScriptedModel([broken])) == broken


async def test_the_script_is_fixed_when_the_model_is_made() -> None:
    entry = say("one")
    script = [entry]
    model = ScriptedModel(script)
    entry.clear()
    script.clear()
    assert await answer(model) == say("one")


async def test_a_function_entry_gets_the_request_and_the_signal_and_is_closed() -> None:
    seen: list[Any] = []

    async def entry(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        seen.extend([request, signal])
        try:
            yield TextDelta("x")
            yield Done("stop")
        finally:
            await anyio.lowlevel.checkpoint()
            seen.append("closed")

    signal = Signal()
    stream: Any = ScriptedModel([entry]).stream(request(), signal=signal)
    assert await anext(stream) == TextDelta("x")
    await stream.aclose()
    assert seen == [request(), signal, "closed"]


def test_what_a_model_is_given_cannot_be_changed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    spec = ToolSpec("add", "Add.", schema)
    schema["properties"] = {}
    assert spec.schema["properties"] == {"a": {"type": "integer"}}
    with pytest.raises(TypeError):
        spec.schema["properties"]["b"] = {}
    for value, field in ((spec, "name"), (request(), "messages"), (TextDelta("x"), "text"), (Done("stop"), "usage")):
        with pytest.raises(AttributeError):
            setattr(value, field, None)
