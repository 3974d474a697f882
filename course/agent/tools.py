"""Tools: a function becomes a JSON schema, checked arguments and a result that is always paired with its call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from types import MappingProxyType
from typing import Any, get_type_hints

import anyio.to_thread
import msgspec
from anyio import CapacityLimiter, get_cancelled_exc_class

from course.agent.errors import MessageError, ToolArgumentsError, ToolDefinitionError, error_text
from course.agent.messages import ToolCall, ToolResultMessage, freeze_json
from course.agent.model import ToolSpec
from course.agent.signal import Signal
from course.agent.tasks import is_failure

Progress = Callable[[str], None]

_GIVEN = ("signal", "progress")  # parameters that the round fills in; they are no part of a schema


class Tool(msgspec.Struct, frozen=True):
    """A function that a model may call. Make one with `tool`.

    `spec` is what a model is told. `arguments` is the type that a call's arguments are converted to; its fields
    are the function's parameters. `given` names which of `signal` and `progress` the function takes. `in_thread`
    tells that it is a plain function, which runs in a worker thread.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    arguments: type[msgspec.Struct]
    given: tuple[str, ...] = ()
    in_thread: bool = False

    @property
    def name(self) -> str:
        return self.spec.name

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function. Raises ToolArgumentsError naming the path of what does not fit."""
        try:
            checked = msgspec.convert(arguments, self.arguments)
        except Exception as error:  # a type's own __post_init__ may raise anything
            raise ToolArgumentsError(f"arguments of {self.name}: {error_text(error)}") from error
        return {field: getattr(checked, field) for field in checked.__struct_fields__}

    async def run(self, keywords: dict[str, Any], *, signal: Signal, progress: Progress) -> Any:
        """Call the function with what `check` gave; what it returns or raises is passed on as it is.

        A plain function runs in a thread of its own and is waited for, even when a scope around it is cancelled.
        """
        given = {"signal": signal, "progress": progress}
        keywords = keywords | {name: given[name] for name in self.given}
        if not self.in_thread:
            return await self.function(**keywords)
        limiter = CapacityLimiter(1)  # not the shared one of 40 threads: calls of one turn run side by side
        value, error = await anyio.to_thread.run_sync(_call_in_thread, self.function, keywords, limiter=limiter)
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value


def tool(function: Callable[..., Any]) -> Tool:
    """The tool that this function is: its name, its docstring as the description, its signature as the schema.

    Parameters named `signal` and `progress` are filled in and not part of the schema. Raises ToolDefinitionError
    for `*args`, `**kwargs`, positional-only parameters, a missing docstring, types that have no JSON schema, and
    anything that is not a function.
    """
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise ToolDefinitionError(f"a tool is made from a function; write `def` around this: {function!r}")
    name = function.__name__
    description = inspect.getdoc(function)
    if not description:
        raise ToolDefinitionError(f"{name} needs a docstring: it is all a model knows of the tool")
    fields, given = _parameters(name, function)
    try:
        arguments = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        spec = ToolSpec(name, description, _inline(msgspec.json.schema(arguments)))
    except Exception as error:
        raise ToolDefinitionError(f"{name}: no JSON schema for its signature: {error_text(error)}") from error
    return Tool(spec, function, arguments, given, in_thread=not inspect.iscoroutinefunction(function))


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

    def in_thread(self, name: str) -> bool:
        """Whether a call of this name runs in a worker thread."""
        return name in self._tools and self._tools[name].in_thread

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
            keywords = found.check(call.arguments)
        except ToolArgumentsError as error:
            return error_result(call, f"Not run: {error}.")
        try:
            return value_result(call, await found.run(keywords, signal=signal, progress=progress))
        except get_cancelled_exc_class() as error:
            if not is_failure(error):
                raise
            return error_result(call, f"{call.name} failed: it was cancelled, and not by this run")
        except BaseException as error:
            if not is_failure(error):
                raise
            kind, text = type(error).__name__, error_text(error)
            return error_result(call, f"{call.name} failed: {text if text == kind else f'{kind}: {text}'}")


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
    return ToolResultMessage(call.id, call.name, text, is_error=True)


def _parameters(name: str, function: Callable[..., Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The fields of a tool's arguments, and which given parameters it takes."""
    fields: list[Any] = []
    given: list[str] = []
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:  # annotations are code, and may fail in any way
        raise ToolDefinitionError(f"{name}: its annotations cannot be read: {error_text(error)}") from error
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ToolDefinitionError(f"{name}: name each parameter; {parameter} has no JSON schema")
        if parameter.name in _GIVEN:
            given.append(parameter.name)
            continue
        field = (parameter.name, hints.get(parameter.name, Any))
        fields.append(field if parameter.default is parameter.empty else (*field, parameter.default))
    return fields, tuple(given)


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as models expect it: an object at the top, with no reference to itself."""
    definitions = dict(schema.get("$defs", {}))
    top = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    top = {key: value for key, value in top.items() if key != "title"}
    return {**top, "$defs": definitions} if definitions else top


def _call_in_thread(function: Callable[..., Any], keywords: dict[str, Any]) -> tuple[Any, BaseException | None]:
    """Call in a worker thread. The error travels as a value: a raised StopIteration or SystemExit would not arrive."""
    try:
        return function(**keywords), None
    except BaseException as error:
        return None, error
