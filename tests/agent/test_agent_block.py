"""A block that owns an Agent's tasks: `async with agent`, and every way to leave it (promise 33)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import anyio
import anyio.from_thread
import pytest
from stage import (
    HeldTool,
    Home,
    StrictModel,
    answer_never,
    ends,
    in_block,
    in_every_home,
    recorded,
    texts,
    turn_over,
)

from course.agent import (
    Agent,
    AgentEvent,
    Chunk,
    Done,
    ModelRequest,
    Signal,
    ToolRegistry,
    call,
    say,
    tool,
)

pytestmark = pytest.mark.anyio

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


async def test_leaving_the_block_cancels_the_run_and_waits_until_it_has_settled() -> None:
    settled: list[str] = []

    @tool
    async def careful(signal) -> str:
        """Stop in good order."""
        begun.set()
        await signal.wait()
        await turn_over()
        settled.append(signal.reason)
        return "stopped"

    begun = anyio.Event()
    agent = Agent(model=StrictModel([call("c1", "careful")]), tools=ToolRegistry([careful]))
    heard = recorded(agent)
    async with agent:
        agent.prompt("go")
        await begun.wait()
    assert settled == ["the agent was closed"]
    assert ends(heard) == [("cancelled", "the agent was closed")]
    assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1"]
    assert (agent.is_running, agent.state.status) == (False, "idle")


async def test_leaving_the_block_with_return_gives_back_the_value() -> None:
    async def ask() -> str | None:
        async with Agent(model=StrictModel([say("hi"), answer_never])) as agent:
            answer = await agent.prompt("hello")
            agent.prompt("and?")
            return answer.final_text

    assert await ask() == "hi"


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("k"), KeyboardInterrupt(), SystemExit(1)])
async def test_an_exception_in_the_block_comes_out_as_itself_with_the_run_settled(error: BaseException) -> None:
    agent = Agent(model=StrictModel([answer_never]))
    heard = recorded(agent)

    async def use_it() -> None:
        async with in_block(agent):
            agent.prompt("go")
            await turn_over()
            raise error

    with pytest.raises(type(error)) as raised:
        await use_it()
    assert raised.value is error
    assert [status for status, _ in ends(heard)] == ["cancelled"]
    assert not agent.is_running


async def test_an_exception_in_the_block_ends_a_tool_that_would_not_stop() -> None:
    held = HeldTool()
    agent = Agent(model=StrictModel([call("c1", "wait")]), tools=ToolRegistry([held.wait]))

    async def use_it() -> None:
        async with in_block(agent):
            agent.prompt("go")
            await held.begun.wait()
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        await use_it()
    assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1"]


@pytest.mark.parametrize("idle", [True, False], ids=["idle", "running"])
async def test_a_cancelled_scope_around_the_block_settles_the_run_and_goes_on_outwards(idle: bool) -> None:
    agent = Agent(model=StrictModel([answer_never]))
    heard = recorded(agent)
    with anyio.CancelScope() as scope:
        async with agent:
            if not idle:
                agent.prompt("go")
                await turn_over()
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert ends(heard) == ([] if idle else [("cancelled", "cancelled from outside")])
    assert not agent.is_running


async def test_a_timeout_while_the_block_waits_for_a_stubborn_tool_ends_it_and_is_not_swallowed() -> None:
    held = HeldTool()
    agent = Agent(model=StrictModel([call("c1", "wait")]), tools=ToolRegistry([held.wait]))
    with anyio.CancelScope() as scope:
        async with agent:
            agent.prompt("go")
            await held.begun.wait()
            scope.deadline = anyio.current_time()  # is due while the block is being left
        await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1"]
    assert not agent.is_running


@only_asyncio
@pytest.mark.parametrize("waits_in", ["body", "exit"])
async def test_a_native_cancel_of_the_task_that_holds_the_block_settles_the_run(
    anyio_backend: str, waits_in: str
) -> None:
    held = HeldTool()
    agent = Agent(model=StrictModel([call("c1", "wait")]), tools=ToolRegistry([held.wait]))

    async def hold() -> None:
        async with agent:
            agent.prompt("go")
            await held.begun.wait()
            if waits_in == "body":
                await asyncio.Event().wait()

    task = asyncio.get_running_loop().create_task(hold())
    await held.begun.wait()
    await turn_over()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1"]
    assert not agent.is_running


async def test_a_run_that_fails_raises_nothing_into_the_block() -> None:
    async def fail(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        raise SystemExit("as bad as it gets")
        yield Done("stop")

    async with Agent(model=StrictModel([fail, say("hi")])) as agent:
        assert (await agent.prompt("hello")).status == "failed"
        assert (await agent.prompt("again")).status == "completed"


@in_every_home
async def test_entering_twice_is_refused_and_the_outer_block_goes_on(home: Home) -> None:
    async with Agent(model=StrictModel([say("hi")])) as agent:
        with pytest.raises(RuntimeError, match="entered already"):
            async with agent:
                pass
        assert (await agent.prompt("hello")).status == "completed"


@only_asyncio
@pytest.mark.parametrize("fails", [True, False], ids=["by an exception", "in order"])
async def test_a_block_entered_during_a_bare_run_ends_that_run_too(anyio_backend: str, fails: bool) -> None:
    before = asyncio.all_tasks()
    agent = Agent(model=StrictModel([answer_never]))
    heard = recorded(agent)

    async def listen(event: AgentEvent) -> None:
        if event.type == "run_end":
            await anyio.sleep_forever()

    agent.subscribe(listen)
    agent.prompt("go")
    await turn_over()
    with contextlib.suppress(ValueError):
        async with in_block(agent):
            await turn_over()
            if fails:
                raise ValueError("mine")
    assert [status for status, _ in ends(heard)] == ["cancelled"]
    assert asyncio.all_tasks() == before
