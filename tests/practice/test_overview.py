"""Where a learner is, and what to type next."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from course.catalog import Checkpoint, Lab
from course.practice import overview
from course.practice.overview import Standing, next_step
from course.practice.progress import LabProgress, Progress

LABS = (Lab("1.1", "First", 2), Lab("1.2", "Second", 2), Lab("1.3", "More", 2, optional=True))


def standing(id: str, *green: str, laid: bool = True) -> Standing:
    checkpoint = Checkpoint(id=id, slug="x", title=f"Title {id}", module="x", minutes=60, labs=LABS)
    labs = {lab: LabProgress("green", "", "green") for lab in green}
    return Standing(checkpoint, Path("practice", id), laid, Progress(id, labs))


def test_what_is_begun_is_gone_on_with_at_its_next_lab() -> None:
    standings = [standing("01", laid=False), standing("02", "1.1")]
    assert str(next_step(standings)) == "Next: to go on with lab 1.2, Second, type  course checkpoint 02"


def test_what_is_finished_is_followed_by_what_is_not_begun() -> None:
    standings = [standing("01", "1.1", "1.2"), standing("02", laid=False)]
    assert str(next_step(standings)) == "Next: to begin Title 02, type  course lab 02"


def test_in_the_end_everything_is_green() -> None:
    step = next_step([standing("01", "1.1", "1.2")])
    assert step.words.startswith("Every required lab is green.")
    assert step.command == "course lab 01"


def test_every_checkpoint_has_a_row_in_words() -> None:
    file = io.StringIO()
    console = Console(file=file, width=80)
    overview.show(console, [standing("01", "1.1", "1.2"), standing("02", "1.1"), standing("03", laid=False)])
    rows = file.getvalue().splitlines()
    assert "finished" in rows[1]
    assert "1 of 2" in rows[2]
    assert "not begun" in rows[3]


def test_the_next_command_is_in_one_piece_however_narrow_the_terminal() -> None:
    file = io.StringIO()
    overview.show(Console(file=file, width=60), [standing("02", "1.1")])
    assert file.getvalue().endswith("\nNext: to go on with lab 1.2, Second, type\n  course checkpoint 02\n")


def test_on_a_narrow_terminal_titles_stay_on_one_line() -> None:
    file = io.StringIO()
    overview.show(Console(file=file, width=40), [standing("09", "1.1")])
    row = file.getvalue().splitlines()[1]
    assert row.split() == ["09", "Title", "09", "1", "of", "2"]
