"""Who owns a run's task where nobody entered the Agent (promise 33)."""

from __future__ import annotations

import asyncio
import gc

import anyio
import anyio.from_thread
import pytest
from stage import (
    PATIENCE,
    Held,
    HeldTool,
    StrictModel,
    answer_never,
    bare,
    ends,
    recorded,
    texts,
    unpaired,
)

from course.agent import (
    Agent,
    AgentEvent,
    ToolRegistry,
    call,
    say,
)

pytestmark = pytest.mark.anyio

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
only_trio = pytest.mark.parametrize("anyio_backend", ["trio"])


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


@pytest.mark.parametrize("moment", ["text_delta", "turn_end", "run_end"])
def test_an_interrupt_in_a_listener_during_a_run_goes_out_and_leaves_the_run_told_to_its_end(moment: str) -> None:
    agent = Agent(model=StrictModel([say("one"), say("two")]))
    streams = []

    def interrupted(event: AgentEvent) -> None:
        if event.type == moment:
            unsubscribe()
            raise KeyboardInterrupt

    async def ask() -> None:
        streams.append(agent.prompt("hello"))
        await streams[-1]

    async def read() -> list[AgentEvent]:
        return [event async for event in streams[-1]]

    unsubscribe = agent.subscribe(interrupted)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(ask())
    events = asyncio.run(read())
    assert [event.sequence for event in events] == list(range(len(events)))
    assert len(ends(events)) == 1
    assert (agent.is_running, agent.state.status, unpaired(agent.messages)) == (False, "idle", "")
    asyncio.run(ask())


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
