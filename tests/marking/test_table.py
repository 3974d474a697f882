"""A verdict on a terminal: narrow or wide, with colour or without, and whatever a learner's output holds."""

from __future__ import annotations

import io

import pytest
import toy
from rich.console import Console

from course.marking.table import Step, show
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, overall

GREEN = LabVerdict("42.1", "Count", "green", 2, 1)
RED = LabVerdict(
    "42.2", "Wait", "red", 1, 0, "Expected: [bold]adding[/bold].\nCame: [/nonsense] " + "long " * 60, "/a/agent.py:7"
)


def shown(*labs: LabVerdict, width: int = 80, color: bool = False) -> str:
    verdict = Verdict("42", overall(labs), Marked("/a/agent.py", "cd" * 32), labs, Versions("1", "3"), 0.5)
    file = io.StringIO()
    console = Console(
        file=file, width=width, force_terminal=color, color_system="standard" if color else None, markup=False
    )
    show(console, verdict, toy.CHECKPOINT, {"42.1": 1, "42.2": 3}, "course checkpoint 42")
    return file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_every_word_is_there(width: int) -> None:
    text = shown(GREEN, RED, width=width)
    assert max(map(len, text.splitlines())) <= width
    assert "✔ green" in text
    assert "✘ red" in text


def test_tests_and_cells_are_shown_out_of_those_there_are() -> None:
    rows = [line.split() for line in shown(GREEN, RED).splitlines()[1:3]]
    assert [row[3:5] for row in rows] == [["2/2", "1/1"], ["1/2", "-"]], "cells wait for the tests"


def test_markup_in_a_learners_text_is_shown_as_it_is() -> None:
    text = shown(GREEN, RED, width=200)
    assert "[bold]adding[/bold]" in text
    assert "[/nonsense]" in text


def test_colour_only_repeats_what_the_words_say() -> None:
    plain, coloured = shown(GREEN, RED), shown(GREEN, RED, color=True)
    assert "\x1b[" in coloured
    assert "\x1b" not in plain
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m"):
        coloured = coloured.replace(code, "")
    assert coloured == plain


def test_the_first_lab_that_is_not_green_is_told_whole_with_the_place_and_the_next_command() -> None:
    text = shown(GREEN, RED)
    assert "Lab 42.2: Wait\n✘ red  1 of 2 tests passed\nExpected:" in text
    assert "Where: /a/agent.py:7" in text
    assert "course checkpoint 42 --lab 42.2" in text


def test_when_all_is_green_the_way_on_is_named() -> None:
    every = [LabVerdict(lab.id, lab.title, "green", lab.tests, 0) for lab in toy.CHECKPOINT.labs]
    assert "All labs are green." in shown(*every)
    assert "Next: to mark the other labs, too, type  course checkpoint 42\n" in shown(GREEN)


NEEDS = LabVerdict(
    "42.3",
    "Show",
    "not_run",
    0,
    0,
    "Lab 42.3 needs lab 42.1, which is not written yet (Lab 42.1: write this).\nFirst: course checkpoint 42 --lab 42.1",
)
OPEN = LabVerdict("42.1", "Count", "not_attempted", 0, 0, "Lab 42.1: write this. That is still to be written.")


def test_each_row_has_the_title_and_a_short_reason() -> None:
    rows = shown(OPEN, RED, NEEDS, width=100).splitlines()[1:4]
    assert rows[0].split()[-4:] == ["Count", "not", "written", "yet"]
    assert "Wait" in rows[1]
    assert " [/nonsense] long" in rows[1]
    assert rows[2].rstrip().endswith("optional: Show    needs 42.1")


@pytest.mark.parametrize(
    ("width", "has_counts", "has_reasons"), [(80, True, True), (60, False, True), (44, False, False)]
)
def test_on_a_narrow_terminal_counts_go_first_then_reasons_and_titles_stay(
    width: int, has_counts: bool, has_reasons: bool
) -> None:
    text = shown(OPEN, NEEDS, width=width)
    rows = "\n".join(text.splitlines()[:3])
    assert "Count" in rows
    assert "optional: Show" in rows
    assert ("Tests" in rows, "needs 42.1" in rows) == (has_counts, has_reasons)


def test_a_lab_that_needs_another_names_its_command_once_and_in_the_same_folder() -> None:
    labs = (NEEDS,)
    verdict = Verdict("42", overall(labs), Marked("/a/agent.py", "cd" * 32), labs, Versions("1", "3"), 0.5)
    file = io.StringIO()
    show(Console(file=file, width=80), verdict, toy.CHECKPOINT, {}, "course checkpoint 42 --in there")
    assert "Next: lab 42.1 comes first; type  course checkpoint 42 --in there --lab 42.1" in file.getvalue()
    assert "First:" not in file.getvalue()


def test_a_command_that_does_not_fit_is_on_a_line_of_its_own_in_one_piece() -> None:
    command = "course checkpoint 42 --in 'a folder with a long name'"
    file = io.StringIO()
    Console(file=file, width=40).print(Step("Next: write it, then type", command), crop=False)
    assert file.getvalue() == f"Next: write it, then type\n  {command}\n"
