"""Queues are a policy: who owns what waits, and how much a boundary takes (promise 29)."""

from __future__ import annotations

import pytest
from stage import Held, HeldTool, Home, StrictModel, in_every_home, raise_at_once, recorded, texts

from course.agent import (
    AGENT_OWNED,
    RUN_OWNED,
    Agent,
    AgentClosedError,
    AgentEvent,
    AgentIdleError,
    MessageError,
    QueuedMessage,
    QueuePolicy,
    RunEndEvent,
    ToolRegistry,
    UserMessage,
    call,
    say,
)

pytestmark = [pytest.mark.anyio, in_every_home]

both_policies = pytest.mark.parametrize("queues", [AGENT_OWNED, RUN_OWNED], ids=["agent-owned", "run-owned"])


def steering(text: str) -> QueuedMessage:
    return QueuedMessage("steering", UserMessage(text))


def follow_up(text: str) -> QueuedMessage:
    return QueuedMessage("follow_up", UserMessage(text))


def held_in_tool(queues: QueuePolicy) -> tuple[Agent, HeldTool, StrictModel]:
    """An agent whose first answer is a call of a tool that is held back."""
    held = HeldTool()
    model = StrictModel([call("c1", "wait")], beyond=say("ok"))
    return Agent(model=model, tools=ToolRegistry([held.wait]), queues=queues), held, model


# Both policies


@both_policies
async def test_each_queued_message_stays_a_message_of_its_own(home: Home, queues: QueuePolicy) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("one")
        agent.steer("one")
        held.go.set()
        await stream
        assert [message for message in agent.messages if message == UserMessage("one")] == [UserMessage("one")] * 2


@both_policies
async def test_nothing_enters_between_calls_and_their_results(home: Home, queues: QueuePolicy) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("quick")
        assert texts(agent.messages) == ["u:go"]
        held.go.set()
        await stream
        assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1", "u:quick", "a:ok"]


@both_policies
async def test_steering_goes_before_a_follow_up_that_was_queued_earlier(home: Home, queues: QueuePolicy) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.follow_up("later")
        agent.steer("now")
        assert agent.queued == (follow_up("later"), steering("now"))
        held.go.set()
        await stream
        assert texts(agent.messages)[3:] == ["u:now", "a:ok", "u:later", "a:ok"]


@both_policies
async def test_steering_that_comes_with_the_final_answer_is_still_heard(home: Home, queues: QueuePolicy) -> None:
    held = Held(say("final"))
    async with home(Agent(model=StrictModel([held, say("after all")]), queues=queues)) as agent:
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("wait")
        held.go.set()
        assert (await stream).final_text == "after all"


@both_policies
async def test_a_queue_taken_back_is_not_read(home: Home, queues: QueuePolicy) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.follow_up("b")
        agent.steer("a")
        assert agent.clear_queues() == (follow_up("b"), steering("a"))
        assert (agent.queued, agent.clear_queues()) == ((), ())
        held.go.set()
        result = await stream
        assert texts(agent.messages) == ["u:go", "a:+c1", "t:c1", "a:ok"]
        assert result.dropped == ()


@both_policies
async def test_out_of_steps_with_input_waiting_reads_no_queue(home: Home, queues: QueuePolicy) -> None:
    held = Held(say("one"))
    async with home(Agent(model=StrictModel([held]), queues=queues, max_steps=1)) as agent:
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.follow_up("later")
        held.go.set()
        result = await stream
        assert (result.status, texts(result.messages)) == ("max_steps", ["u:go", "a:one"])
        assert [*agent.queued, *result.dropped] == [follow_up("later")]


@both_policies
@pytest.mark.parametrize("text", [b"bytes", None, "\ud800"])
async def test_what_is_no_text_is_refused_and_not_queued(home: Home, queues: QueuePolicy, text: str) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        for refuse in (agent.steer, agent.follow_up):
            with pytest.raises(MessageError):
                refuse(text)
        assert agent.queued == ()
        held.go.set()
        await stream


@both_policies
async def test_a_closed_agent_takes_no_message_and_gives_back_what_waits(home: Home, queues: QueuePolicy) -> None:
    agent, held, _ = held_in_tool(queues)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("quick")
        held.go.set()
        await agent.aclose()
        for refuse in (agent.steer, agent.follow_up):
            with pytest.raises(AgentClosedError):
                refuse("too late")
        assert [*agent.clear_queues(), *(await stream).dropped] == [steering("quick")]


# AGENT_OWNED: the agent keeps what waits, and a boundary takes one


async def test_agent_owned_is_the_default(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        agent.steer("before")
        assert agent.queued == (steering("before"),)


async def test_agent_owned_takes_one_steering_a_boundary(home: Home) -> None:
    agent, held, model = held_in_tool(AGENT_OWNED)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        for text in "abc":
            agent.steer(text)
        held.go.set()
        await stream
        assert texts(agent.messages)[3:] == ["u:a", "a:ok", "u:b", "a:ok", "u:c", "a:ok"]
        assert len(model.requests) == 4


async def test_agent_owned_takes_one_follow_up_where_the_model_would_stop(home: Home) -> None:
    agent, held, _ = held_in_tool(AGENT_OWNED)
    async with home(agent):
        stream = agent.prompt("go")
        agent.follow_up("a")
        agent.follow_up("b")
        held.go.set()
        await stream
        assert texts(agent.messages)[3:] == ["a:ok", "u:a", "a:ok", "u:b", "a:ok"]


async def test_one_steering_queued_while_idle_joins_the_next_prompt_and_the_rest_waits(home: Home) -> None:
    model = StrictModel([], beyond=say("ok"))
    async with home(Agent(model=model)) as agent:
        agent.follow_up("later")
        agent.steer("a")
        agent.steer("b")
        await agent.prompt("hello")
        assert texts(model.requests[0].messages) == ["u:hello", "u:a"]
        assert texts(agent.messages)[2:] == ["a:ok", "u:b", "a:ok", "u:later", "a:ok"]


async def test_agent_owned_input_is_kept_after_an_accepted_cancel_and_at_run_end(home: Home) -> None:
    agent, held, _ = held_in_tool(AGENT_OWNED)
    async with home(agent):
        agent.subscribe(lambda event: agent.follow_up("at the end") if event.type == "run_end" else None)
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("before")
        agent.cancel()
        agent.steer("after")
        held.go.set()
        result = await stream
        assert (result.status, result.dropped) == ("cancelled", ())
        assert agent.queued == (steering("before"), steering("after"), follow_up("at the end"))
        assert agent.subscriber_errors == ()


async def test_agent_owned_leftovers_wait_after_a_failure_until_continue(home: Home) -> None:
    async with home(Agent(model=StrictModel([raise_at_once], beyond=say("ok")))) as agent:
        stream = agent.prompt("hello")
        agent.steer("a")
        agent.follow_up("b")
        assert (await stream).status == "failed"
        assert agent.queued == (steering("a"), follow_up("b"))
        assert (await agent.continue_()).status == "completed"
        assert texts(agent.messages) == ["u:hello", "error", "u:a", "a:ok", "u:b", "a:ok"]
        assert agent.queued == ()


# RUN_OWNED: what waits ends with its run, and a boundary takes all


async def test_run_owned_takes_all_steering_then_all_follow_ups_in_order(home: Home) -> None:
    agent, held, model = held_in_tool(RUN_OWNED)
    async with home(agent):
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.follow_up("c")
        agent.steer("a")
        agent.follow_up("d")
        agent.steer("b")
        held.go.set()
        await stream
        assert texts(agent.messages)[3:] == ["u:a", "u:b", "a:ok", "u:c", "u:d", "a:ok"]
        assert len(model.requests) == 3


async def test_run_owned_input_while_idle_is_refused_with_a_way_on(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]), queues=RUN_OWNED)) as agent:
        for refuse in (agent.steer, agent.follow_up):
            with pytest.raises(AgentIdleError, match=r"only while a run is active.*prompt\(\)"):
                refuse("hello?")
        await agent.prompt("hello")
        with pytest.raises(AgentIdleError):
            agent.follow_up("more")
        assert agent.queued == ()


async def test_run_owned_input_is_refused_after_an_accepted_cancel_and_once_decided(home: Home) -> None:
    agent, held, _ = held_in_tool(RUN_OWNED)
    async with home(agent):
        refused: list[str] = []

        def at_the_end(event: AgentEvent) -> None:
            if event.type == "run_end":
                with pytest.raises(AgentIdleError):
                    agent.steer("too late")
                refused.append(event.type)

        agent.subscribe(at_the_end)
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.steer("in time")
        agent.cancel()
        with pytest.raises(AgentIdleError):
            agent.steer("too late")
        held.go.set()
        assert (await stream).dropped == (steering("in time"),)
        assert refused == ["run_end"]


@pytest.mark.parametrize("ending", ["cancelled", "failed", "max_steps"])
async def test_run_owned_leftovers_are_dropped_with_the_run_and_listed(home: Home, ending: str) -> None:
    held = Held(say("one") if ending != "failed" else [])
    async with home(Agent(model=StrictModel([held, say("two")]), queues=RUN_OWNED, max_steps=1)) as agent:
        heard = recorded(agent)
        stream = agent.prompt("hello")
        await held.begun.wait()
        agent.follow_up("b")
        agent.steer("a")
        if ending == "cancelled":
            agent.cancel()
        held.go.set()
        result = await stream
        assert (result.status, result.dropped) == (ending, (follow_up("b"), steering("a")))
        assert [event.result.dropped for event in heard if isinstance(event, RunEndEvent)] == [result.dropped]
        assert agent.queued == ()
        assert (await agent.prompt("next")).dropped == ()
