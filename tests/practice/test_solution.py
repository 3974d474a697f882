"""The solution is shown to those who have earned it or ask for it, as a difference that reads without colour."""

from __future__ import annotations

import io
from pathlib import Path

import desk
import pytest
from rich.console import Console

from course.catalog import Checkpoint
from course.errors import CourseError
from course.practice import solution
from course.practice.progress import LabProgress, Progress


def progress(**words: str) -> Progress:
    labs = {f"42.{id[-1]}": LabProgress(word, "", word) for id, word in words.items()}  # type: ignore[arg-type]
    return Progress("42", labs)


def test_not_before_every_required_lab_was_green(checkpoint: Checkpoint) -> None:
    with pytest.raises(CourseError, match=r"lab 42\.2 has not been green yet") as raised:
        solution.check_earned(checkpoint, None, progress(lab1="green", lab2="red"))
    assert "course hint 42.2" in str(raised.value)
    assert "course solution 42 --spoil" in str(raised.value)
    solution.check_earned(checkpoint, None, progress(lab1="green", lab2="green"))


def test_one_lab_is_earned_by_itself(checkpoint: Checkpoint) -> None:
    first, second = (checkpoint.find_lab(id) for id in ("42.1", "42.2"))
    solution.check_earned(checkpoint, first, progress(lab1="green"))
    with pytest.raises(CourseError, match=r"course solution 42 --lab 42\.2 --spoil"):
        solution.check_earned(checkpoint, second, progress(lab1="green"))


def test_one_that_was_green_once_is_earned(checkpoint: Checkpoint) -> None:
    earned = Progress("42", {"42.1": LabProgress("green", "", "red")})
    solution.check_earned(checkpoint, checkpoint.find_lab("42.1"), earned)


def changes(lines: list[str]) -> list[str]:
    return [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]


def test_it_leads_from_the_learners_file_to_the_solution(checkpoint: Checkpoint, folder: Path) -> None:
    (folder / "agent.py").write_text(desk.starter("42.1", "42.3"))
    assert changes(solution.difference(checkpoint, folder / "agent.py")) == [
        '-        raise NotImplementedError("Lab 42.2: write this")',
        "+        await anyio.sleep(0)",
        "+        return self.add(n)",
    ]


def test_of_one_lab_it_holds_that_lab_alone_at_its_own_lines(checkpoint: Checkpoint, folder: Path) -> None:
    lines = solution.difference(checkpoint, folder / "agent.py", checkpoint.find_lab("42.1"))
    assert changes(lines) == [
        '-        raise NotImplementedError("Lab 42.1: write this")',
        "+        self.value += n",
        "+        return self.value",
    ]
    number = int(lines[2].partition("-")[2].partition(",")[0])
    first = (folder / "agent.py").read_text().splitlines()[number - 1]
    assert lines[3] == f" {first}"


def test_where_nothing_differs_it_is_empty(checkpoint: Checkpoint, folder: Path) -> None:
    (folder / "agent.py").write_bytes(checkpoint.solution.read_bytes())
    assert solution.difference(checkpoint, folder / "agent.py") == []


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"def ("])
def test_any_file_can_be_compared(checkpoint: Checkpoint, folder: Path, content: bytes) -> None:
    (folder / "agent.py").write_bytes(content)
    assert solution.difference(checkpoint, folder / "agent.py")


@pytest.mark.parametrize("colour", ["truecolor", None])
def test_signs_say_what_colours_repeat_and_escape_codes_are_only_shown(colour: str | None) -> None:
    file = io.StringIO()
    console = Console(file=file, width=200, color_system=colour, force_terminal=True, markup=False)  # type: ignore[arg-type]
    long = "+x = '[bold]\x1b[31mred[/nope]' # " + "w" * 80
    solution.show(console, [long, "-y", " z"])
    text = file.getvalue()
    assert "\x1b[31mred" not in text
    assert "+x = '[bold]␛[31mred[/nope]' # " + "w" * 80 in text
    assert ("\x1b[32m" in text) == (colour is not None)


@pytest.mark.parametrize("is_terminal", [True, False], ids=["terminal", "file"])
def test_on_a_terminal_a_long_line_goes_on_indented_and_in_a_file_it_stays_one(is_terminal: bool) -> None:
    file = io.StringIO()
    console = Console(file=file, width=40, force_terminal=is_terminal, color_system=None, markup=False)
    line = "+        return first(second, third, fourth, fifth)"
    solution.show(console, [line])
    rows = ["+        return first(second, third,", "         … fourth, fifth)"] if is_terminal else [line]
    assert [row.rstrip() for row in file.getvalue().splitlines()] == rows
