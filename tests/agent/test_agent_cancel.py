"""cancel(): true exactly when it was accepted, and then the run ends cancelled, whatever raced it (promise 28)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from stage import Held, HeldTool, Home, StrictModel, in_every_home, names, raise_at_once, recorded, texts, unpaired

from course.agent import (
    Agent,
    AgentEvent,
    Chunk,
    Done,
    ModelRequest,
    Signal,
    TextDelta,
    ToolRegistry,
    ToolResultMessage,
    call,
    say,
    tool,
)

pytestmark = [pytest.mark.anyio, in_every_home]


async def test_cancel_is_refused_while_idle(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        assert not agent.cancel()
        await agent.prompt("hello")
        assert not agent.cancel()


async def test_a_cancel_while_idle_is_not_remembered_for_the_next_run(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        agent.cancel()
        assert (await agent.prompt("hello")).status == "completed"


async def test_the_first_cancel_of_a_run_is_accepted_and_gives_the_reason(home: Home) -> None:
    held = Held(say("never"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        stream = agent.prompt("hello")
        await held.begun.wait()
        assert [agent.cancel("enough"), agent.cancel("really")] == [True, False]
        result = await stream
        assert (result.status, result.reason, result.final_text, result.error) == ("cancelled", "enough", None, None)
        assert texts(result.messages) == ["u:hello"]


async def test_an_empty_reason_is_a_reason(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("never")]))) as agent:
        stream = agent.prompt("hello")
        assert agent.cancel("")
        assert (await stream).reason == ""


async def test_a_cancel_right_after_prompt_asks_the_model_nothing(home: Home) -> None:
    model = StrictModel([say("never")])
    async with home(Agent(model=model)) as agent:
        stream = agent.prompt("hello")
        assert agent.cancel()
        assert (await stream).status == "cancelled"
        assert model.requests == []


async def test_a_cancel_in_a_request_interrupts_it_and_adopts_nothing_of_it(home: Home) -> None:
    begun, closed = anyio.Event(), anyio.Event()

    async def half_an_answer(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        yield TextDelta("half an ")
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            closed.set()

    async with home(Agent(model=StrictModel([half_an_answer, say("whole")]))) as agent:
        stream = agent.prompt("hello")
        await begun.wait()
        assert agent.state.streaming_text == "half an "
        agent.cancel()
        await stream
        assert closed.is_set()
        assert (agent.state.streaming_text, texts(agent.messages)) == ("", ["u:hello"])
        assert (await agent.prompt("again")).final_text == "whole"


async def test_a_cancel_in_a_tool_waits_for_it_pairs_every_call_and_asks_no_more(home: Home) -> None:
    held = HeldTool("done in spite of it")
    model = StrictModel([call("c1", "wait"), say("after")])
    async with home(Agent(model=model, tools=ToolRegistry([held.wait]))) as agent:
        stream = agent.prompt("go")
        await held.begun.wait()
        assert agent.cancel("stop")
        assert held.signal is not None
        assert held.signal.reason == "stop"
        assert agent.is_running
        held.go.set()
        assert (await stream).status == "cancelled"
        answer = agent.messages[2]
        assert isinstance(answer, ToolResultMessage)
        assert (answer.text, answer.is_error) == ("done in spite of it", False)
        assert len(model.requests) == 1


async def test_calls_that_had_not_begun_when_cancel_came_are_skipped_and_paired(home: Home) -> None:
    model = StrictModel([[*call("c1", "wait"), *call("c2", "wait"), *call("c3", "wait")], say("after")])
    held = HeldTool()
    held.go.set()
    async with home(Agent(model=model, tools=ToolRegistry([held.wait]))) as agent:
        heard = recorded(agent)
        agent.subscribe(lambda event: agent.cancel() if event.type == "tool_start" else None)
        result = await agent.prompt("go")
        assert names(heard)[-6:] == ["tool_start", "tool_end", "tool_skipped", "tool_skipped", "turn_end", "run_end"]
        assert texts(result.messages) == ["u:go", "a:+c1+c2+c3", "t:c1", "t:c2", "t:c3"]
        assert (await agent.prompt("again")).final_text == "after"


@pytest.mark.parametrize("moment", ["text_delta", "assistant_message", "turn_end"])
async def test_a_cancel_accepted_while_the_answer_comes_in_beats_its_completion(home: Home, moment: str) -> None:
    async with home(Agent(model=StrictModel([say("hi"), say("again")]))) as agent:
        accepted: list[bool] = []
        agent.subscribe(lambda event: accepted.append(agent.cancel()) if event.type == moment else None)
        result = await agent.prompt("hello")
        assert (accepted, result.status, result.final_text) == ([True], "cancelled", None)


async def test_a_cancel_after_the_outcome_is_decided_is_refused(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        accepted: list[bool] = []
        agent.subscribe(lambda event: accepted.append(agent.cancel()) if event.type == "run_end" else None)
        assert (await agent.prompt("hello")).status == "completed"
        assert accepted == [False]


async def test_a_cancel_accepted_before_a_failure_surfaces_beats_it(home: Home) -> None:
    async def fail_when_cancelled(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            raise ConnectionError("broke off")
        yield

    begun = anyio.Event()
    async with home(Agent(model=StrictModel([fail_when_cancelled]))) as agent:
        stream = agent.prompt("hello")
        await begun.wait()
        assert agent.cancel()
        result = await stream
        assert (result.status, result.error, texts(result.messages)) == ("cancelled", None, ["u:hello"])


async def test_a_cancel_accepted_in_the_last_step_beats_max_steps(home: Home) -> None:
    held = HeldTool()
    model = StrictModel([call("c1", "wait")])
    async with home(Agent(model=model, tools=ToolRegistry([held.wait]), max_steps=1)) as agent:
        stream = agent.prompt("go")
        await held.begun.wait()
        assert agent.cancel()
        held.go.set()
        assert (await stream).status == "cancelled"


async def test_an_accepted_cancel_beats_an_internal_fault(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    async def faulty(*args: object, **kwargs: object) -> None:
        agent.cancel("first")
        raise ZeroDivisionError

    async with home(Agent(model=StrictModel([]))) as agent:
        monkeypatch.setattr("course.agent.agent.run_agent_loop", faulty)
        result = await agent.prompt("hello")
        assert (result.status, result.reason, result.error) == ("cancelled", "first", None)


async def test_a_model_that_answers_in_spite_of_the_cancel_ends_cancelled(home: Home) -> None:
    async def stubborn(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        begun.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            yield TextDelta("anyway")
            yield Done("stop")

    begun = anyio.Event()
    async with home(Agent(model=StrictModel([stubborn]))) as agent:
        stream = agent.prompt("hello")
        await begun.wait()
        assert agent.cancel()
        result = await stream
        assert (result.status, texts(result.messages)) == ("cancelled", ["u:hello"])


async def test_a_cancelled_run_tells_its_end_once_and_says_so(home: Home) -> None:
    held = Held(say("never"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        heard = recorded(agent)
        stream = agent.prompt("hello")
        await held.begun.wait()
        agent.cancel()
        await stream
        assert names(heard) == ["run_start", "message_accepted", "run_end"]
        assert agent.state.last_status == "cancelled"


@pytest.mark.parametrize("queued", [True, False], ids=["queued", "alone"])
async def test_a_strict_model_accepts_the_next_prompt_after_every_kind_of_ending(home: Home, queued: bool) -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise ValueError("broken")

    held, tool_held = Held(say("never")), HeldTool()
    model = StrictModel(
        [
            say("completed"),
            call("c1", "broken"),  # max_steps
            [*call("c2", "broken"), *call("c2", "broken")],  # a failed response
            raise_at_once,
            held,  # cancelled in a request
            [*call("c3", "wait"), *call("c4", "broken")],  # cancelled in a tool
        ],
        beyond=say("fine"),
    )
    async with home(Agent(model=model, tools=ToolRegistry([broken, tool_held.wait]), max_steps=1)) as agent:
        statuses = []

        async def cancel_in(begun: anyio.Event) -> None:
            await begun.wait()
            if queued:
                agent.steer("more")
            agent.cancel()
            tool_held.go.set()

        async with anyio.create_task_group() as group:
            group.start_soon(cancel_in, held.begun)
            group.start_soon(cancel_in, tool_held.begun)
            for place in range(8):
                statuses.append((await agent.prompt(f"{place}")).status)
                assert unpaired(agent.messages) == ""
        assert statuses == [
            *["completed", "max_steps", "failed", "failed", "cancelled", "cancelled"],
            *["completed", "completed"],
        ]
        assert model.refused == []


async def test_cancelling_from_an_async_listener_is_accepted_like_any_other(home: Home) -> None:
    held = Held(say("never"))
    async with home(Agent(model=StrictModel([held]))) as agent:

        async def impatient(event: AgentEvent) -> None:
            if event.type == "message_accepted":
                await held.begun.wait()
                assert agent.cancel("impatient")

        agent.subscribe(impatient)
        assert (await agent.prompt("hello")).reason == "impatient"
        assert agent.subscriber_errors == ()
