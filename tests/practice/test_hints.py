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


def shown(found: hints.Hints, where: str = "") -> str:
    return desk.shown(hints.render(found, hints.more(found, where), hints.then(found, where)))


@pytest.mark.parametrize(("seen", "level", "left"), [(0, 1, 2), (1, 2, 1), (2, 3, 0), (3, 3, 0)])
def test_each_time_there_is_one_more_until_all_are_shown(seen: int, level: int, left: int) -> None:
    assert (after(seen).level, after(seen).left) == (level, left)


def test_only_the_step_to_the_last_is_to_be_asked_for_twice() -> None:
    assert [after(seen).is_last_step for seen in range(4)] == [False, False, True, False]


def test_hints_seen_before_are_shown_again_and_later_ones_are_not() -> None:
    text = shown(after(1))
    assert LAB.hints[0] in text
    assert LAB.hints[1] in text
    assert LAB.hints[2] not in text
    assert "Hint 1 of 3 (seen before)" in text
    assert "Hints left: 1" in text
    assert "course hint 42.1" in text
    assert "course checkpoint 42 --lab 42.1" in text


def test_after_the_last_the_solution_is_named() -> None:
    text = shown(after(2))
    assert "Hints left: none" in text
    assert "course solution 42 --lab 42.1 --spoil" in text


def test_the_commands_name_the_folder() -> None:
    text = shown(after(2), " --in elsewhere")
    assert "course solution 42 --lab 42.1 --spoil --in elsewhere" in text
    assert "course checkpoint 42 --in elsewhere --lab 42.1" in text


def test_of_a_lab_that_is_green_nothing_is_to_be_written_and_the_next_one_is_named() -> None:
    first = progress.add(Progress("42"), desk.verdict("green", "red", "red"))
    every = progress.add(first, desk.verdict("green", "green", "green"))
    assert "Lab 42.1 is green already. Next: to go on with lab 42.2" in shown(hints.hints(toy.CHECKPOINT, LAB, first))
    assert "Every lab is green. Next: type  course\n" in shown(hints.hints(toy.CHECKPOINT, LAB, every))
    lost = progress.add(every, desk.verdict("red", "green", "green"))
    assert "Next: write lab 42.1, then" in shown(hints.hints(toy.CHECKPOINT, LAB, lost))


def test_in_short_only_the_newest_is_shown_in_full() -> None:
    found = after(2)
    text = desk.shown(hints.render(found, "", "", is_short=True), width=40)
    assert "Hint 1 of 3 (seen before): Add, then re…\n" in text
    assert "\nHint 3 of 3\n  return self.value\n" in text


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
