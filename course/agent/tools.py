"""Tools: a function becomes a JSON schema, checked arguments and a result that is always paired with its call."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, get_type_hints

import anyio.to_thread
import msgspec
from anyio import get_cancelled_exc_class

from course.agent.errors import MessageError, ToolArgumentsError, ToolDefinitionError
from course.agent.messages import FrozenDict, ToolCall, ToolResultMessage, freeze_json
from course.agent.model import ToolSpec
from course.agent.signal import Signal
from course.agent.tasks import cancelled_from_outside

Progress = Callable[[str], None]

_GIVEN = ("signal", "progress")  # parameters that the round fills in; they are no part of a schema


class Tool(msgspec.Struct, frozen=True):
    """A function that a model may call. Make one with `tool`.

    `spec` is what a model is told. `arguments` is the type that a call's arguments are converted to; its fields
    are the function's parameters. `given` names which of `signal` and `progress` the function takes.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[msgspec.Struct]
    given: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.spec.name

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function. Raises ToolArgumentsError naming the path of what does not fit."""
        try:
            checked = msgspec.convert(arguments, self.arguments)
        except msgspec.ValidationError as error:
            raise ToolArgumentsError(f"arguments of {self.name}: {error}") from error
        return {field: getattr(checked, field) for field in checked.__struct_fields__}

    async def run(self, arguments: dict[str, Any], *, signal: Signal, progress: Progress) -> Any:
        """Check the arguments and call the function; what it returns or raises is passed on as it is.

        A plain function runs in a thread and is waited for, even when the run around it is cancelled.
        """
        keywords = self.check(arguments)
        for name in self.given:
            keywords[name] = signal if name == "signal" else progress
        if inspect.iscoroutinefunction(self.function):
            return await self.function(**keywords)
        value, error = await anyio.to_thread.run_sync(_call_in_thread, self.function, keywords)
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value


def tool(function: Callable[..., Any]) -> Tool:
    """The tool that this function is: its name, its docstring as the description, its signature as the schema.

    Parameters named `signal` and `progress` are filled in and not part of the schema. Raises ToolDefinitionError
    for `*args`, `**kwargs`, positional-only parameters, a missing docstring, and types that have no JSON schema.
    """
    name = getattr(function, "__name__", type(function).__name__)
    description = inspect.getdoc(function)
    if not description:
        raise ToolDefinitionError(f"{name} needs a docstring: it is all a model knows of the tool")
    fields, given = _parameters(name, function)
    try:
        arguments = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        schema = _inline(msgspec.json.schema(arguments))
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{name}: no JSON schema for its signature: {error}") from error
    return Tool(ToolSpec(name, description, schema), function, arguments, given)


class ToolRegistry:
    """Tools by name, in the order in which they were registered."""

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for each in tools:
            self.register(each)

    def register(self, new: Tool | Callable[..., Any]) -> None:
        """Add a tool, or the tool that a function is. Raises ToolDefinitionError for a name that is taken."""
        new = new if isinstance(new, Tool) else tool(new)
        if new.name in self._tools:
            raise ToolDefinitionError(f"a tool named {new.name!r} is registered already; rename one of the two")
        self._tools[new.name] = new

    def snapshot(self) -> ToolSnapshot:
        """The tools as they are now. Registering more later does not change it."""
        return ToolSnapshot(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))


class ToolSnapshot:
    """An immutable set of tools, and how to run a call with them."""

    def __init__(self, tools: dict[str, Tool]) -> None:
        self._tools = MappingProxyType(dict(tools))
        self.specs = tuple(each.spec for each in tools.values())

    def snapshot(self) -> ToolSnapshot:
        return self

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    async def run(self, call: ToolCall, *, signal: Signal, progress: Progress) -> ToolResultMessage:
        """The result of one call, with the call's own id and name, whatever happened.

        An unknown tool, arguments that do not fit, a function that raises (SystemExit and a cancellation of its
        own included) and a value that is not strict JSON all give a result with `is_error`. Only a cancellation
        from outside and KeyboardInterrupt are passed on.
        """
        found = self._tools.get(call.name)
        if found is None:
            known = ", ".join(self._tools) or "none"
            return error_result(call, f"There is no tool {call.name!r}. The tools are: {known}.")
        try:
            value = await found.run(call.arguments, signal=signal, progress=progress)
        except ToolArgumentsError as error:
            return error_result(call, f"Not run: {error}.")
        except (Exception, SystemExit) as error:
            return error_result(call, f"{call.name} failed: {type(error).__name__}: {error}")
        except get_cancelled_exc_class():
            if cancelled_from_outside():
                raise
            return error_result(call, f"{call.name} failed: it was cancelled, and not by this run")
        return value_result(call, value)


def value_result(call: ToolCall, value: object) -> ToolResultMessage:
    """The result of a call that returned: text as it is; any other value as JSON, in `text` and `details` alike."""
    try:
        if type(value) is str:
            return ToolResultMessage(call.id, call.name, value)
        details = freeze_json(value)
        return ToolResultMessage(call.id, call.name, msgspec.json.encode(details).decode(), details=details)
    except MessageError as error:
        return error_result(call, f"{call.name} ran, but its result cannot be passed on: {error}")


def error_result(call: ToolCall, text: str) -> ToolResultMessage:
    """The result of a call that has no value. It says nothing about side effects: they are not undone."""
    printable = text.encode("utf-8", "backslashreplace").decode()
    return ToolResultMessage(call.id, call.name, printable, is_error=True)


def _parameters(name: str, function: Callable[..., Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The fields of a tool's arguments, and which given parameters it takes."""
    fields: list[Any] = []
    given: list[str] = []
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise ToolDefinitionError(f"{name}: {error} in its annotations") from error
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(f"{name}: name each parameter; {parameter} has no JSON schema")
        if parameter.name in _GIVEN:
            given.append(parameter.name)
            continue
        field = (parameter.name, hints.get(parameter.name, Any))
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    return fields, tuple(given)


def _inline(schema: dict[str, Any]) -> FrozenDict:
    """The schema as models expect it: an object at the top, with no reference to itself."""
    definitions = dict(schema.get("$defs", {}))
    top = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    top = {key: value for key, value in top.items() if key != "title"}
    frozen = freeze_json({**top, "$defs": definitions} if definitions else top)
    assert isinstance(frozen, FrozenDict)
    return frozen


def _call_in_thread(
    function: Callable[..., Any], keywords: dict[str, Any]
) -> tuple[Any | Awaitable[Any], BaseException | None]:
    """Call in a worker thread. The error travels as a value: a raised StopIteration or SystemExit would not arrive."""
    try:
        return function(**keywords), None
    except BaseException as error:
        return None, error
