"""Who owns a run's task, and how an Agent ends (promise 33)."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import anyio
import anyio.from_thread
import pytest
from stage import (
    PATIENCE,
    Held,
    HeldTool,
    Home,
    StrictModel,
    bare,
    in_block,
    in_every_home,
    recorded,
    texts,
    turn_over,
    unpaired,
)

from course.agent import (
    Agent,
    AgentClosedError,
    AgentEvent,
    Chunk,
    Done,
    ModelRequest,
    RunEndEvent,
    Signal,
    ToolRegistry,
    call,
    say,
    tool,
)

pytestmark = pytest.mark.anyio

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
only_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


def ends(events: list[AgentEvent]) -> list[tuple[str, str | None]]:
    """The status and the cancel's reason of each run that ended."""
    return [(event.result.status, event.result.reason) for event in events if isinstance(event, RunEndEvent)]


async def answer_never(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
    """A model that waits until it is interrupted."""
    await anyio.sleep_forever()
    yield Done("stop")


# Leaving a block


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


# Closing


@in_every_home
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


@in_every_home
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


@in_every_home
async def test_a_run_started_while_closing_is_refused(home: Home) -> None:
    agent = Agent(model=StrictModel([answer_never]))
    async with home(agent):
        agent.subscribe(lambda event: agent.prompt("again") if event.type == "run_end" else None)
        agent.prompt("go")
        await agent.aclose()
        assert [error.error.partition("(")[0] for error in agent.subscriber_errors] == ["AgentClosedError"]
        assert not agent.is_running


@in_every_home
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


@in_every_home
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


@in_every_home
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


# Entering


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


# Without a block


@only_trio
async def test_on_trio_without_a_block_a_run_is_refused_and_nothing_is_claimed(anyio_backend: str) -> None:
    agent = Agent(model=StrictModel([say("hi")]))
    heard = recorded(agent)
    agent.steer("quick")
    for start in (lambda: agent.prompt("hello"), agent.continue_):
        with pytest.raises(RuntimeError, match=r"async with Agent\(...\) as agent"):
            start()
    assert (agent.is_running, agent.messages, len(agent.queued), heard) == (False, [], 1, [])
    async with agent:
        await agent.prompt("hello")
    assert texts(agent.messages) == ["u:hello", "u:quick", "a:hi"]


def test_without_any_loop_a_run_is_refused_and_nothing_is_claimed() -> None:
    agent = Agent(model=StrictModel([say("hi")]))
    with pytest.raises(RuntimeError, match="no asyncio event loop is running"):
        agent.prompt("hello")
    assert (agent.is_running, agent.messages) == (False, [])


def test_a_bare_agent_lives_on_from_one_event_loop_to_the_next() -> None:
    agent = Agent(model=StrictModel([say("one"), say("two")]))

    async def ask(text: str) -> str | None:
        return (await agent.prompt(text)).final_text

    assert [asyncio.run(ask("1")), asyncio.run(ask("2"))] == ["one", "two"]


@pytest.mark.parametrize("entry", [answer_never, call("c1", "wait"), say("hi")], ids=["model", "tool", "at once"])
def test_a_loop_that_ends_under_a_run_settles_it(entry: object) -> None:
    agent = Agent(model=StrictModel([entry], beyond=say("later")), tools=ToolRegistry([HeldTool().wait]))
    heard = recorded(agent)

    async def listen(event: AgentEvent) -> None:
        await anyio.sleep_forever()

    async def ask_and_forget() -> None:
        agent.subscribe(listen)
        agent.prompt("hello")

    asyncio.run(ask_and_forget())
    assert ends(heard) == [("cancelled", "cancelled from outside")]
    assert unpaired(agent.messages) == ""

    async def ask() -> str | None:
        return (await agent.prompt("again")).final_text

    assert asyncio.run(ask()) == "later"


@only_asyncio
async def test_tasks_that_are_cancelled_before_they_began_settle_all_the_same(anyio_backend: str) -> None:
    before = asyncio.all_tasks()
    agent = Agent(model=StrictModel([answer_never, say("later")]))
    heard = recorded(agent)

    async def listen(event: AgentEvent) -> None:
        await anyio.sleep_forever()

    async with bare(agent):
        unsubscribe = agent.subscribe(listen)
        stream = agent.prompt("hello")
        for task in asyncio.all_tasks() - before:
            task.cancel()
        assert (await stream).status == "cancelled"
        assert ends(heard) == [("cancelled", "cancelled from outside")]
        unsubscribe()
        assert (await agent.prompt("again")).final_text == "later"
    assert asyncio.all_tasks() == before


@only_asyncio
async def test_a_run_is_held_even_when_nobody_kept_the_agent(anyio_backend: str) -> None:
    held = Held(say("hi"))
    stream = Agent(model=StrictModel([held])).prompt("hello")
    await held.begun.wait()
    gc.collect()
    held.go.set()
    with anyio.fail_after(PATIENCE):
        assert (await stream).final_text == "hi"


# Waiting for a run


@in_every_home
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


@in_every_home
async def test_a_reader_who_leaves_after_one_event_leaves_nothing_behind(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        stream = agent.prompt("hello")
        async for event in stream:
            assert event.type == "run_start"
            break
        gc.collect()
        assert (await stream).status == "completed"
        assert [event.sequence async for event in stream] == [0, 1, 2, 3, 4, 5]


# Agents in agents, and context variables


@in_every_home
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


@in_every_home
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


@in_every_home
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
