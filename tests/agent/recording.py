"""What the tests of the layers below the Agent share: emitters that keep events, and runs of the bare loop."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from stage import PATIENCE, unpaired

from course.agent import (
    AgentEvent,
    Emitter,
    Message,
    Model,
    RunResult,
    Tool,
    ToolRegistry,
    TurnEndEvent,
    UserMessage,
    run_agent_loop,
)

React = Callable[[AgentEvent], object]

GO = UserMessage("go")

on_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""For what only asyncio has: a task that anybody may cancel."""


def recorder(react: React = lambda event: None) -> tuple[list[AgentEvent], Emitter]:
    """A list, and an emitter that adds each event to it and then shows it to `react`."""
    events: list[AgentEvent] = []

    def publish(event: AgentEvent) -> None:
        events.append(event)
        react(event)

    return events, Emitter("run-1", publish)


class Loop:
    """One run of the bare loop: `await run()` gives its result, and proves the pairs of every transcript it told."""

    def __init__(
        self,
        model: Model,
        *tools: Tool,
        context: Iterable[Message] = (GO,),
        react: React = lambda event: None,
        **options: Any,
    ) -> None:
        self.events, self._emit = recorder(react)
        self._context = context
        self._options = {"model": model, "tools": ToolRegistry(tools), **options}

    async def run(self) -> RunResult:
        try:
            with anyio.fail_after(PATIENCE):
                result = await run_agent_loop(self._context, emit=self._emit, **self._options)
        finally:
            for event in self.events:
                if isinstance(event, TurnEndEvent):
                    assert unpaired(event.messages) == ""
        assert unpaired(result.messages) == ""
        return result

    @property
    def names(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def told(self) -> tuple[Message, ...]:
        """The transcript that the last `turn_end` told of."""
        return [tuple(event.messages) for event in self.events if isinstance(event, TurnEndEvent)][-1]


async def a_foreign_cancellation() -> BaseException:
    """A real cancellation of this backend, caught where it belonged: raised anew, nobody around asked for it."""
    kept: list[BaseException] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.lowlevel.checkpoint()
        except anyio.get_cancelled_exc_class() as error:
            kept.append(error)
            raise
    return kept[0]


class _Watch(selectors.DefaultSelector):
    """Counts the event loop's rounds until it has nothing to do but wait, or has made `most` rounds; then releases."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.rounds = 0
        self.most = most
        self.release: Callable[[], object] | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if self.release is not None:
            self.rounds += 1
            if timeout is None or timeout > 0 or self.rounds >= self.most:
                self.release()
                self.release = None
                timeout = 0  # there is something to do now
        return super().select(timeout)


def rounds_until_idle(start: Callable[[Callable[[Callable[[], object]], None]], Any], most: int = 2000) -> int:
    """Run `start(on_idle)` on an asyncio loop of its own; the rounds that the loop made until it was idle.

    `start` calls `on_idle(release)` once it is stuck. Rounds are counted from then on, and `release` is called when
    the loop has nothing to do but wait. A loop that spins never has, and is released after `most` rounds.
    """
    watch = _Watch(most)

    def on_idle(release: Callable[[], object]) -> None:
        watch.release = release

    async def main() -> int:
        with suppress(asyncio.CancelledError):
            await start(on_idle)
        return watch.rounds

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        return runner.run(main())
