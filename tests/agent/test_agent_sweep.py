"""A cancel at every await of a run that has everything in it: whatever it hits, the same things must hold.

The run is the same each time; the sweep acts after its first step, its second, … until it has ended before anybody
acted. `steps.py` says why that reaches every await.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
import pytest
from scene import Scene
from stage import PATIENCE
from steps import Steps

from course.agent import (
    AGENT_OWNED,
    RUN_OWNED,
    AgentIdleError,
    QueuePolicy,
)

pytestmark = pytest.mark.anyio

both_policies = pytest.mark.parametrize("policy", [AGENT_OWNED, RUN_OWNED], ids=["agent-owned", "run-owned"])
only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])

LEAST = 60  # awaits that a sweep must have reached, or the run has lost what it is here for


Attempt = Callable[[Scene, int], Awaitable[Steps]]


async def sweep(policy: QueuePolicy, attempt: Attempt, *, deaf: bool = False) -> Counter[str]:
    """Attempt it with the act after step 1, 2, … until the run ends first, and check each time.

    Gives back how often a run that was hit ended with which status, and for what reason.
    """
    endings: Counter[str] = Counter()
    place = 0
    while True:
        place += 1
        scene = Scene(policy, deaf=deaf)
        with anyio.fail_after(PATIENCE):
            steps = await attempt(scene, place)
            scene.check()
            await scene.check_the_next_prompt()
        end = scene.ends[0]
        if not steps.acted:
            break
        endings[f"{end.status}: {end.reason}"] += 1
    assert end.status == "completed"  # nobody acted, and the script was played to its end
    assert place > (LEAST // 2 if deaf else LEAST)
    return endings


@both_policies
async def test_a_cancel_of_the_run_at_every_await(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        accepted: list[bool] = []
        steps = Steps(place, lambda: accepted.append(scene.agent.cancel("swept")))
        async with scene.agent:
            with steps.counted():
                result = await scene.start()
            assert (result.status == "cancelled") == (accepted == [True])
            while len(scene.heard_late) < len(scene.heard):
                await anyio.lowlevel.checkpoint()
        return steps

    endings = await sweep(policy, attempt)
    assert endings["cancelled: swept"] > LEAST


@both_policies
async def test_a_cancelled_scope_around_the_agent_at_every_await(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        scope = anyio.CancelScope()
        steps = Steps(place, scope.cancel)
        with scope:
            async with scene.agent:
                with steps.counted():
                    await scene.start()
            await anyio.lowlevel.checkpoint()
        assert scope.cancelled_caught == steps.acted
        return steps

    endings = await sweep(policy, attempt)
    assert endings["cancelled: cancelled from outside"] > LEAST


@both_policies
async def test_closing_the_agent_at_every_await(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        close = anyio.Event()
        steps = Steps(place, close.set)

        async def close_when_told() -> None:
            await close.wait()
            await scene.agent.aclose()
            assert not scene.agent.is_running

        async with anyio.create_task_group() as group, scene.agent:
            group.start_soon(close_when_told)
            with steps.counted():
                await scene.start()
            close.set()
        return steps

    endings = await sweep(policy, attempt)
    assert endings["cancelled: the agent was closed"] > LEAST


@both_policies
async def test_an_exception_in_the_block_at_every_await(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        wake, error = anyio.Event(), ValueError("mine")
        steps = Steps(place, wake.set)
        scene.agent.subscribe(lambda event: wake.set() if event.type == "run_end" else None)

        async def use_it() -> None:
            async with scene.agent:
                scene.start()
                await wake.wait()
                raise error

        with steps.counted(), pytest.raises(ValueError, match="mine") as raised:
            await use_it()
        assert raised.value is error
        return steps

    endings = await sweep(policy, attempt)
    assert endings["cancelled: cancelled from outside"] > LEAST


@both_policies
@only_asyncio
async def test_a_native_cancel_of_the_task_with_the_block_at_every_await(
    policy: QueuePolicy, anyio_backend: str
) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        async def hold() -> None:
            async with scene.agent:
                await scene.start()

        cancelled: list[bool] = []
        steps = Steps(place, lambda: cancelled.append(task.cancel()))
        with steps.counted():
            task = asyncio.get_running_loop().create_task(hold())
            await asyncio.wait([task])
        assert task.cancelled() == (cancelled == [True])
        return steps

    endings = await sweep(policy, attempt)
    assert endings["cancelled: cancelled from outside"] > LEAST


@both_policies
@only_asyncio
@pytest.mark.parametrize("deaf", [True, False], ids=["the run", "the run and the listener"])
async def test_a_native_cancel_of_a_bare_agents_own_tasks_at_every_await(
    policy: QueuePolicy, anyio_backend: str, deaf: bool
) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        def cancel() -> None:
            for task in scene.agent._owner._tasks:
                task.cancel()

        steps = Steps(place, cancel)
        with steps.counted():
            await scene.start()
        return steps

    endings = await sweep(policy, attempt, deaf=deaf)
    assert endings["cancelled: cancelled from outside"] > LEAST // 2


@both_policies
async def test_steering_at_every_await_is_read_once_or_kept_or_refused(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        def steer() -> None:
            with suppress(AgentIdleError):
                scene.say(scene.agent.steer, "at last")

        steps = Steps(place, steer)
        async with scene.agent:
            with steps.counted():
                await scene.start()
        return steps

    endings = await sweep(policy, attempt)
    assert set(endings) == {"completed: None"}


@both_policies
async def test_a_queue_taken_back_at_every_await_gives_what_was_not_read(policy: QueuePolicy) -> None:
    async def attempt(scene: Scene, place: int) -> Steps:
        def clear() -> None:
            for each in scene.agent.clear_queues():
                scene.said.remove(each.message.text)

        steps = Steps(place, clear)
        async with scene.agent:
            with steps.counted():
                await scene.start()
        return steps

    endings = await sweep(policy, attempt)
    assert set(endings) == {"completed: None"}
