"""Messages: deeply immutable, strict JSON, an exact round trip (promises 1–3)."""

from __future__ import annotations

import copy
import datetime
import enum
import json
import math
import pickle
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.agent import (
    AssistantMessage,
    Message,
    MessageError,
    Text,
    ToolCall,
    ToolResultMessage,
    UserMessage,
    decode_message,
    decode_messages,
    encode_message,
    encode_messages,
    freeze_json,
)
from course.agent.messages import FrozenDict

ONE_OF_EACH = [
    UserMessage("hello"),
    AssistantMessage((Text("adding"), ToolCall("c1", "add", {"a": 1, "b": [1, {"c": None}]})), "tool_use"),
    AssistantMessage((), "error", "no line"),
    ToolResultMessage("c1", "add", "[1,2]", details=[1, {"two": 2}]),
    ToolResultMessage("c1", "add", "failed", is_error=True),
]


# 1: immutable to every ordinary operation


@pytest.mark.parametrize("message", [*ONE_OF_EACH, Text("x"), ToolCall("c", "n")], ids=repr)
def test_no_field_of_a_message_can_be_set_or_deleted(message: Any) -> None:
    for field in message.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(message, field, getattr(message, field))
        with pytest.raises(AttributeError):
            delattr(message, field)
    with pytest.raises(AttributeError):
        message.anything_else = 1


def changes(method: str, arguments: tuple[object, ...]) -> bool:
    """Whether this call of a plain dict's method changes the dict."""
    plain: dict[str, object] = {"a": 1}
    try:
        getattr(plain, method)(*arguments)
    except Exception:
        return False
    return plain != {"a": 1}


ARGUMENTS: list[tuple[object, ...]] = [(), ("a",), ("a", 2), ("b", 2), ({"b": 2},)]
CHANGING = [
    (method, arguments)
    for method in dir(dict)
    if method != "__init__"  # calling a constructor a second time is no ordinary operation
    for arguments in ARGUMENTS
    if changes(method, arguments)
]


def test_the_list_of_changing_dict_methods_is_the_known_one() -> None:
    names = {"__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"}
    assert {method for method, _ in CHANGING} == names


@pytest.mark.parametrize(("method", "arguments"), CHANGING, ids=lambda value: str(value))
def test_a_frozen_object_refuses_every_changing_method_of_dict(method: str, arguments: tuple[object, ...]) -> None:
    frozen = FrozenDict(a=1)
    with pytest.raises(TypeError, match="cannot be changed"):
        getattr(frozen, method)(*arguments)
    assert frozen == {"a": 1}


def test_a_frozen_object_refuses_operators_and_attributes() -> None:
    frozen = FrozenDict(a=1)
    with pytest.raises(TypeError):
        frozen["a"] = 2
    with pytest.raises(TypeError):
        del frozen["a"]
    with pytest.raises(TypeError):
        frozen |= {"b": 2}
    with pytest.raises(AttributeError):
        frozen.note = "x"  # type: ignore[attr-defined]
    assert frozen == {"a": 1}


def test_a_frozen_object_is_still_a_dict_to_read() -> None:
    frozen = FrozenDict(a=1)
    assert isinstance(frozen, dict)
    assert {**frozen, "b": 2} == frozen | {"b": 2} == {"a": 1, "b": 2}
    assert json.dumps(frozen) == '{"a": 1}'
    frozen.copy()["a"] = 2
    assert frozen == {"a": 1}


def test_freezing_goes_all_the_way_down() -> None:
    call = ToolCall("c1", "add", {"list": [1, {"deep": [2]}]})
    assert type(call.arguments) is FrozenDict
    assert type(call.arguments["list"]) is tuple
    assert type(call.arguments["list"][1]) is FrozenDict
    assert type(call.arguments["list"][1]["deep"]) is tuple


def test_changing_the_source_afterwards_changes_no_message() -> None:
    inner = {"b": [1]}
    arguments: dict[str, Any] = {"a": inner}
    content = [Text("x")]
    call, answer = ToolCall("c1", "add", arguments), AssistantMessage(content)  # type: ignore[arg-type]
    result = ToolResultMessage("c1", "add", "t", details=arguments)
    inner["b"].append(2)
    arguments["c"] = 3
    content.append(Text("y"))
    assert call.arguments == result.details == {"a": {"b": (1,)}}
    assert answer.content == (Text("x"),)


@pytest.mark.parametrize("message", ONE_OF_EACH, ids=repr)
def test_copies_and_pickles_of_a_message_are_equal_and_as_frozen(message: Message) -> None:
    for twin in (copy.copy(message), copy.deepcopy(message), pickle.loads(pickle.dumps(message))):
        assert twin == message
        assert hash(twin) == hash(message)
        assert_frozen(twin)


def assert_frozen(value: Any) -> None:
    """Every part is of a kind that has no changing method."""
    if isinstance(value, msgspec.Struct):
        for field in value.__struct_fields__:
            assert_frozen(getattr(value, field))
    elif type(value) is tuple:
        for item in value:
            assert_frozen(item)
    elif type(value) is FrozenDict:
        for item in value.values():
            assert_frozen(item)
    else:
        assert value is None or type(value) in (bool, int, float, str), type(value)


# 2: only strict JSON enters a message


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    LOW = 1


class Metres(float):
    pass


class Name(str):
    __slots__ = ()


class Liar(dict[Any, Any]):
    """Shows one key to those who iterate and another one to those who ask for items."""

    def items(self) -> Any:
        return {1: "one"}.items()


cyclic_list: list[Any] = []
cyclic_list.append(cyclic_list)
cyclic_dict: dict[str, Any] = {"a": {}}
cyclic_dict["a"]["b"] = [cyclic_dict]


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


NOT_JSON = {
    "nan": (math.nan, "$"),
    "infinity": ([1, math.inf], "$[1]"),
    "minus infinity": ({"a": -math.inf}, "$.a"),
    "set": ({"a": [{1}]}, "$.a[0]"),
    "frozenset": (frozenset(), "$"),
    "bytes": ([b"x"], "$[0]"),
    "date": ({"when": datetime.date(2020, 1, 1)}, "$.when"),
    "lambda": ([lambda: 1], "$[0]"),
    "object": ({"a": {"b": object()}}, "$.a.b"),
    "complex": (1j, "$"),
    "list that holds itself": (cyclic_list, "$[0]"),
    "dict that holds itself": (cyclic_dict, "$.a.b[0]"),
    "integer key": ({"a": {1: 2}}, "$.a"),
    "null key": ({None: 2}, "$"),
    "text subclass key": ({Name("a"): 1}, "$"),
    "enum key": ({Colour.RED: 1}, "$"),
    "65 bits": ([2**64], "$[0]"),
    "below 64 bits": (-(2**63) - 1, "$"),
    "huge": ({"a": 10**400}, "$.a"),
    "half a surrogate pair": (["\ud800"], "$[0]"),
    "half a surrogate pair as key": ({"\udfff": 1}, "$"),
    "half a surrogate pair as key of a bad value": ({"\udfff": {1}}, "$"),
    "text enum": ([Colour.RED], "$[0]"),
    "integer enum": ([Level.LOW], "$[0]"),
    "float subclass": (Metres(1), "$"),
    "text subclass": (Name("a"), "$"),
    "dict whose items lie": (Liar(a=1), "$"),
    "generator": ((i for i in ()), "$"),
    "range": (range(3), "$"),
    "message": ({"a": UserMessage("x")}, "$.a"),
}


@pytest.mark.parametrize(("value", "path"), NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_strict_json_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        freeze_json(value)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("value", [value for value, _ in NOT_JSON.values()], ids=NOT_JSON)
def test_what_is_not_strict_json_is_refused_where_it_would_enter_a_message(value: object) -> None:
    with pytest.raises(MessageError, match=r"^\$\.arguments\.x"):
        ToolCall("c1", "add", {"x": value})
    with pytest.raises(MessageError, match=r"^\$\.details\[0\]"):
        ToolResultMessage("c1", "add", "t", details=[value])


@pytest.mark.parametrize("value", [None, 1, b"x", ["x"], Name("x"), Colour.RED, "\ud800"], ids=repr)
@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda value: UserMessage(value), "$.text"),
        (lambda value: Text(value), "$.text"),
        (lambda value: ToolCall(value, "n"), "$.id"),
        (lambda value: ToolCall("i", value), "$.name"),
        (lambda value: AssistantMessage((), value), "$.stop_reason"),
        (lambda value: ToolResultMessage(value, "n", "t"), "$.call_id"),
        (lambda value: ToolResultMessage("i", value, "t"), "$.name"),
        (lambda value: ToolResultMessage("i", "n", value), "$.text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_text_field_takes_nothing_but_text(build: Any, path: str, value: object) -> None:
    with pytest.raises(MessageError) as caught:
        build(value)
    assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("build", "path"),
    [
        (lambda: ToolResultMessage("i", "n", "t", is_error=1), "$.is_error"),  # type: ignore[arg-type]
        (lambda: ToolResultMessage("i", "n", "t", is_error={1}), "$.is_error"),  # type: ignore[arg-type]
        (lambda: AssistantMessage((), "stop", 1), "$.error"),  # type: ignore[arg-type]
        (lambda: AssistantMessage((Text("x"), "y")), r"$.content[1]"),  # type: ignore[arg-type]
        (lambda: AssistantMessage("xy"), r"$.content[0]"),  # type: ignore[arg-type]
        (lambda: AssistantMessage((UserMessage("x"),)), r"$.content[0]"),  # type: ignore[arg-type]
        (lambda: ToolCall("i", "n", [1]), "$.arguments"),  # type: ignore[arg-type]
        (lambda: ToolCall("i", "n", None), "$.arguments"),  # type: ignore[arg-type]
        (lambda: AssistantMessage((ToolCall("i", "n"),), "error"), "$.content"),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(build: Any, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        build()
    assert str(caught.value).startswith(f"{path}: ")


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "frozen"),
    [
        (Point(1, 2), (1, 2)),
        (OrderedDict(b=1, a=[]), {"b": 1, "a": ()}),
        (defaultdict(list, a=[1]), {"a": (1,)}),
        ([True, False, None, 0, 0.0, "", "💡", 2**64 - 1, -(2**63)], None),
        (nested(200), None),
    ],
    ids=["namedtuple", "OrderedDict", "defaultdict", "scalars", "200 levels"],
)
def test_every_strict_json_value_passes(value: Any, frozen: object) -> None:
    result = freeze_json(value)
    assert_frozen(result)
    assert result == (freeze_json(list(value)) if frozen is None else frozen)


def test_a_value_that_stands_in_two_places_does_not_contain_itself() -> None:
    shared = [1]
    assert freeze_json({"a": shared, "b": [shared, shared]}) == {"a": (1,), "b": ((1,), (1,))}


def test_more_than_200_levels_are_refused_with_a_short_text() -> None:
    for levels in (201, 500_000):
        with pytest.raises(MessageError, match="200 levels") as caught:
            freeze_json(nested(levels))
        assert len(str(caught.value)) < 200


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.dates()
    | st.sampled_from(list(Level)),
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner)
        | st.dictionaries(st.text(st.characters(codec=None)) | st.integers(), inner)
        | st.frozensets(st.integers())
    ),
    max_leaves=12,
)


@given(anything)
def test_a_value_is_either_refused_or_json_by_the_strictest_reading(value: Any) -> None:
    try:
        frozen = freeze_json(value)
    except MessageError:
        return
    assert_frozen(frozen)
    text = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    assert repr(freeze_json(json.loads(text))) == repr(frozen)


# 3: an exact round trip, and errors that name the path

texts = st.text(st.characters(codec="utf-8"), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
calls = st.builds(ToolCall, texts, texts, st.dictionaries(texts, json_values, max_size=3))
messages = st.one_of(
    st.builds(UserMessage, texts),
    st.builds(
        AssistantMessage,
        st.lists(st.builds(Text, texts) | calls, max_size=3).map(tuple),
        texts.filter(lambda reason: reason != "error"),
        st.none() | texts,
    ),
    st.builds(lambda error: AssistantMessage((), "error", error), texts),
    st.builds(ToolResultMessage, texts, texts, texts, st.booleans(), json_values),
)


@given(messages)
def test_encoding_and_decoding_gives_exactly_the_same_message(message: Message) -> None:
    encoded = encode_message(message)
    decoded = decode_message(encoded)
    assert decoded == message
    assert repr(decoded) == repr(message)  # 1, 1.0 and True are equal, and not the same
    assert_frozen(decoded)
    assert b"\n" not in encoded
    assert decode_message(encoded.decode()) == message
    assert json.loads(encoded)["role"] in ("user", "assistant", "tool")


@given(st.lists(messages, max_size=4))
def test_a_list_of_messages_round_trips_exactly(many: list[Message]) -> None:
    assert repr(decode_messages(encode_messages(many))) == repr(tuple(many))


USER = '{"role":"user","text":"x"}'
CALL = '{"type":"tool_call","id":"c","name":"n","arguments":%s}'


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ('{"role":"wizard","text":"x"}', "`$.role`"),
        ('{"role":1,"text":"x"}', "`$.role`"),
        ('{"text":"x"}', "`role`"),
        ('{"role":"user"}', "`text`"),
        ('{"role":"user","text":1}', "`$.text`"),
        ('{"role":"user","text":null}', "`$.text`"),
        ('{"role":"user","text":"x","mood":1}', "`mood`"),
        ('{"role":"assistant"}', "`content`"),
        ('{"role":"assistant","content":{}}', "`$.content`"),
        ('{"role":"assistant","content":[{"type":"text"}]}', "`$.content[0]`"),
        ('{"role":"assistant","content":[{"type":"image"}]}', "`$.content[0].type`"),
        ('{"role":"assistant","content":[{"type":"text","text":"a"},%s]}' % (CALL % "[]"), "`$.content[1].arguments`"),
        ('{"role":"assistant","content":[%s]}' % (CALL % '{"x":18446744073709551616}'), "$.arguments.x"),
        ('{"role":"assistant","stop_reason":"error","content":[%s]}' % (CALL % "{}"), "$.content"),
        ('{"role":"tool","call_id":"c","name":"n"}', "`text`"),
        ('{"role":"tool","call_id":"c","name":"n","text":"t","is_error":"no"}', "`$.is_error`"),
        ('{"role":"tool","call_id":"c","name":"n","text":"t","details":1e999}', "`$.details`"),
    ],
)
def test_a_decoding_error_names_the_path(data: str, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        decode_message(data)
    assert path in str(caught.value)
    with pytest.raises(MessageError) as caught:
        decode_messages(f"[{USER},{data}]")
    assert "$[1]" in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "nonsense",
        "null",
        "[]",
        USER[:-1],
        USER + USER,
        b'{"role":"user","text":"\xff"}',
        '{"role":"user","text":"\ud800"}',
        r'{"role":"user","text":"\ud800"}',
        '{"role":"tool","call_id":"c","name":"n","text":"t","details":NaN}',
        '{"role":"tool","call_id":"c","name":"n","text":"t","details":%s}' % ("[" * 100_000 + "]" * 100_000),
    ],
    ids=lambda data: repr(data[:30]),
)
def test_what_is_no_message_at_all_is_a_message_error(data: bytes | str) -> None:
    for decode in (decode_message, decode_messages):
        if (decode, data) == (decode_messages, "[]"):
            continue
        with pytest.raises(MessageError):
            decode(data)


def test_text_is_all_text_blocks_and_calls_are_all_calls_in_order() -> None:
    first, second = ToolCall("c1", "add"), ToolCall("c2", "sub")
    message = AssistantMessage((Text("a"), first, Text("b"), second), "tool_use")
    assert message.text == "ab"
    assert message.calls == (first, second)
