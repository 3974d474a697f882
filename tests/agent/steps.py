"""The steps that an event loop takes: how a test gets between any two of them.

A task runs from one await that suspends it to the next, and nothing else runs meanwhile: that stretch is a step.
An await that does not suspend is no place where anything could come between. So whoever acts after the first step,
after the second, … has acted at every await of every task in the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from typing import Any

import trio
import trio.lowlevel


class Steps:
    """Acts once, right after step number `place`, while no task runs; `acted` tells whether it came to that.

    `with steps.counted():` counts the steps of all tasks that begin in the block (on trio of all tasks), raises
    what the action raised, and acts no more afterwards.
    """

    def __init__(self, place: int, act: Callable[[], object]) -> None:
        self.acted = False
        self._left = place
        self._act = act
        self._over = False
        self._error: BaseException | None = None

    @contextmanager
    def counted(self) -> Generator[None]:
        try:
            with _reported_on_asyncio(self) if _is_asyncio() else _reported_on_trio(self):
                yield
        finally:
            self._over = True
            if self._error is not None:
                raise self._error

    def step_is_over(self) -> bool:
        """Count it, and say whether it is time to act."""
        self._left -= 1
        return self._left == 0

    def act(self) -> None:
        if self._over:
            return
        self.acted = True
        try:
            self._act()
        except BaseException as error:  # a loop would log it and go on
            self._error = error


def _is_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _reported_on_trio(steps: Steps) -> Generator[None]:
    instrument = _Instrument(steps)
    trio.lowlevel.add_instrument(instrument)
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(instrument)


class _Instrument(trio.abc.Instrument):
    def __init__(self, steps: Steps) -> None:
        self._steps = steps

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._steps.step_is_over():
            self._steps.act()


@contextmanager
def _reported_on_asyncio(steps: Steps) -> Generator[None]:
    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()

    def make(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
        return asyncio.Task(_Stepped(coroutine, loop, steps), loop=loop, **options)

    loop.set_task_factory(make)
    try:
        yield
    finally:
        loop.set_task_factory(before)


class _Stepped(Coroutine[Any, Any, Any]):
    """A task's coroutine that reports each step. It acts from the loop: first thing after it, in no task's name."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop, steps: Steps) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._steps = steps

    def send(self, value: Any) -> Any:
        try:
            return self._coroutine.send(value)
        finally:
            self._step_is_over()

    def throw(self, *error: Any) -> Any:
        try:
            return self._coroutine.throw(*error)
        finally:
            self._step_is_over()

    def _step_is_over(self) -> None:
        if self._steps.step_is_over():
            self._loop.call_soon(self._steps.act)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:  # `cr_frame` and the like, by which a started coroutine is known
        return getattr(self._coroutine, name)
