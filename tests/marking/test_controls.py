"""Negative controls: what must fail fails in honest hands, and a rigged object gives itself away."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from course.marking.controls import control_cells, control_tests, equal_to_anything

pytest_plugins = ("pytester",)


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class Touchy:
    def __eq__(self, other: Any) -> bool:
        return self.value == other.value

    __hash__ = None  # type: ignore[assignment]
    value = 1


class Holder(msgspec.Struct):
    held: object


@dataclass
class Box:
    held: object


def test_every_control_test_fails(pytester: pytest.Pytester) -> None:
    controls = control_tests(2)
    pytester.makepyfile(test_that_controls=controls.text)
    counts = pytester.runpytest("-p", "no:cacheprovider").parseoutcomes()
    assert counts == {"failed": len(controls.names)}


def test_one_control_of_each_kind_stands_before_and_after_and_one_in_each_gap() -> None:
    controls = control_tests(2)
    assert [len(part) for part in (controls.before, controls.between, controls.after)] == [3, 2, 3]
    assert len(set(controls.names)) == 8


def test_controls_differ_every_time() -> None:
    assert not {*control_tests(0).names} & {*control_tests(0).names}


def test_controls_are_named_like_the_tests_beside_them() -> None:
    beside = ["test_a_lock_is_held_once", "test_who_waits_is_served_in_order", "test_two_may_wait"]
    words = {word for name in beside for word in name.split("_")}
    names = control_tests(3, beside).names
    assert len(set(names)) == 9
    assert not {*names} & {*beside}
    assert {word for name in names for word in name.split("_")} <= words


class Typed(int):
    def __eq__(self, other: object) -> bool:
        return isinstance(other, int)

    __hash__ = int.__hash__


def test_an_int_equal_to_every_int_is_found() -> None:
    assert isinstance(equal_to_anything([[Typed(1)]]), Typed)


def test_the_printing_control_says_what_it_says_and_not_what_it_denies(capsys: pytest.CaptureFixture[str]) -> None:
    controls = control_cells()
    exec(controls.prints)
    assert capsys.readouterr().out == controls.says != controls.denies
    with pytest.raises(RuntimeError):
        exec(controls.raises)


@pytest.mark.parametrize(
    "inside", [lambda x: x, lambda x: [x], lambda x: {"a": (x,)}, Holder, Box, lambda x: Holder([Box(x)])]
)
def test_an_object_equal_to_anything_is_found_wherever_it_hides(inside: Any) -> None:
    rigged = Anything()
    assert equal_to_anything([1, "a", inside(rigged)]) is rigged


@pytest.mark.parametrize(
    "honest", [1, "a", None, [1], Holder(1), Box(1), Touchy(), Path("a"), object, msgspec, float("nan")]
)
def test_an_honest_object_is_left_alone(honest: Any) -> None:
    assert equal_to_anything([honest]) is None


def test_a_circle_ends() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert equal_to_anything(circle) is None
