"""One model request: completed, failed or cancelled, and the model's stream closed on every path (promises 8, 9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recording import GO, React, a_foreign_cancellation, on_asyncio, recorder, rounds_until_idle
from stage import PATIENCE, turn_over

from course.agent import (
    AssistantMessage,
    Chunk,
    Done,
    ModelRequest,
    ScriptedModel,
    Signal,
    Text,
    TextDelta,
    TextDeltaEvent,
    ToolCall,
    ToolCallEvent,
    ToolCallStart,
    Transcript,
    call,
    run_request,
    say,
)
from course.agent.request import Cancelled, Completed, Failed, Outcome

pytestmark = pytest.mark.anyio

Answering = Callable[[ModelRequest, Signal], AsyncGenerator[Chunk]]

REQUEST = ModelRequest("request-1", "", Transcript([GO]), ())


class Asking:
    """One request to a model that this function plays; `closed` tells that its clean-up, which waits, has ended.

    `shield` tells whether the model shields its clean-up, as it must where the cancel may find it waiting.
    """

    def __init__(self, answer: Answering, react: React = lambda event: None, *, shield: bool = True) -> None:
        self.answer = answer
        self.shield = shield
        self.signal = Signal()
        self.events, self.emit = recorder(react)
        self.begun = anyio.Event()
        self.closed = False
        self.yielded = 0

    async def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
        self.begun.set()
        try:
            async with aclosing(self.answer(request, signal)) as chunks:
                async for chunk in chunks:
                    yield chunk
                    self.yielded += 1
        finally:
            with anyio.CancelScope(shield=self.shield):
                for _ in range(3):
                    await anyio.lowlevel.checkpoint()
                self.closed = True

    async def run(self) -> Outcome:
        try:
            return await run_request(self, REQUEST, signal=self.signal, emit=self.emit)
        finally:
            assert self.closed or not self.begun.is_set()

    async def cancelled_once_it_waits(self, cancel: Callable[[], object] | None = None) -> Outcome:
        """The outcome when the signal is set, or `cancel` called, as soon as the model waits."""
        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await self.run())

        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group:
                group.start_soon(run)
                await self.begun.wait()
                await turn_over()
                assert outcomes == []
                (cancel or self.signal.cancel)()
        return outcomes[0]


def playing(*chunks: Chunk) -> Answering:
    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        for chunk in chunks:
            yield chunk

    return answer


def raising(error: BaseException, *before: Chunk) -> Answering:
    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        for chunk in before:
            yield chunk
        raise error

    return answer


async def waiting(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
    """Ignores the signal: nothing but a cancelled scope gets it out of its sleep."""
    yield TextDelta("partial")
    await anyio.sleep_forever()


async def assert_nothing_of_a_cancel_is_left() -> None:
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert anyio.current_effective_deadline() > float("-inf")
    with suppress(RuntimeError):  # on trio there is no such task
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0


# 8: completed, failed or cancelled; closed on every path


async def test_a_whole_answer_completes_the_request_and_is_told_as_it_streams() -> None:
    asking = Asking(playing(TextDelta("Hel"), TextDelta("lo"), *call("c1", "add", a=1)))
    message = AssistantMessage((Text("Hello"), ToolCall("c1", "add", {"a": 1})), "tool_use")
    assert await asking.run() == Completed(message)
    assert asking.events == [
        TextDeltaEvent("run-1", 0, "Hel"),
        TextDeltaEvent("run-1", 1, "lo"),
        ToolCallEvent("run-1", 2, "c1", "add"),
    ]


async def test_nothing_is_read_after_done() -> None:
    asking = Asking(playing(*say("hi"), TextDelta("more"), Done("again")), shield=False)
    assert await asking.run() == Completed(AssistantMessage((Text("hi"),)))
    assert asking.yielded == 1  # it was closed where it stood, at Done


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (playing(TextDelta("x")), "RESPONSE_ENDED_EARLY"),
        (playing(ToolCallStart("c1", "a"), ToolCallStart("c1", "a")), "RESPONSE_DUPLICATE_CALL"),
        (playing(TextDelta("\ud800"), Done("stop")), "RESPONSE_BAD_CHUNK"),
        (playing("x"), "RESPONSE_BAD_CHUNK"),  # type: ignore[arg-type]
        (playing(TextDelta("x"), Done("error")), "RESPONSE_ERROR"),
        (raising(ConnectionError("no line")), "MODEL_FAILED"),
        (raising(ConnectionError("no line"), TextDelta("x")), "MODEL_FAILED"),
        (raising(ConnectionError("\ud800")), "MODEL_FAILED"),
        (raising(SystemExit(1), TextDelta("x")), "MODEL_FAILED"),
        (raising(BaseExceptionGroup("both", [SystemExit(1), ValueError("x")])), "MODEL_FAILED"),
        (raising(asyncio.CancelledError()), "MODEL_FAILED"),
    ],
)
async def test_a_broken_stream_fails_the_request_with_a_code(answer: Answering, code: str) -> None:
    outcome = await Asking(answer, shield=False).run()
    assert isinstance(outcome, Failed)
    assert outcome.code == code
    AssistantMessage((), "error", outcome.text)  # whatever was raised, its text can stand in a transcript


async def test_an_error_without_a_readable_text_still_fails_the_request() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert await Asking(raising(Mute())).run() == Failed("MODEL_FAILED", "Mute")
    assert await Asking(raising(ValueError())).run() == Failed("MODEL_FAILED", "ValueError")


async def test_a_model_that_raises_before_it_streams_fails_the_request() -> None:
    class Unready:
        def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
            raise ConnectionError("no key")

    _, emit = recorder()
    assert await run_request(Unready(), REQUEST, signal=Signal(), emit=emit) == Failed("MODEL_FAILED", "no key")


async def test_a_script_that_is_used_up_fails_the_request_and_says_so() -> None:
    _, emit = recorder()
    outcome = await run_request(ScriptedModel([]), REQUEST, signal=Signal(), emit=emit)
    assert isinstance(outcome, Failed)
    assert outcome.code == "SCRIPT_EXHAUSTED"


async def test_keyboard_interrupt_is_nobodys_failure() -> None:
    with pytest.raises(KeyboardInterrupt):
        await Asking(raising(KeyboardInterrupt())).run()


async def test_an_error_out_of_the_clean_up_fails_the_request() -> None:
    async def clumsy(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        try:
            for chunk in say("hi"):
                yield chunk
        finally:
            raise OSError("socket")

    class Clumsy:
        stream = staticmethod(lambda request, *, signal: clumsy(request, signal))

    _, emit = recorder()
    assert await run_request(Clumsy(), REQUEST, signal=Signal(), emit=emit) == Failed("MODEL_FAILED", "socket")


async def test_a_stream_that_is_an_object_is_closed_where_it_can_be() -> None:
    class Chunks:
        def __init__(self) -> None:
            self.left = say("hi")
            self.closed = False

        def __aiter__(self) -> Chunks:
            return self

        async def __anext__(self) -> Chunk:
            return self.left.pop(0)

        async def aclose(self) -> None:
            await anyio.lowlevel.checkpoint()
            self.closed = True

    class WithoutClose:
        """Only its iterator can be closed."""

        def __init__(self) -> None:
            self.closed = False

        async def __aiter__(self) -> AsyncIterator[Chunk]:
            try:
                for chunk in say("hi"):
                    yield chunk
            finally:
                await anyio.lowlevel.checkpoint()
                self.closed = True

    class Gives:
        def __init__(self, chunks: Any) -> None:
            self.stream = lambda request, signal: chunks

    for chunks in (Chunks(), WithoutClose()):
        _, emit = recorder()
        outcome = await run_request(Gives(chunks), REQUEST, signal=Signal(), emit=emit)
        assert outcome == Completed(AssistantMessage((Text("hi"),)))
        assert chunks.closed


# 9: cancelling interrupts the request, and the signal decides


async def test_the_signal_interrupts_a_model_that_ignores_it() -> None:
    asking = Asking(waiting)
    assert await asking.cancelled_once_it_waits() == Cancelled()
    assert [event.type for event in asking.events] == ["text_delta"]
    await assert_nothing_of_a_cancel_is_left()


async def test_a_signal_set_before_interrupts_at_the_first_wait() -> None:
    asking = Asking(waiting)
    asking.signal.cancel()
    assert await asking.run() == Cancelled()
    assert asking.events == []


def absorbing(then: Answering) -> Answering:
    """Swallows the cancellation, and goes on as if nothing were."""

    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        yield TextDelta("partial")
        with suppress(BaseException):
            await anyio.sleep_forever()
        async with aclosing(then(request, signal)) as chunks:
            async for chunk in chunks:
                yield chunk

    return answer


async def shielded_answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
    with anyio.CancelScope(shield=True):
        await signal.wait()
        await anyio.lowlevel.checkpoint()
    for chunk in say("never mind"):
        yield chunk


async def cancelling_its_own(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
    await signal.wait()
    raise asyncio.CancelledError
    yield


@pytest.mark.parametrize(
    "answer",
    [
        absorbing(playing()),
        absorbing(playing(*say("an answer"))),
        absorbing(playing(*call("c1", "add"))),
        absorbing(raising(ValueError("something else"))),
        absorbing(raising(asyncio.CancelledError())),
        absorbing(raising(SystemExit(1))),
        absorbing(absorbing(playing(*say("an answer")))),
        shielded_answer,
        cancelling_its_own,
        waiting,
    ],
    ids=[
        "ends early",
        "answers",
        "asks for a tool",
        "raises",
        "raises a cancellation",
        "exits",
        "swallows twice",
        "answers out of a shield",
        "raises its own",
        "just waits",
    ],
)
async def test_whatever_a_model_makes_of_the_cancel_the_request_ends_cancelled(answer: Answering) -> None:
    asking = Asking(answer)
    assert await asking.cancelled_once_it_waits() == Cancelled()
    await assert_nothing_of_a_cancel_is_left()


async def test_a_cancel_between_two_chunks_stops_reading_and_leaves_nothing() -> None:
    answer = playing(TextDelta("a"), TextDelta("b"), Done("stop"))
    asking = Asking(answer, lambda event: asking.signal.cancel(), shield=False)
    assert await asking.run() == Cancelled()
    assert [event.type for event in asking.events] == ["text_delta"]
    await assert_nothing_of_a_cancel_is_left()


async def test_a_model_may_set_the_signal_itself() -> None:
    async def gives_up(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        signal.cancel("enough")
        for chunk in say("hi"):
            yield chunk

    asking = Asking(gives_up, shield=False)
    assert await asking.run() == Cancelled()
    assert asking.signal.reason == "enough"
    await assert_nothing_of_a_cancel_is_left()


async def test_a_cancel_during_the_clean_up_does_not_cut_it_short() -> None:
    async def closing(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        try:
            for chunk in say("hi"):
                yield chunk
        finally:
            signal.cancel()
            await anyio.lowlevel.checkpoint()

    asking = Asking(closing, shield=False)
    assert await asking.run() == Cancelled()
    await assert_nothing_of_a_cancel_is_left()


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    asking = Asking(raising(await a_foreign_cancellation(), TextDelta("x")))
    outcome = await asking.run()
    assert isinstance(outcome, Failed)
    assert outcome.code == "MODEL_FAILED"
    await assert_nothing_of_a_cancel_is_left()


@on_asyncio
async def test_a_cancelled_subtask_of_the_models_own_is_a_failure() -> None:
    async def delegating(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        subtask = asyncio.ensure_future(anyio.sleep_forever())
        await asyncio.sleep(0)
        subtask.cancel()
        await subtask
        yield Done("stop")

    outcome = await Asking(delegating).run()
    assert outcome == Failed("MODEL_FAILED", "the model's stream was cancelled, and not by this run")
    await assert_nothing_of_a_cancel_is_left()


# a cancellation from outside is passed on


async def test_a_scope_around_the_request_is_obeyed_and_the_stream_closed() -> None:
    asking = Asking(waiting)
    with anyio.CancelScope() as scope:
        with pytest.raises(IndexError):  # there is no outcome
            await asking.cancelled_once_it_waits(scope.cancel)
        raise AssertionError("the scope was cancelled")
    assert scope.cancelled_caught
    assert asking.closed


@on_asyncio
@pytest.mark.parametrize("with_signal", [False, True])
async def test_a_cancelled_asyncio_task_ends_cancelled_even_if_the_signal_is_set_as_well(with_signal: bool) -> None:
    asking = Asking(waiting)
    task = asyncio.ensure_future(asking.run())
    await asking.begun.wait()
    await turn_over()
    if with_signal:
        asking.signal.cancel()
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    assert asking.closed


# the event loop does not spin


def test_an_interrupted_model_that_takes_its_time_to_close_does_not_spin_the_loop() -> None:
    async def start(on_idle: Callable[[Callable[[], object]], None]) -> None:
        go = asyncio.Event()

        async def slow_to_close(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
            try:
                await anyio.sleep_forever()
                yield Done("stop")
            finally:
                with anyio.CancelScope(shield=True):
                    on_idle(go.set)
                    await go.wait()

        assert await Asking(slow_to_close).cancelled_once_it_waits() == Cancelled()

    assert rounds_until_idle(start) < 50


# any script at all

STEPS: dict[str, Callable[[Signal], Awaitable[Chunk | None]]] = {}


def step(function: Callable[[Signal], Awaitable[Chunk | None]]) -> Callable[[Signal], Awaitable[Chunk | None]]:
    STEPS[function.__name__] = function
    return function


@step
async def text(signal: Signal) -> Chunk:
    return TextDelta("x")


@step
async def start_call(signal: Signal) -> Chunk:
    return ToolCallStart("c1", "add")


@step
async def done(signal: Signal) -> Chunk:
    return Done("stop")


@step
async def pause(signal: Signal) -> None:
    await anyio.lowlevel.checkpoint()


@step
async def cancel(signal: Signal) -> None:
    signal.cancel()


@step
async def wait_and_swallow(signal: Signal) -> None:
    try:
        await signal.wait() if signal.cancelled else await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
    except BaseException:
        pass


@step
async def fail(signal: Signal) -> None:
    raise ValueError("no")


@step
async def cancel_somebody(signal: Signal) -> None:
    raise await a_foreign_cancellation()


@settings(max_examples=80)
@given(names=st.lists(st.sampled_from(sorted(STEPS)), max_size=7))
async def test_any_model_ends_in_exactly_one_outcome(names: list[str]) -> None:
    async def answer(request: ModelRequest, signal: Signal) -> AsyncGenerator[Chunk]:
        for name in names:
            chunk = await STEPS[name](signal)
            if chunk is not None:
                yield chunk

    asking = Asking(answer)
    with anyio.fail_after(PATIENCE):
        outcome = await asking.run()
    expected = Cancelled if asking.signal.cancelled else (Completed, Failed)
    assert isinstance(outcome, expected)
    if isinstance(outcome, Completed):
        assert "done" in names
        assert "fail" not in names[: names.index("done")]
    await assert_nothing_of_a_cancel_is_left()
