"""wait_idle(), written with public state and events alone (promise 32)."""

from __future__ import annotations

import ast
import gc
import inspect
import weakref

import anyio
import pytest
from stage import Held, HeldTool, Home, StrictModel, in_every_home, turn_over

from course.agent import Agent, AgentEvent, RunEndEvent, ScriptedModel, ToolRegistry, call, say, wait_idle

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_it_returns_at_once_when_idle(anyio_backend: str) -> None:
    waiting = wait_idle(Agent(model=ScriptedModel([])))
    with pytest.raises(StopIteration):
        waiting.send(None)


@in_every_home
async def test_it_returns_once_the_run_is_over_for_any_number_of_waiters(home: Home) -> None:
    held = Held(say("hi"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        statuses: list[str] = []

        async def wait() -> None:
            await wait_idle(agent)
            statuses.append(agent.state.last_status or "none")

        async with anyio.create_task_group() as group:
            agent.prompt("hello")
            for _ in range(20):
                group.start_soon(wait)
            await held.begun.wait()
            await turn_over()
            assert statuses == []
            held.go.set()
        assert statuses == ["completed"] * 20


@in_every_home
async def test_after_a_cancel_it_returns_once_the_run_has_settled(home: Home) -> None:
    held = HeldTool()
    async with home(Agent(model=StrictModel([call("c1", "wait")]), tools=ToolRegistry([held.wait]))) as agent:
        agent.prompt("go")
        await held.begun.wait()
        agent.cancel()
        with anyio.move_on_after(0) as scope:
            await wait_idle(agent)
        assert scope.cancelled_caught
        held.go.set()
        await wait_idle(agent)
        assert (agent.is_running, agent.state.last_status, len(agent.messages)) == (False, "cancelled", 3)


@in_every_home
@pytest.mark.parametrize("first", ["waiter", "starter"])
async def test_it_looks_again_when_a_listener_has_started_the_next_run(home: Home, first: str) -> None:
    held = Held(say("two"))
    async with home(Agent(model=StrictModel([say("one"), held]))) as agent:
        returned = anyio.Event()

        async def wait() -> None:
            await wait_idle(agent)
            returned.set()

        def go_on(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent) and event.run_id == "run-1":
                agent.prompt("more")

        async with anyio.create_task_group() as group:
            agent.prompt("start")
            if first == "starter":
                agent.subscribe(go_on)
            group.start_soon(wait)
            if first == "waiter":
                group.start_soon(turn_over)
                agent.subscribe(go_on)
            await held.begun.wait()
            await turn_over()
            assert not returned.is_set()
            held.go.set()
        assert (agent.is_running, agent.state.active_run_id, len(agent.messages)) == (False, None, 4)


@in_every_home
async def test_waiters_leave_no_listener_behind(home: Home) -> None:
    held = Held(say("hi"))
    async with home(Agent(model=StrictModel([held]))) as agent:
        gone: list[weakref.ref[object]] = []
        subscribe = agent.subscribe

        def watched(listener):
            gone.append(weakref.ref(listener))
            return subscribe(listener)

        agent.subscribe = watched  # type: ignore[method-assign]
        agent.prompt("hello")
        with anyio.move_on_after(0):
            await wait_idle(agent)
        held.go.set()
        await wait_idle(agent)
        gc.collect()
        assert len(gone) == 2
        assert [each() for each in gone] == [None, None]


def test_it_uses_public_names_alone() -> None:
    tree = ast.parse(inspect.getsource(wait_idle))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not [name for name in names if name.startswith("_")]
