"""Runs: one owner, what a run owns, the order of its end, and its events (promises 19–22, 27)."""

from __future__ import annotations

import anyio
import pytest
from stage import HeldTool, Home, StrictModel, in_every_home, names, raise_at_once, recorded, texts, turn_over

from course.agent import (
    Agent,
    AgentBusyError,
    AgentEvent,
    AssistantMessage,
    MessageAcceptedEvent,
    MessageError,
    RunEndEvent,
    RunError,
    RunStartEvent,
    ScriptedModel,
    Text,
    ToolRegistry,
    ToolResultMessage,
    TranscriptError,
    UserMessage,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]

QUESTION, ANSWER = UserMessage("1 + 1?"), AssistantMessage((Text("2"),))


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


# 19: one owner


async def test_prompt_has_claimed_when_it_returns(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        stream = agent.prompt("hello")
        assert agent.is_running
        assert texts(agent.messages) == ["u:hello"]
        await stream
        assert not agent.is_running


async def test_a_second_prompt_is_refused_at_once_and_told_what_to_call_instead(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        stream = agent.prompt("first")
        for second in (lambda: agent.prompt("second"), agent.continue_):
            with pytest.raises(AgentBusyError, match=r"run-1.*steer\(\).*follow_up\(\)"):
                second()
        assert (await stream).status == "completed"
        assert texts(agent.messages) == ["u:first", "a:hi"]


async def test_nothing_is_queued_for_a_refused_prompt(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi"), say("again")]))) as agent:
        stream = agent.prompt("first")
        with pytest.raises(AgentBusyError):
            agent.prompt("second")
        assert agent.queued == ()
        await stream
        await turn_over()
        assert not agent.is_running
        assert texts(agent.messages) == ["u:first", "a:hi"]


async def test_of_two_prompts_racing_from_two_tasks_one_owns_the_run(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        outcomes: list[str] = []

        async def race(text: str) -> None:
            try:
                outcomes.append((await agent.prompt(text)).status)
            except AgentBusyError:
                outcomes.append("busy")

        async with anyio.create_task_group() as group:
            group.start_soon(race, "one")
            group.start_soon(race, "two")
        assert sorted(outcomes) == ["busy", "completed"]
        assert len(agent.messages) == 2


async def test_a_prompt_is_refused_while_a_cancelled_run_still_settles(home: Home) -> None:
    held = HeldTool()
    model = StrictModel([call("c1", "wait"), say("after")])
    async with home(Agent(model=model, tools=ToolRegistry([held.wait]))) as agent:
        stream = agent.prompt("go")
        await held.begun.wait()
        agent.cancel()
        with pytest.raises(AgentBusyError):
            agent.prompt("again")
        held.go.set()
        await stream
        assert (await agent.prompt("again")).final_text == "after"


@pytest.mark.parametrize("text", [b"bytes", None, "\ud800"])
async def test_a_prompt_that_is_no_text_is_refused_and_claims_nothing(home: Home, text: str) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        with pytest.raises(MessageError):
            agent.prompt(text)
        assert not agent.is_running
        assert (await agent.prompt("text")).status == "completed"


# 20: what a run owns


async def test_a_listener_that_queues_and_subscribes_at_run_start_changes_nothing_of_the_first_request(
    home: Home,
) -> None:
    model = StrictModel([say("hi"), say("steered")])
    async with home(Agent(model=model)) as agent:

        def meddle(event: AgentEvent) -> None:
            if isinstance(event, RunStartEvent):
                agent.steer("quick")
                assert texts(event.messages) == texts(agent.messages) == ["u:hello"]

        agent.subscribe(meddle)
        await agent.prompt("hello")
        assert [texts(request.messages) for request in model.requests] == [
            ["u:hello"],
            ["u:hello", "a:hi", "u:quick"],
        ]
        assert agent.subscriber_errors == ()


async def test_a_listener_that_cancels_at_run_start_leaves_the_model_unasked(home: Home) -> None:
    model = StrictModel([say("never")])
    async with home(Agent(model=model)) as agent:
        agent.subscribe(lambda event: agent.cancel("too late") if event.type == "run_start" else None)
        result = await agent.prompt("hello")
        assert (result.status, result.reason, model.requests) == ("cancelled", "too late", [])


async def test_each_run_has_a_signal_of_its_own(home: Home) -> None:
    first, second = HeldTool(), HeldTool()
    model = StrictModel([call("c1", "wait"), call("c2", "again"), say("done")])

    @tool
    async def again(signal) -> str:
        """Wait again."""
        return await second.wait(signal)

    async with home(Agent(model=model, tools=ToolRegistry([first.wait, again]))) as agent:
        stream = agent.prompt("one")
        await first.begun.wait()
        agent.cancel("enough")
        first.go.set()
        await stream
        second.go.set()
        assert (await agent.prompt("two")).status == "completed"
        assert first.signal is not second.signal
        assert first.signal is not None
        assert first.signal.reason == "enough"
        assert second.signal is not None
        assert not second.signal.cancelled


async def test_a_run_that_a_listener_of_run_end_starts_survives_the_cleaning_up_of_the_one_before(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("one"), say("two")]))) as agent:
        streams = []

        def go_on(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent) and event.run_id == "run-1":
                streams.append(agent.prompt("more"))

        agent.subscribe(go_on)
        first = await agent.prompt("start")
        assert agent.is_running
        assert first.final_text == "one"
        assert (await streams[0]).final_text == "two"
        assert texts(agent.messages) == ["u:start", "a:one", "u:more", "a:two"]
        assert agent.subscriber_errors == ()


# 21: the order of the end


async def test_at_run_end_the_owner_is_gone_and_the_state_is_idle_but_the_stream_is_open(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        seen = []
        stream = None

        def look(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent):
                assert stream is not None
                seen.append((agent.is_running, agent.state.status, stream.closed, agent.cancel(), len(agent.messages)))

        agent.subscribe(look)
        stream = agent.prompt("hello")
        await stream
        assert seen == [(False, "idle", False, False, 2)]
        assert stream.closed


async def test_after_a_first_listener_started_run_2_a_second_sees_the_claim_while_state_tells_of_run_1(
    home: Home,
) -> None:
    async with home(Agent(model=StrictModel([say("one"), say("two")]))) as agent:
        seen = []
        streams = []

        def first(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent) and event.run_id == "run-1":
                streams.append(agent.prompt("more"))

        def second(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent) and event.run_id == "run-1":
                seen.append((agent.is_running, len(agent.messages), agent.state.status, len(agent.state.messages)))

        agent.subscribe(first)
        agent.subscribe(second)
        await agent.prompt("start")
        await streams[0]
        assert seen == [(True, 3, "idle", 2)]


async def test_two_hundred_runs_started_each_by_the_end_of_the_one_before_all_settle(home: Home) -> None:
    many = 200
    async with home(Agent(model=StrictModel([], beyond=say("ok")))) as agent:
        done = anyio.Event()

        def go_on(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent):
                agent.prompt("more") if event.run_id != f"run-{many}" else done.set()

        agent.subscribe(go_on)
        agent.prompt("start")
        await done.wait()
        assert agent.subscriber_errors == ()
        assert len(agent.messages) == 2 * many


# 22: events


async def test_events_of_a_whole_run_are_numbered_from_0_without_gaps_and_end_once(home: Home) -> None:
    model = StrictModel([[*say("Adding."), *call("c1", "add", a=1, b=2)], say("3"), say("and more")])
    async with home(Agent(model=model, tools=ToolRegistry([add]))) as agent:
        heard = recorded(agent)
        stream = agent.prompt("1 + 2?")
        agent.follow_up("and?")
        await stream
        assert names(heard) == [
            *["run_start", "message_accepted"],
            *["text_delta", "tool_call", "assistant_message", "tool_start", "tool_end", "turn_end"],
            *["text_delta", "assistant_message", "turn_end", "message_accepted"],
            *["text_delta", "assistant_message", "turn_end", "run_end"],
        ]
        assert [event.sequence for event in heard] == list(range(len(heard)))
        assert {event.run_id for event in heard} == {"run-1"}
        assert [event async for event in stream] == heard


async def test_message_accepted_tells_the_door_and_the_transcript_it_made(home: Home) -> None:
    model = StrictModel([say("one"), say("two"), say("three")])
    async with home(Agent(model=model)) as agent:
        heard = recorded(agent)
        agent.steer("before")
        stream = agent.prompt("hello")
        agent.steer("while")
        agent.follow_up("after")
        await stream
        accepted = [event for event in heard if isinstance(event, MessageAcceptedEvent)]
        assert [(event.kind, event.message.text, len(event.messages)) for event in accepted] == [
            ("prompt", "hello", 2),
            ("steering", "before", 2),
            ("steering", "while", 4),
            ("follow_up", "after", 6),
        ]


async def test_steps_and_request_ids_count_over_the_whole_run_and_start_again_in_the_next(home: Home) -> None:
    model = StrictModel([call("c1", "add", a=1, b=2), say("3"), say("four"), say("five")])
    async with home(Agent(model=model, tools=ToolRegistry([add]), max_steps=3)) as agent:
        stream = agent.prompt("go")
        agent.follow_up("one more")
        agent.follow_up("and one more")
        assert (await stream).status == "max_steps"
        assert [each.message.text for each in agent.clear_queues()] == ["and one more"]
        await agent.prompt("next")
        assert [request.id for request in model.requests] == ["request-1", "request-2", "request-3", "request-1"]


async def test_a_run_ends_with_one_run_end_that_carries_the_result_of_the_stream(home: Home) -> None:
    async with home(Agent(model=StrictModel([raise_at_once]))) as agent:
        heard = recorded(agent)
        result = await agent.prompt("hello")
        ends = [event for event in heard if isinstance(event, RunEndEvent)]
        assert [end.result for end in ends] == [result]
        assert heard[-1] is ends[0]


# 27: taken at construction


async def test_replacing_the_models_method_or_registering_later_changes_nothing(home: Home) -> None:
    model = StrictModel([call("c1", "late"), say("sorry")])
    registry = ToolRegistry([add])
    async with home(Agent(model=model, tools=registry)) as agent:

        @tool
        async def late() -> str:
            """Come late."""
            return "too late"

        registry.register(late)
        model.stream = raise_at_once  # type: ignore[assignment]
        result = await agent.prompt("go")
        assert result.status == "completed"
        assert [spec.name for spec in model.requests[0].tools] == ["add"]
        answer = agent.messages[2]
        assert isinstance(answer, ToolResultMessage)
        assert answer.is_error
        assert "no tool 'late'" in answer.text


async def test_messages_given_to_a_new_agent_are_checked_and_copied(home: Home) -> None:
    given = [QUESTION, ANSWER]
    async with home(Agent(model=StrictModel([say("4")]), messages=given)) as agent:
        given.clear()
        await agent.prompt("2 + 2?")
        assert texts(agent.messages) == ["u:1 + 1?", "a:2", "u:2 + 2?", "a:4"]
    with pytest.raises(TranscriptError):
        Agent(model=ScriptedModel([]), messages=[QUESTION, ToolResultMessage("c1", "add", "3")])
    with pytest.raises(ValueError, match="max_steps"):
        Agent(model=ScriptedModel([]), max_steps=0)


# 31: whatever else goes wrong


async def test_an_internal_fault_fails_the_run_and_leaves_the_agent_usable(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        with monkeypatch.context() as patch:
            patch.setattr("course.agent.agent.run_agent_loop", faulty)
            result = await agent.prompt("hello")
        assert result.error == RunError("AGENT_STATE_FAILED", "a fault of ours")
        assert (result.status, agent.is_running, agent.state.status) == ("failed", False, "idle")
        assert (await agent.prompt("again")).final_text == "hi"
        assert texts(agent.messages) == ["u:hello", "u:again", "a:hi"]
