"""Limits: what does not fit is refused when it is said, and never stranded later (promise 31)."""

from __future__ import annotations

from itertools import cycle, islice

import pytest
from stage import Held, HeldTool, Home, StrictModel, in_every_home, raise_at_once, texts, unpaired

from course.agent import (
    AGENT_OWNED,
    RUN_OWNED,
    Agent,
    AgentLimitError,
    AssistantMessage,
    Chunk,
    Limits,
    Message,
    QueuePolicy,
    ScriptedModel,
    Text,
    ToolRegistry,
    UserMessage,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]

PAIR = (UserMessage("hello"), AssistantMessage((Text("hi"),)))


def talk(length: int) -> list[Message]:
    """A conversation of this many messages."""
    return list(islice(cycle(PAIR), length))


def calls(count: int) -> list[Chunk]:
    """One response with this many calls of `note`."""
    return [chunk for place in range(count) for chunk in call(f"c{place}", "note")]


@tool
async def note() -> str:
    """Take a note."""
    return "noted"


# The numbers themselves


async def test_256_messages_may_wait_and_the_next_is_refused(home: Home) -> None:
    async with home(Agent(model=StrictModel([]))) as agent:
        for place in range(256):
            (agent.steer if place % 2 else agent.follow_up)(f"{place}")
        before = agent.queued
        for refuse in (agent.steer, agent.follow_up):
            with pytest.raises(AgentLimitError, match="256 wait"):
                refuse("one more")
        assert agent.queued == before
        assert len(before) == 256
        agent.clear_queues()
        agent.steer("now there is room")


async def test_an_agent_owns_4096_messages_and_refuses_to_be_made_with_more(home: Home) -> None:
    async with home(Agent(model=StrictModel([]), messages=talk(4096))) as agent:
        assert (len(agent.messages), agent.room) == (4096, 0)
    with pytest.raises(AgentLimitError, match=r"4097.*4096.*fewer `messages`"):
        Agent(model=ScriptedModel([]), messages=talk(4097))


@pytest.mark.parametrize(("owned", "queued"), [(4094, 0), (4092, 1), (3582, 256)])
async def test_a_prompt_needs_room_for_a_pair_beside_a_pair_for_each_that_waits(
    home: Home, owned: int, queued: int
) -> None:
    async with home(Agent(model=StrictModel([], beyond=say("ok")), messages=talk(owned))) as agent:
        for _ in range(queued):
            agent.follow_up("more")
        assert (await agent.prompt("hello")).status in {"completed", "max_steps"}
    async with home(Agent(model=StrictModel([], beyond=say("ok")), messages=talk(owned + 1))) as agent:
        for _ in range(queued):
            agent.follow_up("more")
        with pytest.raises(AgentLimitError, match=r"fewer `messages`") as refused:
            agent.prompt("hello")
        assert refused.value.code == "AGENT_MESSAGE_LIMIT"
        assert (len(agent.messages), agent.is_running, len(agent.queued)) == (owned + 1, False, queued)


@pytest.mark.parametrize("queued", [0, 1, 100])
async def test_a_message_queued_in_a_run_needs_room_beside_the_largest_turn(home: Home, queued: int) -> None:
    most = 4096 - 129 - 2 * (queued + 1)  # messages owned while the run is active, its prompt included
    for owned, fits in ((most, True), (most + 1, False)):
        held = Held(say("ok"))
        async with home(Agent(model=StrictModel([held], beyond=say("ok")), messages=talk(owned - 1))) as agent:
            stream = agent.prompt("go")
            for _ in range(queued):
                agent.follow_up("more")
            if fits:
                agent.steer("fits")
            else:
                with pytest.raises(AgentLimitError):
                    agent.steer("does not")
            assert len(agent.queued) == queued + fits
            held.go.set()
            await stream


async def test_room_tells_how_many_more_can_be_queued(home: Home) -> None:
    for owned, idle, active in ((0, 256, 256), (4000, 48, 0), (3900, 98, 33), (4095, 0, 0)):
        held = Held(say("ok"))
        async with home(Agent(model=StrictModel([held], beyond=say("ok")), messages=talk(owned))) as agent:
            assert agent.room == idle
            for _ in range(idle):
                agent.follow_up("more")
            assert agent.room == 0
            agent.clear_queues()
            if idle:
                stream = agent.prompt("go")
                assert agent.room == active
                held.go.set()
                await stream


@pytest.mark.parametrize("count", [1, 128])
async def test_a_response_is_adopted_when_it_its_results_and_an_answer_fit(home: Home, count: int) -> None:
    most = 4096 - (1 + count + 1)  # with the prompt
    async with home(
        Agent(model=StrictModel([calls(count), say("ok")]), tools=ToolRegistry([note]), messages=talk(most - 1))
    ) as agent:
        assert (await agent.prompt("go")).status == "completed"
        assert len(agent.messages) == 4096


@pytest.mark.parametrize("count", [1, 128])
async def test_a_response_whose_calls_do_not_fit_fails_the_run_before_any_tool_runs(home: Home, count: int) -> None:
    ran: list[str] = []

    @tool
    async def note() -> str:
        """Take a note."""
        ran.append("note")
        return "noted"

    most = 4096 - (1 + count + 1)
    model = StrictModel([calls(count)])
    async with home(Agent(model=model, tools=ToolRegistry([note]), messages=talk(most))) as agent:
        result = await agent.prompt("go")
        assert (result.status, ran) == ("failed", [])
        assert result.error is not None
        assert result.error.code == "AGENT_MESSAGE_LIMIT"
        assert "new Agent with fewer `messages`" in result.error.text
        assert (agent.is_running, agent.state.status, len(agent.messages)) == (False, "idle", most + 1)
        assert result.messages == agent.messages == agent.state.messages


# Nothing is stranded


@pytest.mark.parametrize("queues", [AGENT_OWNED, RUN_OWNED], ids=["agent-owned", "run-owned"])
@pytest.mark.parametrize("kind", ["steer", "follow_up"])
async def test_what_was_queued_up_to_the_brim_in_a_run_is_all_answered(
    home: Home, queues: QueuePolicy, kind: str
) -> None:
    limits = Limits(queued=50, owned=41, turn=5)
    held = HeldTool()
    model = StrictModel([[*call("c0", "wait"), *call("c1", "note"), *call("c2", "note")]], beyond=say("ok"))
    agent = Agent(
        model=model, tools=ToolRegistry([held.wait, note]), queues=queues, limits=limits, max_steps=99, messages=talk(5)
    )
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        queued = 0
        while agent.room:
            getattr(agent, kind)("more")
            queued += 1
        assert queued == (41 - 6 - 5) // 2
        held.go.set()
        result = await stream
        assert (result.status, agent.queued, result.dropped) == ("completed", (), ())
        assert len(agent.messages) <= 41


@pytest.mark.parametrize("kind", ["steer", "follow_up"])
async def test_what_was_queued_up_to_the_brim_while_idle_goes_on_with_continue(home: Home, kind: str) -> None:
    limits = Limits(queued=50, owned=12, turn=4)
    model = StrictModel([], beyond=say("ok"))
    async with home(Agent(model=model, limits=limits, messages=talk(4))) as agent:
        while agent.room:
            getattr(agent, kind)("more")
        with pytest.raises(AgentLimitError):
            agent.prompt("no room for this one")
        assert len(agent.queued) == 4
        assert (await agent.continue_()).status == "completed"
        assert (len(agent.messages), agent.queued) == (12, ())


async def test_a_failed_answer_has_its_place_too_and_asking_again_stops_at_the_limit(home: Home) -> None:
    limits = Limits(queued=4, owned=6, turn=3)
    async with home(Agent(model=StrictModel([], beyond=[]), limits=limits, messages=talk(2))) as agent:
        assert (await agent.prompt("1")).status == "failed"
        for _ in range(2):
            assert (await agent.continue_()).status == "failed"
        assert texts(agent.messages)[2:] == ["u:1", "error", "error", "error"]
        with pytest.raises(AgentLimitError):
            agent.continue_()
        assert (len(agent.messages), agent.is_running) == (6, False)


async def test_an_agent_at_its_limit_goes_on_as_a_new_agent_with_fewer_messages(home: Home) -> None:
    limits = Limits(queued=4, owned=6, turn=3)
    async with home(Agent(model=StrictModel([], beyond=say("ok")), limits=limits, messages=talk(6))) as agent:
        with pytest.raises(AgentLimitError, match="fewer `messages`"):
            agent.prompt("hello")
        kept = agent.messages[-2:]
    async with home(Agent(model=StrictModel([say("ok")]), limits=limits, messages=kept)) as agent:
        assert (await agent.prompt("hello")).status == "completed"


async def test_a_run_that_met_the_limit_leaves_the_agent_usable(home: Home) -> None:
    limits = Limits(queued=4, owned=8, turn=3)
    model = StrictModel([calls(5), say("short"), raise_at_once])
    async with home(Agent(model=model, tools=ToolRegistry([note]), limits=limits, messages=talk(2))) as agent:
        assert (await agent.prompt("go")).status == "failed"
        assert texts(agent.messages)[2:] == ["u:go"]
        assert (await agent.continue_()).final_text == "short"
        assert (await agent.prompt("more")).status == "failed"
        assert unpaired(agent.messages) == ""
        assert (len(agent.messages), model.refused) == (6, [])
