"""Hints come one at a time, are remembered, and the last is not given away unasked."""

from __future__ import annotations

from pathlib import Path

import desk
import pytest
import toy

from course.catalog import checkpoints
from course.errors import CourseError
from course.practice import hints, progress
from course.practice.progress import Progress

LAB = toy.CHECKPOINT.find_lab("42.1")


def after(seen: int) -> hints.Hints:
    return hints.hints(toy.CHECKPOINT, LAB, Progress("42", hints={"42.1": seen}))


@pytest.mark.parametrize(("seen", "level", "left"), [(0, 1, 2), (1, 2, 1), (2, 3, 0), (3, 3, 0)])
def test_each_time_there_is_one_more_until_all_are_shown(seen: int, level: int, left: int) -> None:
    assert (after(seen).level, after(seen).left) == (level, left)


def test_only_the_step_to_the_last_is_to_be_asked_for_twice() -> None:
    assert [after(seen).is_last_step for seen in range(4)] == [False, False, True, False]


def test_hints_seen_before_are_shown_again_and_later_ones_are_not() -> None:
    text = desk.shown(hints.render(after(1), *hints.commands(after(1))))
    assert LAB.hints[0] in text
    assert LAB.hints[1] in text
    assert LAB.hints[2] not in text
    assert "Hint 1 of 3 (seen before)" in text
    assert "Hints left: 1" in text
    assert "course hint 42.1" in text
    assert "course checkpoint 42 --lab 42.1" in text


def test_after_the_last_the_solution_is_named() -> None:
    text = desk.shown(hints.render(after(2), *hints.commands(after(2))))
    assert "Hints left: none" in text
    assert "course solution 42 --lab 42.1 --spoil" in text


def test_how_many_were_seen_survives_a_marking(tmp_path: Path) -> None:
    progress.record_hint(toy.CHECKPOINT, tmp_path, "42.1", 2)
    progress.record(toy.CHECKPOINT, tmp_path, desk.verdict("red", "red", "red"))
    assert progress.read(toy.CHECKPOINT, tmp_path).hints == {"42.1": 2}


def test_a_catalog_that_has_fewer_hints_now_is_no_fault() -> None:
    assert after(7).seen == 3


def test_a_lab_without_hints_says_what_to_do_instead() -> None:
    with pytest.raises(CourseError, match=r"course checkpoint 42 --lab 42\.2"):
        hints.hints(toy.CHECKPOINT, toy.CHECKPOINT.find_lab("42.2"), Progress("42"))


@pytest.mark.parametrize("lab", [lab for one in checkpoints().values() for lab in one.labs], ids=lambda lab: lab.id)
def test_every_lab_of_the_course_has_three(lab: object) -> None:
    assert len(getattr(lab, "hints", ())) == 3
