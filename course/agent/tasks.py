"""Who owns a background task, and how to tell whose cancellation it was."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import ContextVar
from typing import Any

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

_around: ContextVar[frozenset[TaskOwner]] = ContextVar("owners whose tasks this code is part of", default=frozenset())


class TaskOwner:
    """Starts an agent's background tasks and holds them: in a task group, or on the running asyncio loop.

    The group is there between `open()` and `close()`, both called in one task. A group opened in one notebook
    cell cannot be closed in another, so without one a task is a plain asyncio task, held by a strong reference.
    """

    def __init__(self) -> None:
        self._group: TaskGroup | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0

    @property
    def is_around(self) -> bool:
        """Whether this code is part of a task of this owner, or was started by one and another runs."""
        return self._running > 0 and self in _around.get()

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
            self._group.start_soon(self._run, function, *args)
            return
        coroutine = self._run_begun(function, *args)
        coroutine.send(None)  # to its first line: a task that is cancelled before it began runs no clean-up
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        _around.set(_around.get() | {self})
        self._running += 1
        try:
            await function(*args)
        finally:
            self._running -= 1

    async def _run_begun(self, function: Callable[..., Coroutine[Any, Any, None]], *args: object) -> None:
        """Run it in any case: a cancellation that came before the start reaches it at its first wait."""
        try:
            await _pause()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await self._run(function, *args)

    async def open(self) -> None:
        """Own tasks in a task group from now on. Raises RuntimeError the second time."""
        if self._group is not None:
            raise RuntimeError("this agent was entered already; one `async with` owns its tasks")
        group = anyio.create_task_group()
        await group.__aenter__()
        self._group = group

    async def close(self) -> None:
        """Cancel what still runs, wait for it, and leave the group. Raises nothing of its own."""
        try:
            if self._group is not None:
                self._group.cancel_scope.cancel()
                await self._group.__aexit__(None, None, None)
        finally:
            self._group = None
            await self.cancel_tasks()

    async def cancel_tasks(self) -> None:
        """Cancel the plain tasks and wait for them. A group's tasks are left to `close()`."""
        if not self._tasks:  # and on trio there never are any
            return
        while tasks := self._tasks - {asyncio.current_task()}:  # a run that ends may give its listeners more to do
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


def cancelled_from_outside() -> bool:
    """Whether a scope around us, or somebody who holds our asyncio task, wants us cancelled.

    Asked when a cancellation surfaces outside the scope we opened ourselves: False means that it came from
    within, such as a cancelled subtask whose error leaked, and is an ordinary failure.
    """
    return anyio.current_effective_deadline() == float("-inf") or cancel_requests() > 0


def cancel_requests() -> int:
    """How many cancellations our asyncio task was asked for and has not answered; always 0 on trio."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no asyncio loop runs here
        return 0
    return task.cancelling() if task is not None else 0


async def pass_on_cancellation(requests: int) -> None:
    """Raise the cancellation from outside that a model or a tool has swallowed, if one did.

    `requests` is what `cancel_requests()` gave at first: a bare asyncio cancel is delivered once, so only the count
    still tells of it.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    if cancel_requests() > requests:
        raise asyncio.CancelledError("cancelled from outside")


def is_failure(error: BaseException) -> bool:
    """Whether an error out of a model, a tool or a listener is its own failure, to be reported and not passed on.

    Passed on are a cancellation from outside, KeyboardInterrupt, and the closing of our own coroutine.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(is_failure(each) for each in error.exceptions)
    if isinstance(error, anyio.get_cancelled_exc_class()):
        return not cancelled_from_outside()
    return not isinstance(error, KeyboardInterrupt | GeneratorExit)


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@types.coroutine
def _pause() -> Generator[None, None, None]:
    yield
