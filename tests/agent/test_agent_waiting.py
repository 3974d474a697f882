"""Around a run: who waits for it, agents inside agents' tools, and context variables."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator
from contextvars import ContextVar

import anyio
import anyio.from_thread
import pytest
from stage import (
    Held,
    Home,
    StrictModel,
    answer_never,
    in_every_home,
)

from course.agent import (
    Agent,
    Chunk,
    ModelRequest,
    Signal,
    ToolRegistry,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]


async def test_a_timeout_around_the_stream_leaves_the_run_alive(home: Home) -> None:
    held = Held(say("hi"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        stream = agent.prompt("hello")
        await held.begun.wait()
        with anyio.move_on_after(0) as scope:
            await stream
        assert scope.cancelled_caught
        assert agent.is_running
        held.go.set()
        assert (await stream).final_text == "hi"


async def test_a_reader_who_leaves_after_one_event_leaves_nothing_behind(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        stream = agent.prompt("hello")
        async for event in stream:
            assert event.type == "run_start"
            break
        gc.collect()
        assert (await stream).status == "completed"
        assert [event.sequence async for event in stream] == [0, 1, 2, 3, 4, 5]


async def test_an_agent_may_be_used_inside_another_ones_tool(home: Home) -> None:
    @tool
    async def ask_expert(question: str) -> str:
        """Ask somebody who knows."""
        async with Agent(
            model=StrictModel([call("c1", "look_up"), say("42")]), tools=ToolRegistry([look_up])
        ) as expert:
            answer = await expert.prompt(question)
            await expert.aclose()
            return answer.final_text or ""

    @tool
    async def look_up() -> str:
        """Look it up, and try to close the agent that asks."""
        with pytest.raises(RuntimeError, match="would wait for itself"):
            await agent.aclose()
        return "looked up"

    model = StrictModel([call("c1", "ask_expert", question="6 * 7?"), say("It is 42.")])
    async with home(Agent(model=model, tools=ToolRegistry([ask_expert]))) as agent:
        assert (await agent.prompt("6 * 7?")).final_text == "It is 42."
        assert [getattr(message, "text", "") for message in agent.messages][2] == "42"


async def test_cancelling_the_outer_agent_reaches_the_inner_one_through_the_signal(home: Home) -> None:
    inner_results = []

    @tool
    async def delegate(signal) -> str:
        """Hand the work on, and stop it when we are stopped."""
        async with Agent(model=StrictModel([answer_never])) as inner, anyio.create_task_group() as group:
            stream = inner.prompt("work")
            begun.set()
            await signal.wait()
            inner.cancel(signal.reason)
            inner_results.append(await stream)
            group.cancel_scope.cancel()
        return "stopped"

    begun = anyio.Event()
    async with home(Agent(model=StrictModel([call("c1", "delegate")]), tools=ToolRegistry([delegate]))) as agent:
        stream = agent.prompt("go")
        await begun.wait()
        agent.cancel("enough")
        assert (await stream).reason == inner_results[0].reason == "enough"


colour: ContextVar[str] = ContextVar("colour", default="none")


async def test_a_run_sees_the_context_of_its_prompt_and_changes_it_for_nobody_else(home: Home) -> None:
    seen: dict[str, str] = {}

    async def look(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        seen["model"] = colour.get()
        for chunk in [*call("c1", "paint")[:-1], *call("c2", "paint_in_a_thread")]:
            yield chunk

    @tool
    async def paint() -> str:
        """Paint."""
        seen["tool"] = colour.get()
        colour.set("green")
        return "painted"

    @tool
    def paint_in_a_thread() -> str:
        """Paint in a thread."""
        seen["thread"] = colour.get()
        colour.set("blue")
        return "painted"

    model = StrictModel([look, say("done"), look, say("done")])
    async with home(Agent(model=model, tools=ToolRegistry([paint, paint_in_a_thread]))) as agent:
        for wanted in ("red", "yellow"):
            colour.set(wanted)
            await agent.prompt("go")
            assert seen == {"model": wanted, "tool": wanted, "thread": wanted}
            assert colour.get() == wanted
