"""A model's chunks, assembled into exactly one assistant message."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from course.agent.errors import MessageError, ResponseError
from course.agent.messages import AssistantMessage, Text, ToolCall
from course.agent.model import Chunk, Done, TextDelta, ToolCallDelta, ToolCallStart

MAX_CALLS = 128  # tool calls one response may hold


class ResponseBuilder:
    """Takes chunks one by one; `finish()` gives the message. What does not fit raises ResponseError.

    Blocks stand in the order in which they began; text after a call begins a new block.
    """

    def __init__(self) -> None:
        self._blocks: list[list[str] | ToolCallStart] = []
        self._open_text: list[str] | None = None  # the block that text goes to, until a call begins
        self._arguments: dict[str, list[str]] = {}
        self._stop_reason: str | None = None

    @property
    def done(self) -> bool:
        """Whether Done has come: the response is whole, and nothing may follow."""
        return self._stop_reason is not None

    def add(self, chunk: Chunk) -> None:
        """Take one chunk. Raises ResponseError for one that is no chunk, or has no place here."""
        if self._stop_reason is not None:
            raise ResponseError("RESPONSE_AFTER_DONE", "the model went on after it said it was done")
        if isinstance(chunk, TextDelta):
            self._add_text(chunk.text)
        elif isinstance(chunk, ToolCallDelta):
            self._add_arguments(chunk)
        elif isinstance(chunk, ToolCallStart):
            self._start_call(chunk)
        elif isinstance(chunk, Done):
            self._add_done(chunk)
        else:
            raise ResponseError("RESPONSE_BAD_CHUNK", f"a model streams chunks, not {type(chunk).__name__}")

    def finish(self) -> AssistantMessage:
        """The message. Raises ResponseError when Done never came or a call's arguments are not a JSON object."""
        if self._stop_reason is None:
            raise ResponseError("RESPONSE_ENDED_EARLY", "the stream ended before the model said it was done")
        try:
            blocks = [
                Text("".join(block)) if isinstance(block, list) else self._finish_call(block) for block in self._blocks
            ]
            return AssistantMessage(tuple(blocks), self._stop_reason)
        except MessageError as error:
            raise ResponseError("RESPONSE_BAD_CHUNK", f"no message can hold the model's answer: {error}") from error

    def _add_done(self, chunk: Done) -> None:
        if chunk.stop_reason == "error":
            raise ResponseError("RESPONSE_ERROR", "the model ended its answer with an error")
        self._stop_reason = _text(chunk.stop_reason)

    def _add_text(self, text: str) -> None:
        if not _text(text):  # servers open with an empty piece; an empty block would be no answer
            return
        if self._open_text is None:
            self._open_text = []
            self._blocks.append(self._open_text)
        self._open_text.append(text)

    def _start_call(self, chunk: ToolCallStart) -> None:
        if not _text(chunk.call_id) or not _text(chunk.name):
            raise ResponseError("RESPONSE_BAD_CHUNK", "a tool call needs an id and a name")
        if chunk.call_id in self._arguments:
            raise ResponseError("RESPONSE_DUPLICATE_CALL", f"the model used the call id {chunk.call_id!r} twice")
        if len(self._arguments) == MAX_CALLS:
            raise ResponseError("RESPONSE_TOO_MANY_CALLS", f"a response may hold {MAX_CALLS} tool calls")
        self._arguments[chunk.call_id] = []
        self._blocks.append(chunk)
        self._open_text = None

    def _add_arguments(self, chunk: ToolCallDelta) -> None:
        pieces = self._arguments.get(chunk.call_id)
        if pieces is None:
            raise ResponseError("RESPONSE_UNKNOWN_CALL", f"arguments for {chunk.call_id!r}, which never started")
        pieces.append(_text(chunk.json))

    def _finish_call(self, start: ToolCallStart) -> ToolCall:
        json = "".join(self._arguments[start.call_id]).strip() or "{}"
        try:
            return ToolCall(start.call_id, start.name, msgspec.json.decode(json))
        except (msgspec.DecodeError, MessageError, UnicodeError, RecursionError) as error:
            raise ResponseError(
                "RESPONSE_BAD_ARGUMENTS", f"the arguments of call {start.call_id!r} ({start.name}): {error}"
            ) from error


def assemble_response(chunks: Iterable[Chunk]) -> AssistantMessage:
    """The one message that these chunks make. Raises ResponseError, whose `code` says what is wrong with them."""
    builder = ResponseBuilder()
    for chunk in chunks:
        builder.add(chunk)
    return builder.finish()


def _text(value: object) -> str:
    if type(value) is not str:
        raise ResponseError("RESPONSE_BAD_CHUNK", f"a chunk holds text, not {type(value).__name__}")
    return value
