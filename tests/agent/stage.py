"""What the Agent's tests play on: a strict model, answers that are held back, tools, and the homes of an Agent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
import anyio.lowlevel
import pytest

from course.agent import (
    Agent,
    AgentEvent,
    AssistantMessage,
    Chunk,
    Done,
    Message,
    ModelRequest,
    RunEndEvent,
    ScriptedModel,
    Signal,
    ToolResultMessage,
    UserMessage,
)

PATIENCE = 20  # seconds until a hanging test fails; nothing waits for it

Home = Callable[[Agent], AbstractAsyncContextManager[Agent]]


class StrictModel(ScriptedModel):
    """A scripted model that refuses what strict servers refuse, by rules of its own.

    `refused` lists what was wrong; a refused request fails its run. A request past the script gets `beyond`.
    """

    def __init__(self, script: Iterable[object], *, beyond: Sequence[Chunk] = ()) -> None:
        super().__init__(script)  # type: ignore[arg-type]
        self.refused: list[str] = []
        self._beyond = beyond

    def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
        problem = unpaired(request.messages) or badly_ended(request.messages)
        if problem:
            self.refused.append(f"{request.id}: {problem}")
            raise ValueError(problem)
        if self._beyond and len(self.requests) == len(self._script):
            self._script.append(tuple(self._beyond))
        return super().stream(request, signal=signal)

    def go_beyond(self) -> None:
        """Leave what is left of the script; every request from now on gets `beyond`."""
        self._script.clear()
        self.requests.clear()


def unpaired(messages: Iterable[Message]) -> str:
    """What stands between calls and their results, or is missing; "" when every call has one result, in order."""
    awaited: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolResultMessage):
            if awaited[:1] != [message.call_id]:
                return f"message {place} is the result of {message.call_id}, awaited were {awaited}"
            awaited.pop(0)
        elif awaited:
            return f"message {place} stands before the results of {awaited}"
        elif isinstance(message, AssistantMessage):
            awaited = [call.id for call in message.calls]
    return f"no results of {awaited}" if awaited else ""


def badly_ended(messages: Sequence[Message]) -> str:
    if any(isinstance(message, AssistantMessage) and message.stop_reason == "error" for message in messages):
        return "a failed answer was sent"
    if not messages or isinstance(messages[-1], AssistantMessage):
        return "there is nothing to answer"
    return ""


class Held:
    """An answer that a model begins and gives once `go` is set."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        self.chunks = list(chunks)
        self.begun = anyio.Event()
        self.go = anyio.Event()

    async def __call__(self, request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        self.begun.set()
        await self.go.wait()
        for chunk in self.chunks:
            yield chunk


class HeldTool:
    """`wait`, a tool that ends once `go` is set, whatever its run's signal says; `signal` is the one it was given."""

    def __init__(self, answer: str = "waited") -> None:
        self.begun = anyio.Event()
        self.go = anyio.Event()
        self.signal: Signal | None = None
        self.answer = answer

    async def wait(self, signal: Signal) -> str:
        """Wait."""
        self.signal = signal
        self.begun.set()
        await self.go.wait()
        return self.answer


async def raise_at_once(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
    """A model that fails before its first chunk."""
    raise ConnectionError("no line")
    yield Done("stop")


async def answer_never(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
    """A model that waits until it is interrupted."""
    await anyio.sleep_forever()
    yield Done("stop")


def texts(messages: Iterable[Message]) -> list[str]:
    """What each message says, in a form that is quick to read: `u:hello`, `a:hi`, `a:hi+c1`, `t:c1`, `error`."""
    return [_text(message) for message in messages]


def _text(message: Message) -> str:
    if isinstance(message, UserMessage):
        return f"u:{message.text}"
    if isinstance(message, ToolResultMessage):
        return f"t:{message.call_id}"
    if message.stop_reason == "error":
        return "error"
    return "+".join([f"a:{message.text}", *[call.id for call in message.calls]])


def recorded(agent: Agent) -> list[AgentEvent]:
    """A list that every event of this agent is added to, from now on."""
    events: list[AgentEvent] = []
    agent.subscribe(events.append)
    return events


def names(events: Iterable[AgentEvent]) -> list[str]:
    return [event.type for event in events]


def ends(events: list[AgentEvent]) -> list[tuple[str, str | None]]:
    """The status and the cancel's reason of each run that ended."""
    return [(event.result.status, event.result.reason) for event in events if isinstance(event, RunEndEvent)]


async def turn_over() -> None:
    """Let every task that can run do so a few times. For "nothing more happens"; what must happen has its Event."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def in_block(agent: Agent) -> AsyncIterator[Agent]:
    with anyio.fail_after(PATIENCE):
        async with agent:
            yield agent


@asynccontextmanager
async def bare(agent: Agent) -> AsyncIterator[Agent]:
    """An agent that nobody entered, as in a notebook."""
    with anyio.fail_after(PATIENCE):
        yield agent
        await agent.aclose()


in_every_home = pytest.mark.parametrize(
    ("anyio_backend", "home"),
    [("asyncio", in_block), ("asyncio", bare), ("trio", in_block)],
    ids=["asyncio", "asyncio-bare", "trio"],
)
"""For tests that take `home`: in a block on both backends, and bare on asyncio, where that is allowed."""
