"""Listeners: called in order, over what is subscribed, and never able to hurt a run (promises 24, 25)."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from stage import Held, Home, StrictModel, in_every_home, names, recorded, texts, turn_over

from course.agent import Agent, AgentEvent, RunEndEvent, SubscriberError, say

pytestmark = [pytest.mark.anyio, in_every_home]

QUIET_RUN = ["run_start", "message_accepted", "text_delta", "assistant_message", "turn_end", "run_end"]


class Stop(BaseException):
    """What a test framework or a framework's control flow raises past `except Exception`."""


# 24: state first, then listeners in order


async def test_listeners_are_called_in_the_order_of_registration(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        order: list[str] = []
        for name in "abc":
            agent.subscribe(lambda event, name=name: order.append(name))
        await agent.prompt("hello")
        assert "".join(order) == "abc" * len(QUIET_RUN)


async def test_who_subscribes_during_an_event_hears_the_next_one(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        late: list[AgentEvent] = []
        agent.subscribe(lambda event: agent.subscribe(late.append) if event.type == "text_delta" else None)
        await agent.prompt("hello")
        assert names(late) == QUIET_RUN[3:]


async def test_who_is_unsubscribed_during_an_event_still_hears_that_one_and_no_more(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        heard: list[AgentEvent] = []
        agent.subscribe(lambda event: unsubscribe() if event.type == "text_delta" else None)
        unsubscribe = agent.subscribe(heard.append)
        await agent.prompt("hello")
        assert names(heard) == QUIET_RUN[:3]


async def test_a_listener_may_unsubscribe_itself_and_the_next_one_misses_nothing(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        once: list[AgentEvent] = []

        def only_once(event: AgentEvent) -> None:
            once.append(event)
            unsubscribe()

        unsubscribe = agent.subscribe(only_once)
        heard = recorded(agent)
        await agent.prompt("hello")
        assert (names(once), names(heard)) == (QUIET_RUN[:1], QUIET_RUN)


async def test_events_made_while_one_is_told_wait_until_everybody_has_heard_it(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("one"), say("two")]))) as agent:
        before, after = recorded(agent), []
        done = anyio.Event()

        def go_on(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent):
                agent.prompt("more") if event.run_id == "run-1" else done.set()

        agent.subscribe(go_on)
        agent.subscribe(after.append)
        agent.prompt("start")
        await done.wait()
        assert before == after
        assert [(event.run_id, event.type) for event in after] == [
            (run, name) for run in ("run-1", "run-2") for name in QUIET_RUN
        ]


async def test_a_function_subscribed_twice_is_called_twice_and_each_registration_ends_alone(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("one"), say("two"), say("three")]))) as agent:
        heard: list[AgentEvent] = []
        listener = heard.append
        end_first, end_second = agent.subscribe(listener), agent.subscribe(listener)
        await agent.prompt("1")
        assert len(heard) == 2 * len(QUIET_RUN)
        end_first()
        end_first()
        await agent.prompt("2")
        assert len(heard) == 3 * len(QUIET_RUN)
        end_second()
        await agent.prompt("3")
        assert len(heard) == 3 * len(QUIET_RUN)


async def test_unsubscribing_drops_the_reference_to_the_listener(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi"), say("again")]))) as agent:

        class Listener:
            async def hear(self, event: AgentEvent) -> None:
                pass

        listener = Listener()
        gone = weakref.ref(listener)
        unsubscribe = agent.subscribe(listener.hear)
        await agent.prompt("hello")
        await turn_over()
        unsubscribe()
        del listener
        gc.collect()
        assert gone() is None
        await agent.prompt("more")


# 25: a listener cannot hurt the run


@pytest.mark.parametrize("error", [ValueError("oops"), SystemExit(3), Stop("now"), asyncio.CancelledError()])
async def test_a_raising_listener_is_recorded_and_the_rest_still_hear(home: Home, error: BaseException) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:

        def fail(event: AgentEvent) -> None:
            if event.type == "text_delta":
                raise error

        agent.subscribe(fail)
        heard = recorded(agent)
        result = await agent.prompt("hello")
        assert (result.status, names(heard)) == ("completed", QUIET_RUN)
        assert agent.subscriber_errors == (SubscriberError("run-1", 2, "text_delta", repr(error)),)


@pytest.mark.parametrize("make", [ValueError, SystemExit, Stop, asyncio.CancelledError])
async def test_an_async_listener_that_raises_is_recorded_and_goes_on_listening(
    home: Home, make: Callable[[], BaseException]
) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        heard: list[str] = []
        ended = anyio.Event()

        async def fail(event: AgentEvent) -> None:
            heard.append(event.type)
            if event.type == "text_delta":
                raise make()
            if event.type == "run_end":
                ended.set()

        agent.subscribe(fail)
        result = await agent.prompt("hello")
        await ended.wait()
        assert (result.status, heard) == ("completed", QUIET_RUN)
        assert agent.subscriber_errors == (SubscriberError("run-1", 2, "text_delta", repr(make())),)


async def test_the_last_256_listener_errors_are_kept_and_all_are_counted(home: Home) -> None:
    runs = 50
    async with home(Agent(model=StrictModel([], beyond=say("hi")))) as agent:
        agent.subscribe(lambda event: 1 / 0)
        for _ in range(runs):
            await agent.prompt("hello")
        assert agent.subscriber_error_count == runs * len(QUIET_RUN) == 300
        kept = agent.subscriber_errors
        assert len(kept) == 256
        assert (kept[0].run_id, kept[-1]) == (
            "run-8",
            SubscriberError("run-50", 5, "run_end", repr(ZeroDivisionError("division by zero"))),
        )


async def test_an_interrupt_in_a_listener_reaches_the_caller_and_leaves_no_run_stuck(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi"), say("again")]))) as agent:

        def interrupted(event: AgentEvent) -> None:
            if event.type == "run_start":
                unsubscribe()
                raise KeyboardInterrupt

        unsubscribe = agent.subscribe(interrupted)
        done = anyio.Event()
        agent.subscribe(lambda event: done.set() if event.type == "run_end" else None)
        with pytest.raises(KeyboardInterrupt):
            agent.prompt("hello")
        await done.wait()
        assert (agent.is_running, agent.state.status) == (False, "idle")
        assert texts((await agent.prompt("more")).messages) == ["u:hello", "a:hi", "u:more", "a:again"]


async def test_an_async_listener_hears_in_order_even_when_its_first_event_takes_longest(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        heard: list[str] = []
        ended = anyio.Event()

        async def slow_at_first(event: AgentEvent) -> None:
            for _ in range(10 - event.sequence):
                await anyio.lowlevel.checkpoint()
            heard.append(event.type)
            if event.type == "run_end":
                ended.set()

        agent.subscribe(slow_at_first)
        await agent.prompt("hello")
        await ended.wait()
        assert heard == QUIET_RUN


async def test_neither_the_run_nor_another_listener_waits_for_an_async_listener(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("one"), say("two")]))) as agent:
        heard: list[str] = []
        both = anyio.Event()
        stuck = anyio.Event()

        async def never_done(event: AgentEvent) -> None:
            await stuck.wait()

        async def quick(event: AgentEvent) -> None:
            heard.append(event.type)
            if event.run_id == "run-2" and event.type == "run_end":
                both.set()

        agent.subscribe(never_done)
        agent.subscribe(quick)
        await agent.prompt("1")
        await agent.prompt("2")
        await both.wait()
        assert heard == 2 * QUIET_RUN


async def test_an_async_listener_that_awaits_the_active_run_deadlocks_nothing(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        streams = []
        told = anyio.Event()

        async def await_the_run(event: AgentEvent) -> None:
            if event.type == "text_delta":
                assert (await streams[0]).final_text == "hi"
                told.set()

        agent.subscribe(await_the_run)
        streams.append(agent.prompt("hello"))
        assert (await streams[0]).status == "completed"
        await told.wait()
        assert agent.subscriber_errors == ()


async def test_what_an_async_listener_returned_before_it_was_unsubscribed_is_still_awaited(home: Home) -> None:
    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        heard: list[str] = []
        go, ended = anyio.Event(), anyio.Event()

        async def late(event: AgentEvent) -> None:
            await go.wait()
            heard.append(event.type)
            if event.type == "run_end":
                ended.set()

        unsubscribe = agent.subscribe(late)
        await agent.prompt("hello")
        unsubscribe()
        go.set()
        await ended.wait()
        assert heard == QUIET_RUN


async def test_closing_ends_a_waiting_listener_and_closes_what_it_never_began(home: Home) -> None:
    begun: list[str] = []
    cleaned_up: list[str] = []

    async def stuck(event: AgentEvent) -> None:
        begun.append(event.type)
        try:
            await anyio.sleep_forever()
        finally:
            cleaned_up.append(event.type)

    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        agent.subscribe(stuck)
        await agent.prompt("hello")
    gc.collect()  # a coroutine that was never begun would complain here
    assert begun == cleaned_up == ["run_start"]
    assert agent.subscriber_errors == ()


async def test_closing_before_a_listeners_worker_could_begin_leaves_no_coroutine_behind(home: Home) -> None:
    async def listen(event: AgentEvent) -> None:
        await anyio.sleep_forever()

    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        agent.subscribe(listen)
        stream = agent.prompt("hello")
    gc.collect()
    assert (await stream).status == "cancelled"


async def test_what_is_awaited_need_not_be_a_coroutine(home: Home) -> None:
    class Awaitable:
        def __await__(self):
            yield from anyio.lowlevel.checkpoint().__await__()
            awaited.append(self)

    async with home(Agent(model=StrictModel([say("hi")]))) as agent:
        awaited: list[Awaitable] = []
        agent.subscribe(lambda event: Awaitable())
        agent.subscribe(lambda event: "not awaitable, and nobody's business")
        await agent.prompt("hello")
        while len(awaited) < len(QUIET_RUN):
            await anyio.lowlevel.checkpoint()
        assert agent.subscriber_errors == ()


async def test_collecting_garbage_during_a_run_ends_neither_run_nor_listener(home: Home) -> None:
    held = Held(say("hi"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        go, ended = anyio.Event(), anyio.Event()

        async def listen(event: AgentEvent) -> None:
            await go.wait()
            if event.type == "run_end":
                ended.set()

        agent.subscribe(listen)
        del listen
        stream = agent.prompt("hello")
        await held.begun.wait()
        gc.collect()
        held.go.set()
        assert (await stream).status == "completed"
        gc.collect()
        go.set()
        await ended.wait()
