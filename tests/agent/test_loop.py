"""The stateless loop: how a run ends, pairs, boundaries, and whose cancel it was (promises 13–18, and 45)."""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import GO, Loop, on_asyncio, recorder
from stage import PATIENCE, StrictModel, texts, turn_over, unpaired

from course.agent import (
    AgentEvent,
    AssistantMessage,
    Chunk,
    Done,
    Message,
    MessageError,
    ModelRequest,
    RunError,
    RunResult,
    ScriptedModel,
    Signal,
    Text,
    TextDelta,
    ToolCall,
    ToolRegistry,
    ToolResultMessage,
    Transcript,
    TranscriptError,
    TurnEndEvent,
    UserMessage,
    call,
    run_agent_loop,
    say,
    tool,
)

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def fail() -> None:
    """Fail."""
    raise ValueError("no")


def two_calls(*ids: str) -> list[Chunk]:
    return [chunk for id in ids for chunk in call(id, "add", a=1, b=2)[:-1]] + [Done("tool_use")]


def feeding(*batches: Iterable[str]) -> Callable[[], list[UserMessage]]:
    """A hook that hands over one batch a time, then nothing."""
    waiting = [[UserMessage(text) for text in batch] for batch in batches]
    return lambda: waiting.pop(0) if waiting else []


# 13: what it returns


async def test_an_answer_without_calls_completes_with_its_text() -> None:
    loop = Loop(StrictModel([say("hi")]))
    result = await loop.run()
    answer = AssistantMessage((Text("hi"),))
    assert result == RunResult("completed", Transcript([GO, answer]), final_text="hi", stop_reason="stop")
    assert loop.names == ["text_delta", "assistant_message", "turn_end"]


async def test_calls_are_run_and_the_model_asked_again_with_their_results() -> None:
    model = StrictModel([two_calls("c1", "c2"), say("three")])
    loop = Loop(model, add, system="Be brief.")
    result = await loop.run()
    assert (result.status, result.final_text) == ("completed", "three")
    assert texts(result.messages) == ["u:go", "a:+c1+c2", "t:c1", "t:c2", "a:three"]
    assert [request.id for request in model.requests] == ["request-1", "request-2"]
    assert [texts(request.messages) for request in model.requests] == [["u:go"], ["u:go", "a:+c1+c2", "t:c1", "t:c2"]]
    assert {request.system for request in model.requests} == {"Be brief."}
    assert [spec.name for spec in model.requests[0].tools] == ["add"]


async def test_tool_calls_decide_whether_it_goes_on_and_not_the_stop_reason() -> None:
    with_calls = [*call("c1", "add", a=1, b=2)[:-1], Done("stop")]
    without = [TextDelta("x"), Done("tool_use")]
    model = StrictModel([with_calls, without])
    result = await Loop(model, add).run()
    assert len(model.requests) == 2
    assert (result.status, result.final_text, result.stop_reason) == ("completed", "x", "tool_use")


async def test_a_cut_answer_without_calls_is_completed_and_shows_its_stop_reason() -> None:
    result = await Loop(StrictModel([[TextDelta("half"), Done("length")]])).run()
    assert (result.status, result.final_text, result.stop_reason) == ("completed", "half", "length")


async def test_an_answer_of_nothing_is_completed_with_empty_text() -> None:
    result = await Loop(StrictModel([[Done("stop")]])).run()
    assert (result.status, result.final_text) == ("completed", "")


@pytest.mark.parametrize("steps", [1, 3])
async def test_max_steps_counts_requests_and_leaves_every_call_paired(steps: int) -> None:
    model = StrictModel([], beyond=call("c1", "add", a=1, b=2))
    result = await Loop(model, add, max_steps=steps).run()
    assert (result.status, result.final_text, result.stop_reason) == ("max_steps", None, "tool_use")
    assert len(model.requests) == steps
    assert texts(result.messages)[-1] == "t:c1"


async def test_a_final_answer_in_the_last_step_is_completed() -> None:
    result = await Loop(StrictModel([call("c1", "add", a=1, b=2), say("done")]), add, max_steps=2).run()
    assert result.status == "completed"


async def test_a_failure_has_a_code_and_a_text() -> None:
    result = await Loop(StrictModel([])).run()
    assert result.status == "failed"
    assert result.error is not None
    assert result.error.code == "SCRIPT_EXHAUSTED"
    assert (result.final_text, result.stop_reason) == (None, "error")


async def test_it_owns_nothing_after_it_returns() -> None:
    context = Transcript([GO])
    registry = ToolRegistry([add])
    signal = Signal()
    result = await Loop(StrictModel([say("hi")]), context=context, tools=registry, signal=signal).run()
    assert context == (GO,)
    assert context.append(UserMessage("other")) == (GO, UserMessage("other"))
    assert texts(result.messages) == ["u:go", "a:hi"]
    again = await Loop(StrictModel([say("hi")]), context=context, tools=registry, signal=signal).run()
    assert again.messages == result.messages


async def test_a_plain_list_is_a_context_and_is_not_changed() -> None:
    context: list[Message] = [GO]
    await Loop(StrictModel([say("hi")]), context=context).run()
    assert context == [GO]


async def test_tools_registered_during_the_run_are_not_in_it() -> None:
    registry = ToolRegistry([add])
    model = StrictModel([call("c1", "fail"), say("ok")])

    def react(event: AgentEvent) -> None:
        if event.sequence == 0:
            registry.register(fail)

    result = await Loop(model, tools=registry, react=react).run()
    assert "There is no tool 'fail'" in result.messages[2].text
    assert [len(request.tools) for request in model.requests] == [1, 1]


async def test_less_than_one_step_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        await Loop(StrictModel([]), max_steps=0).run()


# 14: pairs


@pytest.mark.parametrize(
    "context",
    [
        [GO, AssistantMessage((ToolCall("c1", "add"),), "tool_use")],
        [AssistantMessage((ToolCall("c1", "add"),), "tool_use"), GO, ToolResultMessage("c1", "add", "3")],
        [GO, ToolResultMessage("c1", "add", "3")],
    ],
)
async def test_a_context_with_an_unpaired_call_is_refused_before_any_request(context: list[Message]) -> None:
    model = StrictModel([say("hi")])
    with pytest.raises(TranscriptError):
        await Loop(model, context=context).run()
    assert model.requests == []


async def test_what_is_no_message_is_refused_before_any_request() -> None:
    model = StrictModel([say("hi")])
    with pytest.raises(MessageError):
        await Loop(model, context=["go"]).run()  # type: ignore[list-item]
    assert model.requests == []


async def test_steering_waits_until_all_results_stand_behind_their_calls() -> None:
    model = StrictModel([two_calls("c1", "c2"), say("ok")])
    loop = Loop(model, add, fail, take_steering=feeding(["first", "second"]))
    result = await loop.run()
    assert texts(result.messages) == ["u:go", "a:+c1+c2", "t:c1", "t:c2", "u:first", "u:second", "a:ok"]


# 15: a failing model


@pytest.mark.parametrize("failure", [[TextDelta("partial")], [TextDelta("partial"), *call("c9", "add")[:1]]])
async def test_failure_after_tools_keeps_their_results_and_adds_one_error_message(failure: list[Chunk]) -> None:
    loop = Loop(StrictModel([call("c1", "add", a=1, b=2), failure]), add)
    result = await loop.run()
    assert texts(result.messages) == ["u:go", "a:+c1", "t:c1", "error"]
    text = "the stream ended before the model said it was done"
    assert result.error == RunError("RESPONSE_ENDED_EARLY", text)
    assert result.messages[-1] == AssistantMessage((), "error", text)
    assert loop.names.count("turn_end") == 1


async def test_error_messages_stay_in_the_record_and_are_not_sent_again() -> None:
    failed = AssistantMessage((), "error", "no line")
    model = StrictModel([call("c1", "add", a=1, b=2), say("ok")])
    result = await Loop(model, add, context=[failed, GO, failed, failed], take_steering=feeding(["and?"])).run()
    assert [texts(request.messages) for request in model.requests] == [["u:go"], ["u:go", "a:+c1", "t:c1", "u:and?"]]
    assert texts(result.messages) == ["error", "u:go", "error", "error", "a:+c1", "t:c1", "u:and?", "a:ok"]


async def test_a_failure_can_be_followed_by_another_run_on_its_transcript() -> None:
    first = await Loop(StrictModel([call("c1", "add", a=1, b=2)]), add).run()
    second = await Loop(StrictModel([say("back")]), add, context=first.messages).run()
    assert texts(second.messages) == ["u:go", "a:+c1", "t:c1", "error", "a:back"]


# 16: cancel


async def test_cancelled_at_entry_there_is_no_request() -> None:
    model = StrictModel([say("hi")])
    signal = Signal()
    signal.cancel("never mind")
    result = await Loop(model, signal=signal, take_steering=feeding(["x"])).run()
    assert result == RunResult("cancelled", Transcript([GO]), reason="never mind")
    assert model.requests == []


async def test_model_and_tools_get_the_very_signal_of_the_run() -> None:
    seen: list[Any] = []

    @tool
    async def look(signal: Signal) -> None:
        """Look."""
        seen.append(signal)

    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        seen.append(signal)
        for chunk in call("c1", "look") if len(seen) == 1 else say("done"):
            yield chunk

    signal = Signal()
    await Loop(StrictModel([answer, answer]), look, signal=signal).run()
    assert len(seen) == 3
    assert all(each is signal for each in seen)


async def test_cancelled_in_a_request_its_partial_text_is_not_adopted() -> None:
    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        yield TextDelta("partial")
        signal.cancel("enough")
        await anyio.sleep_forever()

    loop = Loop(StrictModel([call("c1", "add", a=1, b=2), answer]), add)
    result = await loop.run()
    assert (result.status, result.reason, result.final_text) == ("cancelled", "enough", None)
    assert texts(result.messages) == ["u:go", "a:+c1", "t:c1"]


async def test_cancelled_in_a_tool_running_calls_settle_and_nothing_more_is_asked() -> None:
    @tool
    async def stop(signal: Signal) -> str:
        """Stop."""
        signal.cancel("enough")
        await anyio.lowlevel.checkpoint()
        return "stopped"

    model = StrictModel([[*call("c1", "stop"), *two_calls("c2")], say("never")])
    boundary = Boundary(steering=[["left"]], follow_ups=[["more"]])
    loop = Loop(model, stop, add, take_steering=boundary.take_steering, take_follow_ups=boundary.take_follow_ups)
    result = await loop.run()
    assert result.status == "cancelled"
    assert [message.text for message in result.messages[2:]] == [
        "stopped",
        "add was skipped: the run was cancelled before it started.",
    ]
    assert len(model.requests) == 1
    assert boundary.log == []
    assert loop.names[-1] == "turn_end"
    assert "tool_skipped" in loop.names


@pytest.mark.parametrize("at", ["assistant_message", "turn_end"])
@pytest.mark.parametrize("steps", [1, 2])
async def test_an_accepted_cancel_beats_a_completion_that_races_it(at: str, steps: int) -> None:
    signal = Signal()
    boundary = Boundary(steering=[["left"]], follow_ups=[["more"]])

    def react(event: AgentEvent) -> None:
        if event.type == at:
            signal.cancel("late")

    options = {**boundary.options(), "react": react}
    result = await Loop(StrictModel([say("hi")]), signal=signal, max_steps=steps, **options).run()
    assert (result.status, result.reason, result.final_text) == ("cancelled", "late", None)
    assert texts(result.messages) == ["u:go", "a:hi"]
    assert boundary.log == []


async def test_a_cancel_while_input_is_accepted_keeps_the_input_and_asks_nothing() -> None:
    signal = Signal()
    model = StrictModel([say("hi"), say("never")])

    def react(event: AgentEvent) -> None:
        if event.type == "message_accepted":
            signal.cancel()

    result = await Loop(model, signal=signal, react=react, take_follow_ups=feeding(["a", "b"])).run()
    assert result.status == "cancelled"
    assert texts(result.messages) == ["u:go", "a:hi", "u:a", "u:b"]
    assert len(model.requests) == 1


# 17: cancelled from outside


async def cancel_by_scope(loop: Loop, begun: anyio.Event) -> None:
    """Run the loop in a scope, cancel that once `begun`, and prove that the cancellation came through."""
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await loop.run()
            raise AssertionError("the cancellation was swallowed")

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            await turn_over()
            scope.cancel()
    assert scope.cancelled_caught


async def cancel_by_task(loop: Loop, begun: anyio.Event) -> None:
    """The same by cancelling a bare asyncio task."""
    task = asyncio.ensure_future(loop.run())
    await begun.wait()
    await turn_over()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


either_way = pytest.mark.parametrize(
    ("anyio_backend", "cancel"),
    [("asyncio", cancel_by_scope), ("asyncio", cancel_by_task), ("trio", cancel_by_scope)],
    ids=["asyncio", "asyncio-task", "trio"],
)
Cancel = Callable[[Loop, anyio.Event], Any]


class Stubborn:
    """`wait`, a tool that makes what it likes of a cancellation; and a model that does."""

    def __init__(self, then: str) -> None:
        self.begun = anyio.Event()
        self.then = then

    async def wait(self) -> str:
        """Wait."""
        self.begun.set()
        try:
            await anyio.sleep_forever()
        except BaseException:
            if self.then == "obey":
                raise
            if self.then == "raise":
                raise ValueError("no") from None
        return "swallowed"

    async def __call__(self, request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        text = await self.wait()
        for chunk in say(text) if self.then == "answer" else call("c9", "add", a=1, b=2):
            yield chunk


@either_way
@pytest.mark.parametrize("then", ["obey", "answer", "raise"])
@pytest.mark.parametrize("alone", [True, False])
async def test_cancelled_from_outside_in_a_tool_the_turn_is_told_whole_and_the_cancel_passed_on(
    cancel: Cancel, then: str, alone: bool
) -> None:
    stubborn = Stubborn(then)
    model = StrictModel([[*call("c1", "wait"), *([] if alone else two_calls("c2"))], say("never")])
    loop = Loop(model, tool(stubborn.wait), add)
    await cancel(loop, stubborn.begun)
    assert loop.names[-1] == "turn_end"
    assert texts(loop.told) == ["u:go", "a:+c1" + "+c2" * (not alone), "t:c1", *["t:c2"] * (not alone)]
    assert len(model.requests) == 1
    if then == "obey":
        assert "interrupted" in loop.told[2].text


@either_way
@pytest.mark.parametrize("then", ["obey", "answer", "call", "raise"])
async def test_cancelled_from_outside_in_a_request_nothing_follows_and_the_cancel_is_passed_on(
    cancel: Cancel, then: str
) -> None:
    stubborn = Stubborn(then)
    model = StrictModel([call("c1", "add", a=1, b=2), stubborn, say("never")])
    loop = Loop(model, add)
    await cancel(loop, stubborn.begun)
    assert len(model.requests) == 2
    assert texts(loop.told) == ["u:go", "a:+c1", "t:c1"]
    assert loop.names.count("assistant_message") == loop.names.count("tool_start") == 1


@on_asyncio
async def test_a_timeout_of_asyncio_around_the_loop_is_obeyed() -> None:
    stubborn = Stubborn("answer")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await Loop(StrictModel([stubborn])).run()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@on_asyncio
async def test_a_loop_in_a_task_that_was_cancelled_before_runs_as_any_other() -> None:
    """As in clean-up: the old request to cancel is no new one."""

    async def clean_up() -> RunResult:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return await Loop(StrictModel([call("c1", "add", a=1, b=2), say("bye")]), add).run()
        raise AssertionError

    task = asyncio.ensure_future(clean_up())
    await turn_over()
    task.cancel()
    assert (await task).final_text == "bye"


async def test_a_loop_in_a_shield_runs_as_any_other_whatever_is_cancelled_around_it() -> None:
    results: list[RunResult] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                results.append(await Loop(StrictModel([call("c1", "add", a=1, b=2), say("bye")]), add).run())
    assert [result.final_text for result in results] == ["bye"]


# 18: the order at a boundary


class Boundary:
    """Hooks that write down when they are asked, and a loop's events in between."""

    def __init__(self, steering: list[list[str]], follow_ups: list[list[str]]) -> None:
        self.log: list[str] = []
        self._steering, self._follow_ups = feeding(*steering), feeding(*follow_ups)

    def take_steering(self) -> list[UserMessage]:
        self.log.append("steering?")
        return self._steering()

    def take_follow_ups(self) -> list[UserMessage]:
        self.log.append("follow-up?")
        return self._follow_ups()

    def react(self, event: AgentEvent) -> None:
        if event.type in ("assistant_message", "turn_end"):
            self.log.append(event.type)
        if event.type == "message_accepted":
            self.log.append(f"{event.kind}: {event.message.text}")  # type: ignore[attr-defined]

    def options(self) -> dict[str, Any]:
        return {"react": self.react, "take_steering": self.take_steering, "take_follow_ups": self.take_follow_ups}


async def test_steering_comes_before_follow_ups_and_both_before_the_end() -> None:
    boundary = Boundary(steering=[[], ["left"], []], follow_ups=[["more", "and more"]])
    model = StrictModel([call("c1", "add", a=1, b=2), say("one"), say("two"), say("three")])
    result = await Loop(model, add, **boundary.options()).run()
    assert boundary.log == [
        *["assistant_message", "turn_end", "steering?"],  # after calls: no follow-up is asked for
        *["assistant_message", "turn_end", "steering?", "steering: left"],  # it would stop, but there is steering
        *["assistant_message", "turn_end", "steering?", "follow-up?", "follow_up: more", "follow_up: and more"],
        *["assistant_message", "turn_end", "steering?", "follow-up?"],
    ]
    assert (result.status, result.final_text) == ("completed", "three")
    assert len(model.requests) == 4


async def test_every_accepted_message_is_told_with_the_transcript_it_entered() -> None:
    loop = Loop(StrictModel([say("one"), say("two")]), take_follow_ups=feeding(["a", "b"]))
    await loop.run()
    told = [texts(event.messages) for event in loop.events if event.type == "message_accepted"]  # type: ignore[attr-defined]
    assert told == [["u:go", "a:one", "u:a"], ["u:go", "a:one", "u:a", "u:b"]]


@pytest.mark.parametrize("last", [say("one"), call("c1", "add", a=1, b=2)])
async def test_out_of_steps_with_input_waiting_no_queue_is_read(last: list[Chunk]) -> None:
    boundary = Boundary(steering=[["left"]], follow_ups=[["more"]])
    result = await Loop(StrictModel([last]), add, max_steps=1, input_waits=lambda: True, **boundary.options()).run()
    assert result.status == "max_steps"
    assert boundary.log == ["assistant_message", "turn_end"]


async def test_out_of_steps_without_input_waiting_an_answer_completes_and_no_queue_is_read() -> None:
    boundary = Boundary(steering=[["left"]], follow_ups=[["more"]])
    result = await Loop(StrictModel([say("one")]), max_steps=1, **boundary.options()).run()
    assert (result.status, result.final_text) == ("completed", "one")
    assert boundary.log == ["assistant_message", "turn_end"]


async def test_no_queue_is_read_after_a_failure() -> None:
    boundary = Boundary(steering=[["left"]], follow_ups=[["more"]])
    result = await Loop(StrictModel([[]]), **boundary.options()).run()
    assert result.status == "failed"
    assert boundary.log == []


async def test_what_a_hook_raises_is_passed_on_and_a_refused_response_runs_no_tool() -> None:
    def refuse(message: AssistantMessage) -> None:
        raise LookupError("no room")

    loop = Loop(StrictModel([call("c1", "add", a=1, b=2)]), add, admit=refuse)
    with pytest.raises(LookupError, match="no room"):
        await loop.run()
    assert loop.names == ["tool_call"]


# 14 and 16 together: any run at all, cancelled at any event


def answers(data: st.DataObject, number: int) -> list[Chunk]:
    calls = data.draw(st.lists(st.sampled_from(["add", "fail", "nothing", "pause", "stop"]), max_size=3))
    chunks = [chunk for place, name in enumerate(calls) for chunk in call(f"c{number}.{place}", name)[:-1]]
    return [TextDelta("x"), *chunks, *data.draw(st.sampled_from([[Done("stop")], [Done("tool_use")], []]))]


@settings(max_examples=60)
@given(data=st.data())
async def test_after_every_ending_each_call_has_exactly_one_result(data: st.DataObject) -> None:
    @tool
    async def pause() -> None:
        """Pause."""
        await anyio.lowlevel.checkpoint()

    @tool
    async def stop(signal: Signal) -> None:
        """Cancel."""
        signal.cancel("by a tool")

    signal = Signal()
    cancel_at = data.draw(st.none() | st.integers(0, 12))

    def react(event: AgentEvent) -> None:
        if event.sequence == cancel_at:
            signal.cancel("by a listener")

    loop = Loop(
        StrictModel([answers(data, number) for number in range(3)]),
        *[add, fail, pause, stop],
        signal=signal,
        max_steps=data.draw(st.integers(1, 4)),
        take_steering=feeding(*data.draw(st.lists(st.lists(st.sampled_from("ab"), max_size=2), max_size=2))),
        take_follow_ups=feeding(*data.draw(st.lists(st.lists(st.sampled_from("cd"), max_size=2), max_size=2))),
        react=react,
    )
    result = await loop.run()
    assert unpaired(result.messages) == ""
    assert (result.status == "cancelled") == signal.cancelled
    assert result.reason == signal.reason
    assert [event.sequence for event in loop.events] == list(range(len(loop.events)))
    adopted = [event.message for event in loop.events if event.type == "assistant_message"]  # type: ignore[attr-defined]
    kept = [message for message in result.messages if isinstance(message, AssistantMessage) and not message.error]
    assert kept == adopted
    assert loop.names.count("turn_end") == len(adopted)
    ended = [event.result for event in loop.events if event.type in ("tool_end", "tool_skipped")]  # type: ignore[attr-defined]
    recorded = [message for message in result.messages if isinstance(message, ToolResultMessage)]
    assert sorted(ended, key=recorded.index) == recorded


# 45: flat in the length of the transcript


class Costs:
    """Calls of Python functions, and bytes kept, from one turn's end to the next."""

    def __init__(self) -> None:
        self.calls: list[int] = []
        self.kept: list[int] = []
        self._count = 0

    def profile(self, frame: object, event: str, arg: object) -> None:
        self._count += event in ("call", "c_call")

    def react(self, event: AgentEvent) -> None:
        if isinstance(event, TurnEndEvent):
            self.calls.append(self._count)
            self.kept.append(tracemalloc.get_traced_memory()[0])


@on_asyncio
async def test_a_turn_costs_the_same_at_the_end_of_a_long_run_as_at_its_start() -> None:
    turns, quarter = 400, 100
    deltas: list[Chunk] = [TextDelta("word ")] * 3
    model = ScriptedModel([[*deltas, *call("c1", "add", a=1, b=2)]] * turns + [say("done")])
    costs = Costs()
    _, emit = recorder(costs.react)
    gc.collect()
    tracemalloc.start()
    sys.setprofile(costs.profile)
    try:
        await run_agent_loop([GO], model=model, tools=ToolRegistry([add]), max_steps=turns + 1, emit=emit)
    finally:
        sys.setprofile(None)
        tracemalloc.stop()
    for marks, least in ((costs.calls, 50), (costs.kept, 500)):
        first = marks[quarter] - marks[0]
        last = marks[turns - 1] - marks[turns - 1 - quarter]
        assert first > least * quarter  # something was measured
        assert last < 1.1 * first
