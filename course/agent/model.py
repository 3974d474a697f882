"""The Model protocol, the chunks a model streams, and a model that follows a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, Protocol

import anyio.lowlevel
import msgspec

from course.agent.errors import ScriptError
from course.agent.messages import freeze_json
from course.agent.signal import Signal
from course.agent.transcript import Transcript


class TextDelta(msgspec.Struct, frozen=True):
    """A piece of text."""

    text: str


class ToolCallStart(msgspec.Struct, frozen=True):
    """The model begins a tool call. `call_id` is new in this response."""

    call_id: str
    name: str


class ToolCallDelta(msgspec.Struct, frozen=True):
    """A piece of a call's arguments, as JSON text; the pieces make one object. No pieces at all mean `{}`."""

    call_id: str
    json: str


class Done(msgspec.Struct, frozen=True):
    """The response is whole. `usage` counts tokens where the model tells, by the provider's own names.

    A stop reason of "error" makes the request fail; raising an error that says why is better.
    """

    stop_reason: str
    usage: dict[str, int] | None = None


Chunk = TextDelta | ToolCallStart | ToolCallDelta | Done


class ToolSpec(msgspec.Struct, frozen=True):
    """What a model is told of a tool: `schema` is the JSON schema of its arguments, frozen."""

    name: str
    description: str
    schema: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "schema", freeze_json(self.schema, "$.schema"))


class ModelRequest(msgspec.Struct, frozen=True):
    """One request to a model. `id` is "request-1", "request-2", … within a run."""

    id: str
    system: str
    messages: Transcript
    tools: tuple[ToolSpec, ...]


class Model(Protocol):
    """Anything that answers a request with a stream of chunks."""

    def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
        """An async iterator of chunks that ends with one Done.

        It is read in the run's task and closed there on every path. When `signal` is set the read is cancelled;
        a model may also look at the signal itself. Clean-up that waits needs a shield of its own where the cancel
        finds the model waiting: `with anyio.CancelScope(shield=True)` in its `finally`. What it raises becomes a
        failed request.
        """
        ...


class FixedModel(msgspec.Struct, frozen=True):
    """A model of which only the method is kept: replacing `model.stream` later changes nothing here."""

    stream: Callable[..., AsyncIterator[Chunk]]


Script = Iterable[Chunk] | Callable[[ModelRequest, Signal], AsyncIterator[Chunk]]


class ScriptedModel:
    """A model that gives the responses of a script, one entry a request.

    An entry is chunks, or a function `(request, signal)` that returns an async iterator of chunks. In a list of
    chunks every Done but the last is dropped, so that `[*say("Adding."), *call("c1", "add", a=1, b=2)]` is one
    response; a list without Done stays the broken stream that it is. `requests` holds every request seen. Asking
    for more than the script holds raises ScriptError.
    """

    def __init__(self, script: Iterable[Script]) -> None:
        self._script = [entry if callable(entry) else _joined(entry) for entry in script]
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        await anyio.lowlevel.checkpoint()  # as a real model would, let the rest of the program run
        if len(self.requests) > len(self._script):
            raise ScriptError(
                f"the script holds {len(self._script)} responses and this is request {len(self.requests)}; "
                "add an entry, or look for a loop that asks once too often"
            )
        entry = self._script[len(self.requests) - 1]
        if not callable(entry):
            for chunk in entry:
                yield chunk
            return
        chunks = entry(request, signal)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()


def say(text: str) -> list[Chunk]:
    """The chunks of an answer in text: the text, then Done("stop")."""
    return [TextDelta(text), Done("stop")]


def call(call_id: str, name: str, /, **arguments: Any) -> list[Chunk]:
    """The chunks of a tool call: start, the arguments, then Done("tool_use"). MessageError for what is not JSON."""
    json = msgspec.json.encode(freeze_json(arguments)).decode()
    return [ToolCallStart(call_id, name), ToolCallDelta(call_id, json), Done("tool_use")]


def _joined(chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
    """The chunks, without every Done that another one follows."""
    chunks = tuple(chunks)
    last = max((place for place, chunk in enumerate(chunks) if isinstance(chunk, Done)), default=None)
    return tuple(chunk for place, chunk in enumerate(chunks) if not isinstance(chunk, Done) or place == last)
