"""Immutable messages and their JSON form."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NoReturn, TypeAlias

import msgspec

from course.agent.errors import MessageError

JSON: TypeAlias = "bool | int | float | str | tuple[JSON, ...] | FrozenDict | None"

# RFC 8259 leaves the range of numbers open; 64 bits is what the encoder can write.
_SMALLEST_INT, _LARGEST_INT = -(2**63), 2**64 - 1


class FrozenDict(dict[str, Any]):
    """A JSON object that cannot be changed. Equal to a dict with the same items, and encoded like one."""

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this JSON object is part of a message and cannot be changed; build a new dict from it")

    __setitem__ = __delitem__ = __ior__ = _refuse  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _refuse  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[type[FrozenDict], tuple[dict[str, Any]]]:
        return FrozenDict, (dict(self),)


def freeze_json(value: object, path: str = "$") -> JSON:
    """The same JSON value, deeply immutable: dicts become FrozenDicts, lists and tuples become tuples.

    Only strict JSON passes (RFC 8259): None, bool, int of at most 64 bits, finite float, text that UTF-8 can
    encode, lists, and dicts with text keys. Anything else, and a value that contains itself, raises
    MessageError with the path of the offending part, such as `$.items[2]`.
    """
    return _freeze(value, path, ())


def _freeze(value: object, path: str, parents: tuple[int, ...]) -> JSON:
    kind = type(value)
    if value is None or kind is bool:
        return value  # type: ignore[return-value]
    if kind is str:
        return _check_text(value, path)  # type: ignore[arg-type]
    if kind is int:
        if not _SMALLEST_INT <= value <= _LARGEST_INT:  # type: ignore[operator]
            raise MessageError(f"{path}: an integer of more than 64 bits cannot be encoded; send it as text")
        return value  # type: ignore[return-value]
    if kind is float:
        if not math.isfinite(value):  # type: ignore[arg-type]
            raise MessageError(f"{path}: {value} is not JSON; use null or a text")
        return value  # type: ignore[return-value]
    if not isinstance(value, dict | list | tuple):
        raise MessageError(f"{path}: a value of type {kind.__name__} is not JSON")
    if id(value) in parents:
        raise MessageError(f"{path}: the value contains itself")
    if len(parents) >= 200:
        raise MessageError(f"{path[:60]}…: nested deeper than 200 levels")
    parents = (*parents, id(value))
    if isinstance(value, dict):
        return _freeze_dict(value, path, parents)
    return tuple(_freeze(item, f"{path}[{index}]", parents) for index, item in enumerate(value))


def _freeze_dict(value: dict[Any, Any], path: str, parents: tuple[int, ...]) -> FrozenDict:
    frozen = {}
    for key, item in value.items():
        if type(key) is not str:
            raise MessageError(f"{path}: the key {key!r} is not text")
        _check_text(key, path)
        frozen[key] = _freeze(item, f"{path}.{key}", parents)
    return FrozenDict(frozen)


def _check_text(value: object, path: str) -> str:
    if type(value) is not str:
        raise MessageError(f"{path}: expected text, got {type(value).__name__}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise MessageError(f"{path}: half of a surrogate pair cannot be encoded as UTF-8") from None
    return value


class Text(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="text", tag_field="type"):
    """Text that an assistant wrote."""

    text: str

    def __post_init__(self) -> None:
        _check_text(self.text, "$.text")


class ToolCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="tool_call", tag_field="type"):
    """A tool that an assistant asks for. `id` pairs it with its result; `arguments` is frozen JSON."""

    id: str
    name: str
    arguments: dict[str, Any] = {}

    def __post_init__(self) -> None:
        _check_text(self.id, "$.id")
        _check_text(self.name, "$.name")
        arguments = freeze_json(self.arguments, "$.arguments")
        if not isinstance(arguments, FrozenDict):
            raise MessageError("$.arguments: expected an object")
        msgspec.structs.force_setattr(self, "arguments", arguments)


class UserMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="user", tag_field="role"):
    """What a person says."""

    text: str

    def __post_init__(self) -> None:
        _check_text(self.text, "$.text")


class AssistantMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="assistant", tag_field="role"):
    """One whole answer of a model.

    `stop_reason` is the model's word for why it ended ("stop", "tool_use", "length", …), or "error" for an
    answer that failed; then `error` says how, and the message is kept but never sent to a model again. It holds
    no calls: their results would be sent without it.
    """

    content: tuple[Text | ToolCall, ...]
    stop_reason: str = "stop"
    error: str | None = None

    def __post_init__(self) -> None:
        if type(self.content) is not tuple:
            msgspec.structs.force_setattr(self, "content", tuple(self.content))
        for index, block in enumerate(self.content):
            if type(block) is not Text and type(block) is not ToolCall:
                raise MessageError(f"$.content[{index}]: expected Text or ToolCall, got {type(block).__name__}")
        _check_text(self.stop_reason, "$.stop_reason")
        if self.error is not None:
            _check_text(self.error, "$.error")
        if self.stop_reason == "error" and self.calls:
            raise MessageError("$.content: an answer that failed holds no tool calls")

    @property
    def text(self) -> str:
        """All text blocks, joined."""
        return "".join([block.text for block in self.content if type(block) is Text])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in the order the model made them."""
        return tuple([block for block in self.content if type(block) is ToolCall])


class ToolResultMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="tool", tag_field="role"):
    """What became of one tool call. `text` is for the model; `details` is the same value as frozen JSON, or None."""

    call_id: str
    name: str
    text: str
    is_error: bool = False
    details: Any = None

    def __post_init__(self) -> None:
        _check_text(self.call_id, "$.call_id")
        _check_text(self.name, "$.name")
        _check_text(self.text, "$.text")
        if type(self.is_error) is not bool:
            raise MessageError(f"$.is_error: expected true or false, got {type(self.is_error).__name__}")
        if self.details is not None:
            msgspec.structs.force_setattr(self, "details", freeze_json(self.details, "$.details"))


Message = UserMessage | AssistantMessage | ToolResultMessage

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Message, strict=True)


def encode_message(message: Message) -> bytes:
    """The message as one line of JSON, without a newline. `decode_message` gives back an equal message."""
    return _ENCODER.encode(message)


def decode_message(data: bytes | str) -> Message:
    """The message in this JSON. An unknown role, a missing field or a wrong type raises MessageError with its path."""
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, MessageError, UnicodeError, RecursionError) as error:
        raise MessageError(f"not a message: {error}") from error


def encode_messages(messages: Iterable[Message]) -> bytes:
    """The messages as a JSON array."""
    return _ENCODER.encode(list(messages))


def decode_messages(data: bytes | str) -> tuple[Message, ...]:
    """The messages in this JSON array. Raises MessageError like `decode_message`; the path has the index."""
    try:
        return msgspec.json.decode(data, type=tuple[Message, ...])
    except (msgspec.DecodeError, MessageError, UnicodeError, RecursionError) as error:
        raise MessageError(f"not a list of messages: {error}") from error
