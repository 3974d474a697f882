"""Chunks make exactly one assistant message, or a typed failure (promise 4)."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.agent import (
    AssistantMessage,
    Chunk,
    Done,
    ResponseBuilder,
    ResponseError,
    Text,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallStart,
    assemble_response,
)
from course.agent.messages import FrozenDict

START = ToolCallStart("c1", "add")


def test_text_pieces_make_one_block() -> None:
    chunks = [TextDelta("Hel"), TextDelta(""), TextDelta("lo"), Done("stop")]
    assert assemble_response(chunks) == AssistantMessage((Text("Hello"),), "stop")


def test_done_alone_is_an_empty_answer_and_so_is_empty_text() -> None:
    assert assemble_response([Done("length")]) == AssistantMessage((), "length")
    assert assemble_response([TextDelta(""), Done("stop")]) == AssistantMessage((), "stop")


def test_blocks_stand_in_the_order_in_which_they_began() -> None:
    chunks: list[Chunk] = [
        TextDelta("a"),
        ToolCallStart("c1", "add"),
        ToolCallStart("c2", "sub"),
        ToolCallDelta("c2", '{"y":'),
        TextDelta("b"),
        ToolCallDelta("c1", '{"x": 1}'),
        ToolCallDelta("c2", "[2]}"),
        TextDelta("c"),
        Done("tool_use", {"output_tokens": 7}),
    ]
    assert assemble_response(chunks) == AssistantMessage(
        (Text("a"), ToolCall("c1", "add", {"x": 1}), ToolCall("c2", "sub", {"y": [2]}), Text("bc")), "tool_use"
    )


def test_the_message_is_frozen_like_any_other() -> None:
    message = assemble_response([START, ToolCallDelta("c1", '{"a":{"b":[1]}}'), Done("tool_use")])
    arguments = message.calls[0].arguments
    assert type(arguments) is type(arguments["a"]) is FrozenDict
    assert arguments["a"]["b"] == (1,)


@pytest.mark.parametrize("pieces", [[], [""], [" ", "\n"], ["{", "}"]], ids=repr)
def test_no_arguments_at_all_are_an_empty_object(pieces: list[str]) -> None:
    chunks = [START, *[ToolCallDelta("c1", piece) for piece in pieces], Done("tool_use")]
    assert assemble_response(chunks).calls == (ToolCall("c1", "add", {}),)


@given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=5), max_size=4), st.data())
def test_it_does_not_matter_where_arguments_are_cut(arguments: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(arguments, ensure_ascii=False)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    chunks = [START, *[ToolCallDelta("c1", piece) for piece in pieces], Done("tool_use")]
    assert assemble_response(chunks).calls[0].arguments == arguments


def with_arguments(json: Any) -> list[Any]:
    return [START, ToolCallDelta("c1", json), Done("tool_use")]


BROKEN: dict[str, tuple[str, list[Any]]] = {
    "nothing at all": ("RESPONSE_ENDED_EARLY", []),
    "text without done": ("RESPONSE_ENDED_EARLY", [TextDelta("x")]),
    "a call without done": ("RESPONSE_ENDED_EARLY", [START, ToolCallDelta("c1", "{}")]),
    "text after done": ("RESPONSE_AFTER_DONE", [Done("stop"), TextDelta("x")]),
    "done twice": ("RESPONSE_AFTER_DONE", [Done("stop"), Done("stop")]),
    "a call id twice": ("RESPONSE_DUPLICATE_CALL", [START, START, Done("tool_use")]),
    "arguments of an unknown call": ("RESPONSE_UNKNOWN_CALL", [START, ToolCallDelta("c2", "{}"), Done("tool_use")]),
    "arguments before their call": ("RESPONSE_UNKNOWN_CALL", [ToolCallDelta("c1", "{}"), START, Done("tool_use")]),
    "cut arguments": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a": 1')),
    "arguments with a tail": ("RESPONSE_BAD_ARGUMENTS", with_arguments("{} {}")),
    "arguments in a list": ("RESPONSE_BAD_ARGUMENTS", with_arguments("[1]")),
    "arguments that are null": ("RESPONSE_BAD_ARGUMENTS", with_arguments("null")),
    "arguments in single quotes": ("RESPONSE_BAD_ARGUMENTS", with_arguments("{'a': 1}")),
    "arguments with NaN": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a": NaN}')),
    "arguments with 65 bits": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a": 18446744073709551616}')),
    "arguments too deep": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a":' * 201 + "1" + "}" * 201)),
    "arguments far too deep": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a":' * 100_000 + "1" + "}" * 100_000)),
    "arguments with half a surrogate pair": ("RESPONSE_BAD_ARGUMENTS", with_arguments('{"a":"\ud800"}')),
    "half a surrogate pair": ("RESPONSE_BAD_CHUNK", [TextDelta("\ud83d"), TextDelta("\ude00"), Done("stop")]),
    "a call named by half a pair": ("RESPONSE_BAD_ARGUMENTS", [ToolCallStart("c1", "\ud800"), Done("stop")]),
    "a reason of half a pair": ("RESPONSE_BAD_CHUNK", [Done("\ud800")]),
    "text that is bytes": ("RESPONSE_BAD_CHUNK", [TextDelta(b"x"), Done("stop")]),  # type: ignore[arg-type]
    "text that is None": ("RESPONSE_BAD_CHUNK", [TextDelta(None), Done("stop")]),  # type: ignore[arg-type]
    "arguments that are an object": ("RESPONSE_BAD_CHUNK", with_arguments({})),
    "a reason that is None": ("RESPONSE_BAD_CHUNK", [Done(None)]),  # type: ignore[arg-type]
    "a call without an id": ("RESPONSE_BAD_CHUNK", [ToolCallStart("", "add"), Done("tool_use")]),
    "a call without a name": ("RESPONSE_BAD_CHUNK", [ToolCallStart("c1", ""), Done("tool_use")]),
    "a call id that is a number": ("RESPONSE_BAD_CHUNK", [ToolCallStart(1, "add"), Done("tool_use")]),  # type: ignore[arg-type]
    "text instead of a chunk": ("RESPONSE_BAD_CHUNK", ["x", Done("stop")]),
    "a chunk's class": ("RESPONSE_BAD_CHUNK", [Done]),
    "an error as its end": ("RESPONSE_ERROR", [TextDelta("x"), Done("error")]),
}


@pytest.mark.parametrize(("code", "chunks"), BROKEN.values(), ids=BROKEN)
def test_a_broken_stream_is_a_typed_failure(code: str, chunks: list[Any]) -> None:
    with pytest.raises(ResponseError) as caught:
        assemble_response(chunks)
    assert caught.value.code == code
    assert str(caught.value)


def test_every_code_is_documented_where_it_is_defined_and_tried_here() -> None:
    source = inspect.getsource(inspect.getmodule(ResponseBuilder))  # type: ignore[arg-type]
    raised = set(re.findall(r"RESPONSE_[A-Z_]+", source))
    assert set(re.findall(r"`(RESPONSE_[A-Z_]+)`", ResponseError.__doc__ or "")) == raised
    assert {code for code, _ in BROKEN.values()} | {"RESPONSE_TOO_MANY_CALLS"} == raised


def calls(number: int) -> list[Chunk]:
    return [*[ToolCallStart(f"c{place}", "add") for place in range(number)], Done("tool_use")]


def test_a_response_holds_128_calls_and_not_one_more() -> None:  # promise 12
    assert len(assemble_response(calls(128)).calls) == 128
    with pytest.raises(ResponseError, match="128") as caught:
        assemble_response(calls(129))
    assert caught.value.code == "RESPONSE_TOO_MANY_CALLS"


def test_a_builder_tells_when_it_is_done() -> None:
    builder = ResponseBuilder()
    builder.add(TextDelta("x"))
    assert not builder.done
    builder.add(Done("stop"))
    assert builder.done
    assert builder.finish() == builder.finish() == AssistantMessage((Text("x"),))


ids = st.sampled_from(["c1", "c2", ""])
chunks = st.one_of(
    st.builds(TextDelta, st.text(st.characters(codec=None), max_size=3)),
    st.builds(ToolCallStart, ids, st.sampled_from(["add", ""])),
    st.builds(ToolCallDelta, ids, st.sampled_from(['{"a":', "1}", "{}", " ", "nonsense"])),
    st.builds(Done, st.sampled_from(["stop", "tool_use", "error"])),
)


@given(st.lists(chunks, max_size=8))
def test_any_chunks_make_one_message_or_a_response_error(chunks: list[Chunk]) -> None:
    try:
        message = assemble_response(chunks)
    except ResponseError:
        return
    assert message.text == "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    assert [call.id for call in message.calls] == [
        chunk.call_id for chunk in chunks if isinstance(chunk, ToolCallStart)
    ]
    assert isinstance(chunks[-1], Done)
