"""Props for a notebook's cells: answers and tools that wait for a word, so that every cell decides what comes first."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

import anyio

from course.agent.events import AgentEvent
from course.agent.messages import Message, ToolResultMessage, UserMessage
from course.agent.model import Chunk, ModelRequest, say
from course.agent.signal import Signal
from course.agent.tools import Tool, tool


class Held:
    """An answer that the model holds back: the request sets `asked`, and a cell sets `release`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked = anyio.Event()
        self.release = anyio.Event()

    async def __call__(self, request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        self.asked.set()
        await self.release.wait()
        for chunk in say(self.text):
            yield chunk


def slow_tool(name: str, result: str) -> tuple[Tool, anyio.Event]:
    """A tool that returns `result` once its gate is set, and the gate."""
    gate = anyio.Event()

    async def wait() -> str:
        await gate.wait()
        return result

    wait.__name__, wait.__doc__ = name, f"Return {result!r}, later."
    return tool(wait), gate


async def until(run: AsyncIterable[AgentEvent], type: str, count: int = 1) -> None:
    """Return once events of this type have come `count` times. Raises LookupError when the run ends before."""
    async for event in run:
        count -= event.type == type
        if count == 0:
            return
    raise LookupError(f"the run ended, and {type} has not come as often as that")


def show(messages: Iterable[Message]) -> None:
    """Print a transcript, one line a message."""
    for message in messages:
        print(_line(message))


def _line(message: Message) -> str:
    if isinstance(message, UserMessage):
        return f"user      {message.text}"
    if isinstance(message, ToolResultMessage):
        return f"tool      {message.name}: {message.text}"
    if message.stop_reason == "error":
        return f"assistant failed: {message.error}"
    return f"assistant {message.text or 'calls ' + ', '.join(call.name for call in message.calls)}"
