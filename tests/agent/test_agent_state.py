"""What an Agent shows: a pure reducer, and three exits that share nothing mutable with the inside (23, 26)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from stage import Held, HeldTool, Home, StrictModel, in_every_home, raise_at_once, recorded, texts

from course.agent import (
    RUN_OWNED,
    Agent,
    AgentEvent,
    AgentState,
    AssistantMessage,
    AssistantMessageEvent,
    MessageAcceptedEvent,
    RunEndEvent,
    RunResult,
    RunStartEvent,
    ScriptedModel,
    Text,
    TextDeltaEvent,
    ToolCall,
    ToolCallEvent,
    ToolEndEvent,
    ToolProgressEvent,
    ToolRegistry,
    ToolResultMessage,
    ToolSkippedEvent,
    ToolStartEvent,
    Transcript,
    TurnEndEvent,
    UserMessage,
    call,
    reduce_agent_state,
    say,
    tool,
)

ASKED = Transcript([UserMessage("hello")])
CALL_1, CALL_2 = ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "add", {"a": 2})
RESULT_1, RESULT_2 = ToolResultMessage("c1", "add", "1"), ToolResultMessage("c2", "add", "2")
TURN = AssistantMessage((Text("Adding."), CALL_1, CALL_2), "tool_use")
DONE = RunResult("completed", ASKED.append(TURN, RESULT_1, RESULT_2), final_text="")

RUN_1: list[AgentEvent] = [
    RunStartEvent("run-1", 0, ASKED),
    MessageAcceptedEvent("run-1", 1, "prompt", UserMessage("hello"), ASKED),
    TextDeltaEvent("run-1", 2, "Add"),
    TextDeltaEvent("run-1", 3, "ing."),
    ToolCallEvent("run-1", 4, "c1", "add"),
    AssistantMessageEvent("run-1", 5, TURN),
    ToolStartEvent("run-1", 6, CALL_1),
    ToolProgressEvent("run-1", 7, "c1", "half"),
    ToolEndEvent("run-1", 8, RESULT_2),
    ToolSkippedEvent("run-1", 9, RESULT_1),
    TurnEndEvent("run-1", 10, DONE.messages),
    RunEndEvent("run-1", 11, DONE),
]


def reduced(events: list[AgentEvent], state: AgentState | None = None) -> AgentState:
    state = state or AgentState()
    for event in events:
        state = reduce_agent_state(state, event)
    return state


# 23: the reducer


def test_run_start_makes_its_run_the_active_one_with_its_messages() -> None:
    assert reduced(RUN_1[:1]) == AgentState("running", ASKED, "run-1")


def test_messages_move_at_run_start_and_run_end_and_nowhere_else() -> None:
    lengths = [len(reduced(RUN_1[:count]).messages) for count in range(len(RUN_1) + 1)]
    assert lengths == [0, *[1] * 11, 4]


def test_text_streams_until_the_message_is_whole() -> None:
    assert [reduced(RUN_1[:count]).streaming_text for count in (2, 3, 4, 5, 6)] == ["", "Add", "Adding.", "Adding.", ""]


def test_calls_are_pending_from_the_message_until_each_has_its_result() -> None:
    pending = [reduced(RUN_1[:count]).pending_call_ids for count in (5, 6, 8, 9, 10)]
    assert pending == [(), ("c1", "c2"), ("c1", "c2"), ("c1",), ()]


def test_run_end_leaves_nothing_of_the_run_but_its_status_and_messages() -> None:
    half_way = reduced([*RUN_1[:4], RunEndEvent("run-1", 4, RunResult("failed", ASKED))])
    assert half_way == AgentState("idle", ASKED, None, "failed")
    assert reduced(RUN_1) == AgentState("idle", DONE.messages, None, "completed")


def test_the_last_status_stays_while_the_next_run_is_active() -> None:
    assert reduced([*RUN_1, RunStartEvent("run-2", 0, ASKED)]).last_status == "completed"


@pytest.mark.parametrize("late", RUN_1[1:], ids=lambda event: event.type)
def test_a_late_event_of_run_1_gives_back_the_state_of_run_2_itself(late: AgentEvent) -> None:
    state = reduced([*RUN_1[:1], RunStartEvent("run-2", 0, ASKED), TextDeltaEvent("run-2", 1, "hi")])
    assert reduce_agent_state(state, late) is state


@pytest.mark.parametrize("early", RUN_1[1:], ids=lambda event: event.type)
def test_an_event_without_an_active_run_gives_back_the_state_itself(early: AgentEvent) -> None:
    state = AgentState(messages=ASKED)
    assert reduce_agent_state(state, early) is state


def test_the_reducer_changes_nothing_it_was_given() -> None:
    state = reduced(RUN_1[:6])
    before = (state.streaming_text, state.pending_call_ids, list(state.messages))
    for event in RUN_1:
        reduce_agent_state(state, event)
    assert (state.streaming_text, state.pending_call_ids, list(state.messages)) == before
    with pytest.raises(AttributeError):
        state.status = "idle"  # type: ignore[misc]


@pytest.mark.anyio
@in_every_home
async def test_the_agents_state_is_its_events_reduced(home: Home) -> None:
    model = StrictModel([[*say("x"), *call("c1", "wait")], say("one"), raise_at_once])
    held = HeldTool()
    async with home(Agent(model=model, tools=ToolRegistry([held.wait]))) as agent:
        states: list[tuple[AgentState, AgentEvent]] = []
        agent.subscribe(lambda event: states.append((agent.state, event)))
        held.go.set()
        await agent.prompt("go")
        await agent.prompt("fail")
        state = AgentState()
        for after, event in states:
            state = reduce_agent_state(state, event)
            assert after == state
        assert agent.state == state == AgentState("idle", agent.messages, None, "failed")


# 26: three exits


@pytest.mark.anyio
@in_every_home
async def test_messages_events_and_results_cannot_be_changed_from_outside(home: Home) -> None:
    @tool
    async def look() -> dict[str, Any]:
        """Look."""
        return returned

    returned = {"found": [1, 2]}
    model = StrictModel([call("c1", "look"), say("done")])
    async with home(Agent(model=model, tools=ToolRegistry([look]))) as agent:
        heard = recorded(agent)
        result = await agent.prompt("go")
        asked, answer = agent.messages[1:3]
        assert isinstance(answer, ToolResultMessage)
        before = msgspec.json.encode([agent_view(agent), [event_view(event) for event in heard]])
        returned["found"].append(3)
        for value in (result, agent.state, asked, answer, *heard):
            for field in value.__struct_fields__:
                with pytest.raises(AttributeError):
                    setattr(value, field, None)
        with pytest.raises(TypeError, match="cannot be changed"):
            answer.details.update(found=[])
        with pytest.raises(TypeError, match="cannot be changed"):
            model.requests[0].tools[0].schema.clear()
        with pytest.raises(AttributeError):
            answer.details["found"].append(3)
        agent.messages.append(UserMessage("mine"))
        assert msgspec.json.encode([agent_view(agent), [event_view(event) for event in heard]]) == before
        assert json.loads(answer.text) == {"found": [1, 2]}


def agent_view(agent: Agent) -> list[object]:
    return [list(agent.messages), list(agent.state.messages)]


def event_view(event: AgentEvent) -> object:
    """Everything that an event holds; its transcripts as lists, which can be encoded."""
    fields = [getattr(event, name) for name in event.__struct_fields__]
    return [
        list(field.messages if isinstance(field, RunResult) else field)
        if isinstance(field, RunResult | Transcript)
        else field
        for field in fields
    ]


@pytest.mark.anyio
@in_every_home
async def test_what_was_taken_earlier_does_not_grow(home: Home) -> None:
    held = Held(say("hi"))
    async with home(Agent(model=StrictModel([held, say("again")]))) as agent:
        before = agent.messages
        stream = agent.prompt("hello")
        await held.begun.wait()
        during, state = agent.messages, agent.state
        held.go.set()
        after = (await stream).messages
        await agent.prompt("more")
        assert [len(each) for each in (before, during, state.messages, after)] == [0, 1, 1, 2]
        assert texts(agent.messages) == ["u:hello", "a:hi", "u:more", "a:again"]


@pytest.mark.anyio
@in_every_home
async def test_lists_that_an_agent_hands_out_are_copies_that_nobody_can_write_to(home: Home) -> None:
    async with home(Agent(model=ScriptedModel([say("hi")]), queues=RUN_OWNED)) as agent:
        agent.subscribe(lambda event: 1 / 0)
        stream = agent.prompt("hello")
        agent.steer("quick")
        queued, errors = agent.queued, agent.subscriber_errors
        assert (type(queued), type(errors)) == (tuple, tuple)
        assert [each.message.text for each in agent.clear_queues()] == ["quick"]
        await stream
        assert (len(queued), len(agent.queued)) == (1, 0)
        assert len(agent.subscriber_errors) > len(errors) == 2
