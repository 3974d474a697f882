"""EventStream: events for any number of readers, one result for any number of waiters (promises 5–7)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import anyio
import anyio.lowlevel
import pytest
from recording import on_asyncio, rounds_until_idle
from stage import PATIENCE, turn_over

from course.agent import EventStream

pytestmark = pytest.mark.anyio

Numbers = EventStream[int, str]


async def read(stream: Numbers) -> list[int]:
    with anyio.fail_after(PATIENCE):
        return [event async for event in stream]


# 5: the producer never blocks and never loses an event


async def test_publishing_never_waits_and_loses_nothing_without_a_reader() -> None:
    stream: Numbers = EventStream()
    for number in range(10_000):
        assert stream.publish(number) is None  # a plain function: there is nothing to await
    stream.close("done")
    assert await read(stream) == list(range(10_000))


async def test_a_slow_reader_holds_nobody_up() -> None:
    stream: Numbers = EventStream()
    begun, go = anyio.Event(), anyio.Event()
    slow: list[int] = []

    async def read_slowly() -> None:
        async for event in stream:
            slow.append(event)
            begun.set()
            await go.wait()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            group.start_soon(read_slowly)
            stream.publish(0)
            await begun.wait()
            for number in range(1, 1000):
                stream.publish(number)
            stream.close("done")
            assert await read(stream) == list(range(1000))
            assert slow == [0]
            go.set()
    assert slow == list(range(1000))


async def test_events_published_between_two_wakings_are_all_read() -> None:
    stream: Numbers = EventStream()
    heard: list[int] = []

    async def listen() -> None:
        async for event in stream:
            heard.append(event)

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        for number in range(30):
            stream.publish(number)
            if number % 7 == 0:
                await anyio.lowlevel.checkpoint()
        await turn_over()
        assert heard == list(range(30))  # before the end, so nothing was held back
        stream.close("done")


# 6: any number of readers, each from the first event


async def test_every_reader_starts_at_the_first_event_however_late_it_comes() -> None:
    stream: Numbers = EventStream()
    heard: list[list[int]] = []

    async def listen() -> None:
        heard.append(await read(stream))

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        group.start_soon(listen)
        stream.publish(1)
        await turn_over()
        group.start_soon(listen)
        stream.publish(2)
        await turn_over()
        stream.close("done")
    heard.append(await read(stream))
    heard.append(await read(stream))
    assert heard == [[1, 2]] * 5


async def test_two_iterators_of_one_stream_do_not_share_their_place() -> None:
    stream: Numbers = EventStream()
    stream.publish(1)
    stream.publish(2)
    first, second = aiter(stream), aiter(stream)
    assert [await anext(first), await anext(first), await anext(second)] == [1, 2, 1]


async def test_a_reader_at_the_end_stays_at_the_end() -> None:
    stream: Numbers = EventStream()
    stream.close("done")
    reader = aiter(stream)
    for _ in range(2):
        with pytest.raises(StopAsyncIteration):
            await anext(reader)


async def test_a_reader_that_was_cancelled_while_waiting_goes_on_where_it_was() -> None:
    stream: Numbers = EventStream()
    stream.publish(1)
    reader = aiter(stream)
    assert await anext(reader) == 1
    with anyio.move_on_after(0) as scope:
        await anext(reader)
    assert scope.cancelled_caught
    stream.publish(2)
    assert await anext(reader) == 2


def test_a_reader_and_a_waiter_with_nothing_to_do_do_not_spin_the_loop() -> None:
    async def start(on_idle: Callable[[Callable[[], object]], None]) -> None:
        stream: Numbers = EventStream()
        waiting = [asyncio.ensure_future(read(stream)), asyncio.ensure_future(stream.result())]
        await turn_over()
        stream.publish(1)
        await turn_over()
        on_idle(lambda: stream.close("done"))
        await asyncio.wait(waiting)

    assert rounds_until_idle(start) < 50


LEAVING_EARLY = """
import gc, sys, anyio
from course.agent import Agent, EventStream, ScriptedModel, say

async def leave(stream):
    async for event in stream:
        break
    reader = aiter(stream)
    await anext(reader)

async def main():
    stream = EventStream()
    stream.publish(1)
    await leave(stream)                     # one that goes on
    async with anyio.create_task_group() as group:
        group.start_soon(leave, stream)     # in another task
    with anyio.move_on_after(0):
        async for event in stream:          # cancelled while it waits
            pass
    del stream                              # never closed
    async with Agent(model=ScriptedModel([say("hi")])) as agent:
        run = agent.prompt("hello")
        await leave(run)
        assert (await run).final_text == "hi"
        await leave(run)
    gc.collect()

anyio.run(main, backend=sys.argv[1])
gc.collect()
"""


async def test_leaving_a_reader_early_leaks_and_warns_nothing(anyio_backend_name: str) -> None:
    command = [sys.executable, "-W", "error", "-c", LEAVING_EARLY, anyio_backend_name]
    done = await anyio.to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, timeout=60))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# 7: one result, awaited by anybody, as often as they like


async def test_the_result_can_be_awaited_again_and_again_with_and_without_reading() -> None:
    stream: Numbers = EventStream()
    stream.publish(1)
    stream.close("done")
    assert [await stream, await stream.result(), await stream] == ["done"] * 3
    assert await read(stream) == [1]
    assert await stream == "done"


async def test_many_tasks_may_wait_for_the_result_before_it_is_there() -> None:
    stream: Numbers = EventStream()
    results: list[str] = []

    async def wait(by_method: bool) -> None:
        results.append(await stream.result() if by_method else await stream)

    async with anyio.create_task_group() as group:
        for by_method in (True, False, True, False):
            group.start_soon(wait, by_method)
        await turn_over()
        stream.publish(1)
        await turn_over()
        assert results == []
        stream.close("done")
    assert results == ["done"] * 4


@pytest.mark.parametrize("result", [None, 0, "", ()], ids=repr)
async def test_a_result_that_is_nothing_is_a_result(result: object) -> None:
    stream: EventStream[int, object] = EventStream()
    assert not stream.closed
    stream.close(result)
    assert stream.closed
    with anyio.fail_after(PATIENCE):
        assert await stream == result


async def test_cancelling_one_waiter_cancels_nothing_else() -> None:
    stream: Numbers = EventStream()
    results: list[str] = []
    scopes: list[anyio.CancelScope] = []

    async def wait() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            results.append(await stream)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait)
        await turn_over()
        scopes[1].cancel()
        await turn_over()
        stream.publish(1)
        stream.close("done")
    assert results == ["done", "done"]
    assert [scope.cancelled_caught for scope in scopes] == [False, True, False]
    assert await read(stream) == [1]


async def test_a_timeout_around_await_stream_leaves_the_producer_alive() -> None:
    stream: Numbers = EventStream()
    go = anyio.Event()

    async def produce() -> None:
        stream.publish(1)
        await go.wait()
        stream.publish(2)
        stream.close("done")

    async with anyio.create_task_group() as group:
        group.start_soon(produce)
        with anyio.move_on_after(0) as scope:
            await stream
        assert scope.cancelled_caught
        go.set()
        with anyio.fail_after(PATIENCE):
            assert await stream == "done"
    assert await read(stream) == [1, 2]


@on_asyncio
async def test_asyncios_own_tools_may_wait_for_a_stream() -> None:
    stream: Numbers = EventStream()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(stream, 0)
    waiting = asyncio.ensure_future(stream)
    await turn_over()
    waiting.cancel()
    await asyncio.wait([waiting])
    asyncio.get_running_loop().call_soon(stream.close, "done")
    assert await asyncio.gather(stream, stream.result()) == ["done", "done"]


async def test_nothing_follows_the_result() -> None:
    stream: Numbers = EventStream()
    stream.close("done")
    with pytest.raises(RuntimeError, match="closed"):
        stream.publish(1)
    with pytest.raises(RuntimeError, match="closed"):
        stream.close("again")
    assert await read(stream) == []
    assert await stream == "done"
