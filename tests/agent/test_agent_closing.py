"""aclose(): who may close an Agent, what it waits for, and what a closed one still does (promise 33)."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator

import anyio
import anyio.from_thread
import pytest
from stage import (
    PATIENCE,
    HeldTool,
    Home,
    StrictModel,
    answer_never,
    in_every_home,
    texts,
    turn_over,
)

from course.agent import (
    Agent,
    AgentClosedError,
    AgentEvent,
    Chunk,
    ModelRequest,
    Signal,
    ToolRegistry,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]


async def test_after_closing_every_way_in_says_so_and_names_the_way_on(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        await agent.prompt("hello")
        await agent.aclose()
        for refused in (
            lambda: agent.prompt("more"),
            agent.continue_,
            lambda: agent.steer("more"),
            lambda: agent.follow_up("more"),
        ):
            with pytest.raises(AgentClosedError, match=r"messages=agent\.messages"):
                refused()
        with pytest.raises(AgentClosedError):
            await agent.__aenter__()
        assert texts(agent.messages) == ["u:hello", "a:hi"]
        assert not agent.cancel()


async def test_closing_cancels_the_run_waits_for_it_and_may_be_done_again_by_anybody(home: Home) -> None:
    held = HeldTool()
    agent = Agent(model=StrictModel([call("c1", "wait")]), tools=ToolRegistry([held.wait]))
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        closed: list[str] = []

        async def close() -> None:
            await agent.aclose()
            closed.append("closed" if not agent.is_running else "too early")

        async with anyio.create_task_group() as group:
            group.start_soon(close)
            group.start_soon(close)
            await turn_over()
            assert closed == []
            held.go.set()
        assert closed == ["closed", "closed"]
        assert (await stream).reason == "the agent was closed"
        await agent.aclose()


async def test_a_run_started_while_closing_is_refused(home: Home) -> None:
    agent = Agent(model=StrictModel([answer_never]))
    async with home(agent):
        agent.subscribe(lambda event: agent.prompt("again") if event.type == "run_end" else None)
        agent.prompt("go")
        await agent.aclose()
        assert [error.error.partition("(")[0] for error in agent.subscriber_errors] == ["AgentClosedError"]
        assert not agent.is_running


async def test_closing_waits_for_a_plain_function_in_its_thread(home: Home) -> None:
    release, ended = threading.Event(), []

    @tool
    def work() -> str:
        """Work in a thread."""
        anyio.from_thread.run_sync(begun.set)
        release.wait(PATIENCE)
        ended.append("work")
        return "worked"

    begun = anyio.Event()
    agent = Agent(model=StrictModel([call("c1", "work")]), tools=ToolRegistry([work]))
    async with home(agent):
        agent.prompt("go")
        await begun.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(agent.aclose)
            await turn_over()
            assert agent.is_running
            release.set()
    assert ended == ["work"]
    assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1"]


@pytest.mark.parametrize("place", ["model", "tool", "thread", "listener"])
async def test_closing_from_inside_a_run_is_a_clear_error_and_the_run_goes_on(home: Home, place: str) -> None:
    @tool
    async def close_it() -> str:
        """Close the agent."""
        if place == "tool":
            await agent.aclose()
        return "still here"

    @tool
    def close_it_in_a_thread() -> str:
        """Close the agent from a thread."""
        if place == "thread":
            anyio.from_thread.run(agent.aclose)
        return "still here"

    async def model_closes(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        if place == "model":
            with pytest.raises(RuntimeError, match=complaint):
                await agent.aclose()
        for chunk in say("done"):
            yield chunk

    async def listen(event: AgentEvent) -> None:
        if place == "listener":
            await agent.aclose()

    complaint = r"aclose\(\) inside a run or a listener .* call cancel\(\)"
    model = StrictModel([[*call("c1", "close_it"), *call("c2", "close_it_in_a_thread")], model_closes])
    async with home(Agent(model=model, tools=ToolRegistry([close_it, close_it_in_a_thread]))) as agent:
        agent.subscribe(listen)
        assert (await agent.prompt("go")).status == "completed"
        await turn_over()
        complaints = [error.error for error in agent.subscriber_errors]
        complaints += [message.text for message in agent.messages if message.text.startswith("close_it")]
        assert all(complaint.partition(" ")[0].replace("\\", "") in text for text in complaints)
        assert bool(complaints) == (place != "model")


async def test_a_task_that_a_listener_started_may_close_the_agent_once_the_run_is_over(home: Home) -> None:
    async with anyio.create_task_group() as group, home(Agent(model=StrictModel([say("hi")]))) as agent:
        closed = anyio.Event()

        async def close() -> None:
            await agent.aclose()
            closed.set()

        def at_the_end(event: AgentEvent) -> None:
            if event.type == "run_end":
                group.start_soon(close)

        agent.subscribe(at_the_end)
        await agent.prompt("hello")
        await closed.wait()
