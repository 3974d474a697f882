"""One round of tool calls: side by side, paired, in call order, and what a cancel makes of it (promises 12, 16, 17)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import pytest
from recording import React, on_asyncio, recorder, rounds_until_idle
from stage import PATIENCE, turn_over

from course.agent import AgentEvent, Signal, Tool, ToolCall, ToolRegistry, ToolResultMessage, tool
from course.agent.tool_round import ToolRound

pytestmark = pytest.mark.anyio


class Round:
    """One round: calls named "1", "2", … of these tools, its events, and its results."""

    def __init__(self, *calls: str, tools: list[Tool], react: React = lambda event: None) -> None:
        self.signal = Signal()
        self.events, emit = recorder(react)
        self.calls = [ToolCall(str(number), name) for number, name in enumerate(calls, 1)]
        self._round = ToolRound(self.calls, ToolRegistry(tools).snapshot(), signal=self.signal, emit=emit)

    async def run(self) -> None:
        try:
            with anyio.fail_after(PATIENCE):
                await self._round.run()
        finally:
            assert [(result.call_id, result.name) for result in self.results] == [
                (call.id, call.name) for call in self.calls
            ]
            self._assert_each_call_was_told_once()

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        return self._round.results

    @property
    def texts(self) -> list[str]:
        return [result.text for result in self.results]

    @property
    def told(self) -> list[str]:
        """`start 1`, `progress 1 text`, `end 1`, `skipped 2`, in order."""
        return [_told(event) for event in self.events]

    def _assert_each_call_was_told_once(self) -> None:
        for call in self.calls:
            own = [event.type for event in self.events if _id(event) == call.id and event.type != "tool_progress"]
            assert own in (["tool_start", "tool_end"], ["tool_skipped"])


def _id(event: Any) -> str:
    if event.type == "tool_start":
        return event.call.id
    return event.call_id if event.type == "tool_progress" else event.result.call_id


def _told(event: Any) -> str:
    text = f" {event.text}" if event.type == "tool_progress" else ""
    return f"{event.type.removeprefix('tool_')} {_id(event)}{text}"


@tool
async def quick() -> str:
    """Answer at once."""
    return "quick"


@tool
def quick_in_thread() -> str:
    """Answer at once, in a thread."""
    return "quick in thread"


@tool
async def fail() -> None:
    """Fail."""
    raise ValueError("no")


def held(name: str) -> tuple[Tool, anyio.Event, anyio.Event]:
    """A tool that tells that it has begun, and ends once it may; whatever the signal says."""
    begun, go = anyio.Event(), anyio.Event()

    async def wait(progress: Callable[[str], None]) -> str:
        """Wait."""
        begun.set()
        progress("waiting")
        await go.wait()
        return name

    wait.__name__ = name
    return tool(wait), begun, go


def held_in_thread(name: str) -> tuple[Tool, anyio.Event, threading.Event]:
    """The same as a plain function."""
    begun, go = anyio.Event(), threading.Event()
    token = anyio.lowlevel.current_token()

    def wait(progress: Callable[[str], None]) -> str:
        """Wait."""
        anyio.from_thread.run_sync(begun.set, token=token)
        assert go.wait(PATIENCE)
        progress("going")
        return name

    wait.__name__ = name
    return tool(wait), begun, go


# 12: side by side, in call order, and no failure disturbs a sibling


async def test_calls_run_side_by_side_and_results_stand_in_call_order() -> None:
    slow, slow_begun, slow_go = held("slow")
    fast, fast_begun, fast_go = held("fast")
    played = Round("slow", "fast", "quick", tools=[slow, fast, quick])
    async with anyio.create_task_group() as group:
        group.start_soon(played.run)
        await slow_begun.wait()
        await fast_begun.wait()
        fast_go.set()
        await turn_over()
        assert played.told[-1] == "end 2"
        slow_go.set()
    assert played.texts == ["slow", "fast", "quick"]
    assert played.told == [
        *["start 1", "progress 1 waiting", "start 2", "progress 2 waiting", "start 3"],
        *["end 3", "end 2", "end 1"],
    ]


async def test_plain_functions_run_side_by_side_all_of_them() -> None:
    everybody = threading.Barrier(60)  # more than a pool of 40 threads would let in

    @tool
    def meet() -> str:
        """Wait for everybody."""
        everybody.wait(PATIENCE)
        return "met"

    played = Round(*["meet"] * 60, tools=[meet])
    await played.run()
    assert played.texts == ["met"] * 60


async def test_no_calls_are_a_round_without_events() -> None:
    played = Round(tools=[quick])
    await played.run()
    assert (played.results, played.events) == ((), [])


async def test_128_calls_start_in_their_order_and_are_all_paired() -> None:
    played = Round(*["quick", "quick_in_thread"] * 64, tools=[quick, quick_in_thread])
    await played.run()
    assert played.texts == ["quick", "quick in thread"] * 64
    starts = [told for told in played.told if told.startswith("start")]
    assert starts == [f"start {number}" for number in range(1, 129)]


async def test_a_failing_tool_disturbs_no_sibling() -> None:
    slow, begun, go = held("slow")
    plain, plain_begun, plain_go = held_in_thread("plain")
    played = Round("fail", "slow", "plain", "nothing", "fail", tools=[slow, plain, fail])
    async with anyio.create_task_group() as group:
        group.start_soon(played.run)
        await begun.wait()
        await plain_begun.wait()
        await turn_over()
        assert "end 1" in played.told
        assert "end 5" in played.told
        assert "end 2" not in played.told
        go.set()
        plain_go.set()
    assert played.texts[1:3] == ["slow", "plain"]
    assert [result.is_error for result in played.results] == [True, False, False, True, True]


# 12: progress, from whatever thread, while the tool runs


async def test_progress_is_an_event_while_its_tool_runs() -> None:
    @tool
    async def report(progress: Callable[[str], None]) -> None:
        """Report."""
        progress("one")
        await anyio.lowlevel.checkpoint()
        progress("two")

    played = Round("report", "report", tools=[report])
    await played.run()
    for number in ("1", "2"):
        own = [told for told in played.told if told.split()[1] == number]
        assert own == [f"start {number}", f"progress {number} one", f"progress {number} two", f"end {number}"]


async def test_progress_from_a_worker_thread_arrives_in_order_and_before_the_end() -> None:
    @tool
    def report(progress: Callable[[str], None]) -> None:
        """Report."""
        for number in range(20):
            progress(str(number))

    played = Round("report", tools=[report])
    await played.run()
    assert played.told == ["start 1", *[f"progress 1 {number}" for number in range(20)], "end 1"]


async def test_progress_from_a_thread_that_the_tool_started_is_an_event_in_the_loops_thread() -> None:
    threads: list[int] = []

    @tool
    async def report(progress: Callable[[str], None]) -> None:
        """Report."""
        thread = threading.Thread(target=progress, args=("from afar",))
        thread.start()
        await anyio.to_thread.run_sync(thread.join)

    played = Round("report", tools=[report], react=lambda event: threads.append(threading.get_ident()))
    await played.run()
    assert played.told == ["start 1", "progress 1 from afar", "end 1"]
    assert set(threads) == {threading.get_ident()}


async def test_progress_after_the_end_is_ignored_from_whatever_thread() -> None:
    kept: list[Callable[[str], None]] = []

    @tool
    async def keep(progress: Callable[[str], None]) -> None:
        """Keep."""
        kept.append(progress)

    @tool
    async def keep_and_fail(progress: Callable[[str], None]) -> None:
        """Keep and fail."""
        kept.append(progress)
        raise ValueError("no")

    played = Round("keep", "keep_and_fail", tools=[keep, keep_and_fail])
    await played.run()
    before = list(played.told)
    for progress in kept:
        progress("late")
        await anyio.to_thread.run_sync(progress, "late")
        foreign = threading.Thread(target=progress, args=("late",))
        foreign.start()
        await anyio.to_thread.run_sync(foreign.join, PATIENCE)
        assert not foreign.is_alive()
    assert played.told == before


async def test_progress_takes_what_is_not_text_as_text() -> None:
    @tool
    async def report(progress: Any) -> None:
        """Report."""
        progress(50)

    played = Round("report", tools=[report])
    await played.run()
    assert "progress 1 50" in played.told


WHEN_THE_LOOP_HAS_GONE = """
import sys, threading, anyio
from course.agent import Emitter, Signal, ToolCall, ToolRegistry, tool
from course.agent.tool_round import _Progress, ToolRound

kept = []

@tool
async def keep(progress) -> None:
    '''Keep.'''
    kept.append(progress)

async def main():
    emit = Emitter("run-1", lambda event: None)
    calls = [ToolCall("1", "keep")]
    await ToolRound(calls, ToolRegistry([keep]).snapshot(), signal=Signal(), emit=emit).run()
    kept.append(_Progress("2", emit))  # as of a tool that was torn down with its loop, and never ended

anyio.run(main, backend=sys.argv[1])
for progress in kept:
    progress.__call__("here")
    thread = threading.Thread(target=progress, args=("elsewhere",))
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
"""


async def test_progress_after_the_loop_has_gone_neither_raises_nor_hangs(anyio_backend_name: str) -> None:
    command = [sys.executable, "-W", "error", "-c", WHEN_THE_LOOP_HAS_GONE, anyio_backend_name]
    done = await anyio.to_thread.run_sync(lambda: subprocess.run(command, capture_output=True, text=True, timeout=60))
    assert (done.returncode, done.stderr) == (0, "")


# 16: cancel


async def test_cancelled_before_the_round_every_call_is_skipped() -> None:
    played = Round("quick", "quick_in_thread", "nothing", tools=[quick, quick_in_thread])
    played.signal.cancel()
    await played.run()
    assert played.told == ["skipped 1", "skipped 2", "skipped 3"]
    assert all(result.is_error and "skipped" in result.text for result in played.results)


@pytest.mark.parametrize("calls", [["give_up"], ["give_up", "second", "second"]])
async def test_a_cancel_in_the_first_call_skips_those_that_have_not_started(calls: list[str]) -> None:
    ran: list[str] = []

    @tool
    async def give_up(signal: Signal) -> str:
        """Give up."""
        signal.cancel("enough")
        await anyio.lowlevel.checkpoint()  # its own scope is not cancelled
        return "gave up"

    @tool
    async def second() -> None:
        """Never runs."""
        ran.append("second")

    played = Round(*calls, tools=[give_up, second])
    await played.run()
    assert ran == []
    assert played.results[0] == ToolResultMessage("1", "give_up", "gave up")
    assert sorted(played.told) == sorted(["start 1", "end 1", *["skipped 2", "skipped 3"][: 2 * (len(calls) > 1)]])


async def test_a_cancel_from_a_listener_of_a_start_skips_the_calls_after_it() -> None:
    def react(event: AgentEvent) -> None:
        if event.type == "tool_start":
            played.signal.cancel()

    played = Round("quick", "quick", "quick", tools=[quick], react=react)
    await played.run()
    assert played.told == ["start 1", "end 1", "skipped 2", "skipped 3"]
    assert played.texts[0] == "quick"


@pytest.mark.parametrize("make", [held, held_in_thread])
async def test_running_calls_are_waited_for_after_a_cancel_and_keep_their_results(make: Any) -> None:
    slow, begun, go = make("slow")
    played = Round("quick", "slow", tools=[slow, quick])
    over = anyio.Event()

    async def run() -> None:
        await played.run()
        over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await begun.wait()
        await turn_over()
        played.signal.cancel()
        await turn_over()
        assert not over.is_set()
        go.set()
    assert played.texts == ["quick", "slow"]


async def test_a_tool_gets_the_very_signal_of_its_run_and_may_stop_for_it() -> None:
    seen: list[Signal] = []

    @tool
    async def obey(signal: Signal) -> str:
        """Wait for the signal."""
        seen.append(signal)
        await signal.wait()
        return f"stopped: {signal.reason}"

    played = Round("obey", "obey", tools=[obey])
    async with anyio.create_task_group() as group:
        group.start_soon(played.run)
        await turn_over()
        played.signal.cancel("enough")
    assert seen == [played.signal, played.signal]
    assert played.texts == ["stopped: enough"] * 2


# 17: cancelled from outside


@pytest.mark.parametrize("calls", [["slow"], ["slow", "quick", "slow"], ["quick", "slow"]])
async def test_a_scope_around_the_round_ends_running_calls_pairs_all_and_is_passed_on(calls: list[str]) -> None:
    slow, begun, _ = held("slow")
    played = Round(*calls, tools=[slow, quick])
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await played.run()
            raise AssertionError("the cancellation was swallowed")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await begun.wait()
        await turn_over()
        scope.cancel()
    assert scope.cancelled_caught
    for call, result in zip(calls, played.results, strict=True):
        assert result.is_error == (call == "slow")
        assert ("interrupted" in result.text and "not undone" in result.text) == (call == "slow")


@pytest.mark.parametrize("others", [0, 2])
async def test_a_plain_function_is_waited_for_and_its_result_kept_when_a_scope_is_cancelled(others: int) -> None:
    plain, begun, go = held_in_thread("plain")
    slow, _, _ = held("slow")
    played = Round("plain", *["slow"] * others, tools=[plain, slow])
    scope = anyio.CancelScope()
    over = anyio.Event()

    async def run() -> None:
        try:
            with scope:
                await played.run()
                await anyio.lowlevel.checkpoint()
        finally:
            over.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await begun.wait()
        await turn_over()
        scope.cancel()
        await turn_over()
        assert not over.is_set()
        go.set()
    assert scope.cancelled_caught
    assert played.results[0] == ToolResultMessage("1", "plain", "plain")
    assert "progress 1 going" in played.told  # it was still running, and could tell so
    assert [result.is_error for result in played.results] == [False, *[True] * others]


@on_asyncio
@pytest.mark.parametrize("others", [0, 2])
async def test_a_plain_function_is_waited_for_when_an_asyncio_task_is_cancelled(others: int) -> None:
    plain, begun, go = held_in_thread("plain")
    slow, _, _ = held("slow")
    played = Round("plain", *["slow"] * others, tools=[plain, slow])
    task = asyncio.ensure_future(played.run())
    await begun.wait()
    await turn_over()
    task.cancel()
    await turn_over()
    assert not task.done()
    go.set()
    await asyncio.wait([task])
    assert task.cancelled()
    assert played.results[0] == ToolResultMessage("1", "plain", "plain")


async def test_calls_that_had_not_started_when_a_scope_was_cancelled_are_skipped() -> None:
    scope = anyio.CancelScope()
    ran: list[str] = []

    @tool
    async def pull_the_plug() -> None:
        """Cancel all."""
        scope.cancel()

    @tool
    async def second() -> None:
        """Never runs."""
        ran.append("second")

    played = Round("pull_the_plug", "second", "second", tools=[pull_the_plug, second])
    with scope:
        await played.run()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert ran == []
    assert played.told[-2:] == ["skipped 2", "skipped 3"]


# the event loop does not spin


@pytest.mark.parametrize("native", [False, True])
def test_a_thread_that_cannot_be_cancelled_does_not_spin_the_loop(native: bool) -> None:
    async def start(on_idle: Callable[[Callable[[], object]], None]) -> None:
        plain, begun, go = held_in_thread("plain")
        played = Round("plain", "plain", tools=[plain])

        async def cancel() -> None:
            await begun.wait()
            on_idle(go.set)
            if native:
                task.cancel()
            else:
                scope.cancel()

        async def run() -> None:
            with scope:
                await played.run()

        scope = anyio.CancelScope()
        task = asyncio.ensure_future(run())
        await asyncio.wait([task, asyncio.ensure_future(cancel())])
        assert native == task.cancelled()

    assert rounds_until_idle(start) < 50


def test_a_loop_that_does_spin_would_be_noticed() -> None:
    async def start(on_idle: Callable[[Callable[[], object]], None]) -> None:
        released: list[bool] = []
        on_idle(lambda: released.append(True))
        while not released:
            await asyncio.sleep(0)

    assert rounds_until_idle(start) == 2000
