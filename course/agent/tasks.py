"""Who owns a background task, and how to tell whose cancellation it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from anyio.abc import TaskGroup


class TaskOwner:
    """Starts an agent's background tasks and holds them: in a task group, or on the running asyncio loop.

    The group is there between `open()` and `close()`, both called in one task. A group opened in one notebook
    cell cannot be closed in another, so without one a task is a plain asyncio task, held by a strong reference.
    """

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Raise RuntimeError unless a task can be started here."""
        if self._group is None and not _on_asyncio():
            raise RuntimeError(
                "no asyncio event loop is running here to own the agent's run; "
                "use `async with Agent(...) as agent:` (on trio always), and call its methods inside"
            )

    def start(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Start `function(*args)` in the background."""
        if self._group is not None:
            self._group.start_soon(function, *args)
            return
        task = asyncio.get_running_loop().create_task(_begin(function, *args))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def open(self) -> None:
        """Own tasks in a task group from now on. Raises RuntimeError the second time."""
        if self._group is not None:
            raise RuntimeError("this agent was entered already; one `async with` owns its tasks")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group

    async def close(self) -> None:
        """Cancel what still runs in the group, wait for it, and leave the group. Raises nothing of its own."""
        if self._group is not None:
            self._group.cancel_scope.cancel()
            await self._group.__aexit__(None, None, None)

    async def cancel_tasks(self) -> None:
        """Cancel the plain tasks and wait for them. A group's tasks are left to `close()`."""
        if not self._tasks:
            return
        await asyncio.sleep(0)  # a task that never began would be cancelled without its clean-up
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


def cancelled_from_outside() -> bool:
    """Whether a scope around us, or somebody who holds our asyncio task, wants us cancelled.

    Asked when a cancellation surfaces outside the scope we opened ourselves: False means that it came from
    within, such as a cancelled subtask whose error leaked, and is an ordinary failure.
    """
    if anyio.current_effective_deadline() == float("-inf"):
        return True
    task = asyncio.current_task() if _on_asyncio() else None
    return task is not None and task.cancelling() > 0


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _begin(function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
    await function(*args)
