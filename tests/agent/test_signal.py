"""The cooperative cancel signal: one flag, one reason, one event (part of promises 9 and 16)."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from stage import PATIENCE, turn_over

from course.agent import Signal

pytestmark = pytest.mark.anyio


async def test_the_first_cancel_is_accepted_and_its_reason_stays() -> None:
    signal = Signal()
    assert (signal.cancelled, signal.reason) == (False, None)
    assert signal.cancel("enough")
    assert not signal.cancel("more")
    assert (signal.cancelled, signal.reason) == (True, "enough")
    assert repr(signal) == "<Signal cancelled: enough>"


async def test_an_empty_reason_is_a_cancel_too() -> None:
    signal = Signal()
    assert signal.cancel("")
    assert signal.cancelled
    assert not signal.cancel()


async def test_no_field_of_a_signal_can_be_set_from_outside() -> None:
    signal = Signal()
    for field in ("cancelled", "reason", "note"):
        with pytest.raises(AttributeError):
            setattr(signal, field, True)


async def test_everybody_who_waits_is_woken_and_later_ones_do_not_wait() -> None:
    signal = Signal()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await signal.wait()
        woken.append(number)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            for number in range(3):
                group.start_soon(wait, number)
            await turn_over()
            assert woken == []
            signal.cancel()
        await signal.wait()
    assert sorted(woken) == [0, 1, 2]


async def test_a_scope_that_follows_the_signal_is_cancelled_with_it_and_catches_it() -> None:
    signal = Signal()

    async def cancel() -> None:
        signal.cancel()

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as group:
            with signal.scope() as scope:
                group.start_soon(cancel)
                await anyio.sleep_forever()
            assert scope.cancelled_caught
            await anyio.lowlevel.checkpoint()  # outside of the scope nothing is cancelled


async def test_a_scope_entered_late_is_cancelled_at_once() -> None:
    signal = Signal()
    signal.cancel()
    with signal.scope() as scope:
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught


async def test_scopes_inside_one_another_are_all_cancelled_and_left_in_order() -> None:
    signal = Signal()
    with signal.scope() as outer:
        with signal.scope() as inner:
            signal.cancel()
            await anyio.lowlevel.checkpoint()
        raise AssertionError("the outer scope is cancelled as well")
    assert outer.cancel_called
    assert inner.cancel_called
    await anyio.lowlevel.checkpoint()


async def test_a_scope_that_was_left_by_an_error_is_forgotten() -> None:
    signal = Signal()
    with pytest.raises(ValueError, match="x"), signal.scope() as scope:
        raise ValueError("x")
    signal.cancel()
    assert not scope.cancel_called


async def test_one_signal_says_nothing_of_another() -> None:
    one, other = Signal(), Signal()
    one.cancel()
    assert not other.cancelled
    with other.scope() as scope:
        await anyio.lowlevel.checkpoint()
    assert not scope.cancel_called
