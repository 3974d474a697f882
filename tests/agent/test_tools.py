"""Tools: schema from the signature, checked arguments, and a paired result whatever happens (promises 10 and 11)."""

from __future__ import annotations

import asyncio
import datetime
import enum
import functools
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Optional

import anyio
import anyio.from_thread
import anyio.lowlevel
import msgspec
import pytest
from recording import a_foreign_cancellation
from stage import PATIENCE, turn_over

from course.agent import (
    Signal,
    Tool,
    ToolArgumentsError,
    ToolCall,
    ToolDefinitionError,
    ToolRegistry,
    ToolResultMessage,
    ToolSpec,
    freeze_json,
    tool,
)

pytestmark = pytest.mark.anyio


class Place(msgspec.Struct):
    """Where something is."""

    x: int
    y: int = 0


@dataclass
class Pair:
    left: Place
    right: Optional[Place] = None  # noqa: UP045


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Fussy(msgspec.Struct):
    number: int

    def __post_init__(self) -> None:
        if self.number < 0:
            raise KeyError("number")


def ignore(text: str) -> None:
    """A progress that nobody listens to."""


async def run(function: Callable[..., Any], /, **arguments: Any) -> ToolResultMessage:
    """The result of one call of this function as a tool."""
    made = function if isinstance(function, Tool) else tool(function)
    snapshot = ToolRegistry([made]).snapshot()
    with anyio.fail_after(PATIENCE):
        return await snapshot.run(ToolCall("c1", made.name, arguments), signal=Signal(), progress=ignore)


def properties(function: Callable[..., Any]) -> dict[str, Any]:
    return tool(function).spec.schema["properties"]


# 10: the schema comes from the signature


def test_name_description_and_schema_come_from_the_function() -> None:
    @tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        Both are whole.
        """
        return a + b

    assert isinstance(add, Tool)
    assert add.spec == ToolSpec(
        "add",
        "Add two numbers.\n\nBoth are whole.",
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer", "default": 2}},
            "required": ["a"],
            "additionalProperties": False,
        },
    )


def test_a_function_without_parameters_has_an_empty_object() -> None:
    def now() -> str:
        """The time."""
        return ""

    assert tool(now).spec.schema == {
        "type": "object",
        "properties": {},
        "required": (),
        "additionalProperties": False,
    }


def test_the_schema_tells_defaults_choices_notes_and_limits() -> None:
    def find(
        text: Annotated[str, msgspec.Meta(description="What to find", min_length=1)],
        kind: Literal["file", "folder"] = "file",
        colour: Colour = Colour.RED,
        most: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10,
        paths: list[str] = [],  # noqa: B006
        depth: int | None = None,
        anything: Any = None,
    ) -> str:
        """Find."""
        return text

    found = properties(find)
    assert found["text"] == {"type": "string", "description": "What to find", "minLength": 1}
    assert found["kind"] == {"enum": ("file", "folder"), "default": "file"}
    assert found["most"] == {"type": "integer", "minimum": 1, "maximum": 100, "default": 10}
    assert found["paths"] == {"type": "array", "items": {"type": "string"}, "default": ()}
    assert found["depth"] == {"anyOf": ({"type": "integer"}, {"type": "null"}), "default": None}
    assert found["anything"] == {"default": None}
    assert tool(find).spec.schema["required"] == ("text",)


def test_nested_structs_and_dataclasses_are_defined_beside_the_object() -> None:
    def move(pair: Pair, places: list[Place]) -> None:
        """Move."""

    schema = tool(move).spec.schema
    assert schema["type"] == "object"
    assert schema["properties"]["places"]["items"] == {"$ref": "#/$defs/Place"}
    assert schema["$defs"]["Place"]["properties"]["x"] == {"type": "integer"}
    assert set(schema["$defs"]) == {"Place", "Pair"}


def test_a_tool_may_have_the_name_of_a_type_that_it_takes() -> None:
    def Place_(place: Place) -> None:
        """Take it."""

    Place_.__name__ = "Place"
    schema = tool(Place_).spec.schema
    [reference] = [schema["properties"]["place"]["$ref"].rpartition("/")[2]]
    assert schema["$defs"][reference]["properties"]["x"] == {"type": "integer"}


def test_a_schema_cannot_be_changed_and_is_json() -> None:
    schema = tool(Tools.move).spec.schema
    with pytest.raises(TypeError):
        schema["properties"]["pair"] = {}
    assert freeze_json(json.loads(msgspec.json.encode(schema))) == schema


class Tools:
    """Methods are functions too."""

    def __init__(self) -> None:
        self.moved = 0

    @staticmethod
    def move(pair: Pair) -> None:
        """Move."""

    async def count(self, by: int) -> int:
        """Count."""
        self.moved += by
        return self.moved


async def test_a_bound_method_is_a_tool_without_its_self() -> None:
    tools = Tools()
    assert set(properties(tools.count)) == {"by"}
    assert (await run(tools.count, by=3)).details == 3
    assert tools.moved == 3


async def test_signal_and_progress_are_filled_in_and_no_part_of_the_schema() -> None:
    seen: list[Any] = []

    def watch(text: str, progress: Callable[[str], None], *, signal: Signal) -> None:
        """Watch."""
        seen.extend([text, signal, progress])

    assert set(properties(watch)) == {"text"}
    signal = Signal()
    snapshot = ToolRegistry([watch]).snapshot()
    await snapshot.run(ToolCall("c1", "watch", {"text": "x"}), signal=signal, progress=ignore)
    assert seen == ["x", signal, ignore]
    forged = await snapshot.run(ToolCall("c1", "watch", {"text": "x", "signal": 1}), signal=signal, progress=ignore)
    assert forged.is_error


def no_docstring(a: int) -> int:
    return a


def many(*numbers: int) -> None:
    """Many."""


def named(**numbers: int) -> None:
    """Named."""


def by_place(a: int, /) -> None:
    """By place."""


def given_by_place(signal: Signal, /) -> None:
    """Given by place."""


def unknown_type(a: Nowhere) -> None:  # type: ignore[name-defined] # noqa: F821
    """Unknown."""


def broken_type(a: "int[") -> None:  # type: ignore # noqa: F722
    """Broken."""


def no_schema(a: object) -> None:
    """No schema."""


def not_json_default(a: float = math.inf) -> None:
    """No default that JSON knows."""


def object_default(a: Any = object()) -> None:  # noqa: B008
    """No default that JSON knows."""


def shared_default(a: list[int] = [1]) -> None:  # noqa: B006
    """A default that every call would share."""


class Callable_:
    """Call me."""

    def __call__(self, a: int) -> int:
        return a


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (no_docstring, "no_docstring needs a docstring"),
        (lambda: 1, "needs a docstring"),
        (many, r"many: name each parameter; \*numbers"),
        (named, r"named: name each parameter; \*\*numbers"),
        (by_place, "by_place: name each parameter"),
        (given_by_place, "given_by_place: name each parameter"),
        (unknown_type, "unknown_type: .*Nowhere"),
        (broken_type, "broken_type: its annotations cannot be read"),
        (no_schema, "no_schema: no JSON schema"),
        (not_json_default, r"not_json_default: .*properties\.a\.default"),
        (object_default, "object_default: no JSON schema"),
        (shared_default, "shared_default: no JSON schema"),
        (functools.partial(no_schema), "write `def` around"),
        (Callable_(), "write `def` around"),
        (Place, "write `def` around"),
        (print, "write `def` around"),
        ("add", "write `def` around"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_and_told_why(function: Any, says: str) -> None:
    with pytest.raises(ToolDefinitionError, match=says):
        tool(function)


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_duplicate_names_are_refused_and_the_first_stays() -> None:
    registry = ToolRegistry([add])
    for twin in (add, tool(add)):
        with pytest.raises(ToolDefinitionError, match="'add' is registered already"):
            registry.register(twin)
    assert [each.name for each in registry] == ["add"]
    with pytest.raises(ToolDefinitionError):
        ToolRegistry([add, add])


async def test_a_snapshot_is_not_changed_by_registering_later() -> None:
    registry = ToolRegistry([add])
    snapshot: Any = registry.snapshot()
    registry.register(no_arguments)
    assert [spec.name for spec in snapshot.specs] == [each.name for each in snapshot] == ["add"]
    assert len(snapshot) == 1
    assert len(registry) == 2
    assert (await snapshot.run(ToolCall("c1", "no_arguments", {}), signal=Signal(), progress=ignore)).is_error
    with pytest.raises(TypeError):
        snapshot._tools["other"] = add
    assert snapshot.snapshot() is snapshot


def no_arguments() -> None:
    """Nothing."""


# 10: arguments are checked before it runs


async def test_arguments_are_converted_to_the_types_of_the_signature() -> None:
    seen: list[Any] = []

    async def take(
        pair: Pair,
        when: datetime.date,
        numbers: tuple[int, ...],
        words: set[str],
        colour: Colour,
        ratio: float,
        notes: list[str] = [],  # noqa: B006
    ) -> None:
        """Take."""
        notes.append("mine")
        seen.append((pair, when, numbers, words, colour, ratio, notes))

    arguments: dict[str, Any] = {
        "pair": {"left": {"x": 1}},
        "when": "2020-02-03",
        "numbers": [1, 2],
        "words": ["a", "a"],
        "colour": "blue",
        "ratio": 1,
    }
    for _ in range(2):  # the default list is fresh each time
        assert not (await run(take, **arguments)).is_error
    assert seen == [(Pair(Place(1)), datetime.date(2020, 2, 3), (1, 2), {"a"}, Colour.BLUE, 1.0, ["mine"])] * 2
    assert type(seen[0][5]) is float


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pair": {"left": {"x": "1"}}}, r"Expected `int`, got `str` - at `\$\.pair\.left\.x`"),
        ({"pair": {"left": {"x": True}}}, r"Expected `int`, got `bool`"),
        ({"pair": {"left": {"x": 1.5}}}, r"Expected `int`, got `float`"),
        ({"pair": {}}, r"missing required field `left` - at `\$\.pair`"),
        ({}, "missing required field `pair`"),
        ({"pair": None}, r"at `\$\.pair`"),
        ({"pair": {"left": {"x": 1}}, "extra": 1}, "unknown field `extra`"),
        ({"pair": {"left": {"x": 1}}, "most": 101}, r"<= 100.*at `\$\.most`"),
        ({"pair": {"left": {"x": 1}}, "kind": "both"}, r"at `\$\.kind`"),
        ({"pair": {"left": {"x": 1}}, "fussy": {"number": -1}}, "number"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_with_their_path_and_nothing_runs(
    arguments: dict[str, Any], says: str
) -> None:
    ran: list[int] = []

    def move(
        pair: Pair,
        most: Annotated[int, msgspec.Meta(le=100)] = 10,
        kind: Literal["file", "folder"] = "file",
        fussy: Fussy | None = None,
    ) -> None:
        """Move."""
        ran.append(1)

    with pytest.raises(ToolArgumentsError, match=says):
        tool(move).check(arguments)
    result = await run(move, **arguments)
    assert result.is_error
    assert result.text.startswith("Not run: arguments of move: ")
    assert ran == []


# 11: whatever happens, a paired result


async def test_an_unknown_tool_is_a_result_that_names_the_known_ones() -> None:
    call = ToolCall("c7", "sub", {"a": 1})
    result = await ToolRegistry([add, no_arguments]).snapshot().run(call, signal=Signal(), progress=ignore)
    assert result == ToolResultMessage(
        "c7", "sub", "There is no tool 'sub'. The tools are: add, no_arguments.", is_error=True
    )
    result = await ToolRegistry().snapshot().run(call, signal=Signal(), progress=ignore)
    assert result.text == "There is no tool 'sub'. The tools are: none."


@pytest.mark.parametrize(
    ("value", "text", "details"),
    [
        ("plain", "plain", None),
        ("", "", None),
        ("[1]", "[1]", None),
        (None, "null", None),
        (3, "3", 3),
        (True, "true", True),
        (1.5, "1.5", 1.5),
        ([1, (2, "é")], '[1,[2,"é"]]', (1, (2, "é"))),
        ({"a": [None]}, '{"a":[null]}', {"a": (None,)}),
    ],
    ids=repr,
)
async def test_a_text_result_is_the_text_and_any_other_is_json_in_text_and_details(
    value: Any, text: str, details: Any
) -> None:
    async def give() -> Any:
        """Give."""
        return value

    result = await run(give)
    assert result == ToolResultMessage("c1", "give", text, details=details)
    assert not result.is_error
    if details is not None:
        assert freeze_json(json.loads(result.text)) == result.details


class Evil(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("evil")


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        {1},
        {"a": datetime.date(2020, 1, 1)},
        [lambda: 1],
        {1: 2},
        object(),
        "\ud800",
        2**70,
        Colour.RED,
        Evil([1]),
    ],
    ids=lambda value: type(value).__name__,  # a repr may hold an address, and workers must agree
)
@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_result_that_is_not_strict_json_is_an_error_that_does_not_deny_what_was_done(
    value: Any, in_thread: bool
) -> None:
    done: list[int] = []

    def give() -> Any:
        """Give."""
        done.append(1)
        return value

    async def give_later() -> Any:
        """Give."""
        return give()

    result = await run(give if in_thread else give_later)
    assert done == [1]
    assert (result.call_id, result.is_error, result.details) == ("c1", True, None)
    assert "Not run" not in result.text


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


RAISED: dict[str, tuple[Callable[[], BaseException], str]] = {
    "an error": (lambda: ValueError("bad luck"), "ValueError: bad luck"),
    "an error without text": (lambda: ValueError(), "ValueError"),
    "an error whose text raises": (lambda: Mute(), "Mute"),
    "an error with half a surrogate pair": (lambda: OSError("caf\udce9"), "OSError: caf\\udce9"),
    "a wrong argument inside": (lambda: ToolArgumentsError("of another tool"), "ToolArgumentsError: of another tool"),
    "StopIteration": (lambda: StopIteration(1), "RuntimeError: coroutine raised StopIteration"),
    "StopAsyncIteration": (lambda: StopAsyncIteration(), "StopAsyncIteration"),
    "SystemExit": (lambda: SystemExit(2), "SystemExit: 2"),
    "a group": (lambda: BaseExceptionGroup("both", [SystemExit(1)]), "BaseExceptionGroup: both (1 sub-exception)"),
    "a kind of its own": (lambda: type("Odd", (BaseException,), {})("x"), "Odd: x"),
}


@pytest.mark.parametrize(("make", "text"), RAISED.values(), ids=RAISED)
@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_tool_that_raises_is_a_paired_error(
    make: Callable[[], BaseException], text: str, in_thread: bool
) -> None:
    def fail() -> None:
        """Fail."""
        raise make()

    async def fail_later() -> None:
        """Fail."""
        raise make()

    fail_later.__name__ = "fail"
    result = await run(fail if in_thread else fail_later)
    assert result == ToolResultMessage("c1", "fail", f"fail failed: {text}", is_error=True)


@pytest.mark.parametrize("in_thread", [False, True])
async def test_a_leaked_cancellation_is_a_paired_error(in_thread: bool) -> None:
    for leaked in (await a_foreign_cancellation(), asyncio.CancelledError()):

        def leak(leaked: BaseException = leaked) -> None:
            raise leaked

        def in_a_thread() -> None:
            """Leak."""
            leak()

        async def in_the_loop() -> None:
            """Leak."""
            leak()

        result = await run(in_a_thread if in_thread else in_the_loop)
        assert result.is_error
        assert result.text.startswith("in_")
        await anyio.lowlevel.checkpoint()  # nobody here is cancelled


async def test_keyboard_interrupt_is_no_result() -> None:
    async def interrupted() -> None:
        """Ctrl+C."""
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await run(interrupted)


# a plain function runs in a thread, and is waited for


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_does_not() -> None:
    threads: list[int] = []

    def plain() -> None:
        """Plain."""
        threads.append(threading.get_ident())

    async def later() -> None:
        """Async."""
        threads.append(threading.get_ident())

    await run(plain)
    await run(later)
    assert threads[0] != threads[1] == threading.get_ident()


async def test_what_a_wrapped_function_returns_is_awaited_in_the_loop() -> None:
    async def add_later(a: int) -> tuple[int, bool]:
        """Add."""
        await anyio.lowlevel.checkpoint()
        return a + 1, threading.get_ident() == loop_thread

    @functools.wraps(add_later)
    def wrapped(*args: Any, **keywords: Any) -> Any:
        return add_later(*args, **keywords)

    loop_thread = threading.get_ident()
    assert (await run(wrapped, a=1)).details == (2, True)


async def test_a_plain_function_is_waited_for_when_a_scope_around_it_is_cancelled() -> None:
    begun, go = anyio.Event(), threading.Event()
    token = anyio.lowlevel.current_token()
    ended: list[str] = []

    def work() -> str:
        """Work."""
        anyio.from_thread.run_sync(begun.set, token=token)
        assert go.wait(PATIENCE)
        ended.append("the function")
        return "done"

    async def call() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await run(work)
        ended.append("the call")

    scopes: list[anyio.CancelScope] = []
    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await begun.wait()
        scopes[0].cancel()
        await turn_over()
        assert ended == []
        go.set()
    assert ended == ["the function", "the call"]
