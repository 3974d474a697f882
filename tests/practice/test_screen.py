"""The watching fits its terminal, says in words what it colours, and is not steered by a learner's output."""

from __future__ import annotations

import io
from pathlib import Path

import desk
import pytest
from msgspec.structs import replace
from rich.console import Console

from course.catalog import Checkpoint
from course.marking.table import Step
from course.marking.verdict import Verdict
from course.practice import hints
from course.practice.progress import Progress
from course.practice.screen import Lines, Screen
from course.practice.watch import View

CELLS = {"42.1": 1, "42.2": 1, "42.3": 1}
NASTY = "Expected: [bold]x[/nope].\nCame: \x1b[2J\x1b]0;title\x07" + "w" * 300


def view(checkpoint: Checkpoint, *words: str, **changes: object) -> View:
    verdict = desk.verdict(*words) if words else None  # type: ignore[arg-type]
    return replace(
        View(checkpoint, Path("practice/42/agent.py"), is_marking=False, verdict=verdict, at="12:00:00"), **changes
    )


def drawn(view: View, width: int = 80, colour: str | None = None, term: str = "xterm") -> str:
    file = io.StringIO()
    environ = {"TERM": term}
    console = Console(
        file=file,
        width=width,
        color_system=colour,  # type: ignore[arg-type]
        force_terminal=True,
        markup=False,
        emoji=False,
        highlight=False,
        _environ=environ,
    )
    Screen(console, CELLS).draw(view)
    return file.getvalue()


def plain(view: View, width: int = 80) -> list[str]:
    file = io.StringIO()
    Screen(Console(file=file, width=width, markup=False, emoji=False, highlight=False), CELLS).draw(view)
    return file.getvalue().splitlines()


def pages(checkpoint: Checkpoint) -> list[View]:
    found = hints.hints(checkpoint, checkpoint.find_lab("42.1"), Progress("42", hints={"42.1": 2}))
    red = view(checkpoint, "red", "not_run", "not_run", lab="42.1")
    return [
        view(checkpoint),
        red,
        replace(red, page="list"),
        replace(red, page="hints", hints=found),
        replace(red, note="w" * 300, is_marking=True),
        replace(red, verdict=desk.verdict("red", "red", "red", message=NASTY, where="practice/42/agent.py:7")),
    ]


@pytest.mark.parametrize("width", [30, 40, 80, 200])
def test_no_line_is_wider_than_the_terminal(checkpoint: Checkpoint, width: int) -> None:
    for page in pages(checkpoint):
        assert max(len(line) for line in plain(page, width) if not line.startswith("  course ")) <= width


def test_a_red_lab_reads_what_came_where_and_what_the_keys_do(checkpoint: Checkpoint) -> None:
    verdict = desk.verdict("green", "red", "not_run", where="practice/42/agent.py:7")
    text = "\n".join(plain(view(checkpoint, lab="42.2", verdict=verdict)))
    for part in (
        "1 of 2 labs are green",
        "Lab 42.2: Wait",
        "✘ red  0 of 2 tests passed",
        "Expected: this.\nCame: that.\nWhere: practice/42/agent.py:7",
        "q quit",
    ):
        assert part in text
    assert "next lab" not in text


def test_a_green_lab_names_the_next_one(checkpoint: Checkpoint) -> None:
    text = "\n".join(plain(view(checkpoint, "green", "green", "red", lab="42.1")))
    assert "✔ green" in text
    assert "Press n for lab 42.3: Show, which is optional." in text
    assert "n next lab" in text


def test_when_every_lab_is_green_the_way_on_is_named(checkpoint: Checkpoint) -> None:
    text = "\n".join(plain(view(checkpoint, "green", "green", "green", lab="42.3")))
    assert "Every lab is green. Press q, then type  course" in text
    assert "n next lab" not in text


def test_what_a_save_has_changed_is_said(checkpoint: Checkpoint) -> None:
    before = desk.verdict("red", "not_run", "green")
    text = "\n".join(plain(view(checkpoint, "green", "red", "green", before=before)))
    assert "Changed: 42.1 red → green, 42.2 not run → red" in text
    assert "Changed" not in "\n".join(plain(view(checkpoint, "red", "red", "red")))


def test_while_it_marks_that_is_said(checkpoint: Checkpoint) -> None:
    assert any("marking …" in line for line in plain(view(checkpoint, is_marking=True)))


def test_colours_only_repeat_words(checkpoint: Checkpoint) -> None:
    red = view(checkpoint, "red", "not_run", "timed_out", page="list")
    assert "\x1b[31m✘ red" in drawn(red, colour="standard")
    assert all(word in drawn(red) for word in ("✘ red", "– not run", "⧖ timed out"))


def test_without_colour_there_is_no_colour_code(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    for page in pages(checkpoint):
        assert "\x1b[3" not in drawn(page)


def test_a_learners_output_steers_nothing(checkpoint: Checkpoint) -> None:
    nasty = pages(checkpoint)[-1]
    text = drawn(nasty, colour="truecolor")
    assert "[bold]x[/nope]" in text
    assert "\x1b]0;" not in text
    assert text.count("\x1b[2J") == 1, "the screen is cleared once, by us"


def test_a_dumb_terminal_gets_a_rule_instead_of_a_cleared_screen(checkpoint: Checkpoint) -> None:
    text = drawn(view(checkpoint), term="dumb")
    assert "\x1b" not in text
    assert text.startswith("-----")


def lines(*views: View) -> list[str]:
    file = io.StringIO()
    show = Lines(Console(file=file, width=40, markup=False, emoji=False, highlight=False))
    for each in views:
        show.draw(each)
    return file.getvalue().splitlines()


def test_without_a_terminal_each_verdict_is_one_line(checkpoint: Checkpoint) -> None:
    first = view(checkpoint, "green", "red", "not_run")
    second = replace(first, verdict=desk.verdict("green", "green", "green"), is_marking=True)
    third = replace(second, is_marking=False)
    assert lines(replace(first, is_marking=True), first, first, second, third) == [
        "12:00:00  red: 1 of 2 labs are green, 0.1 s; lab 42.2 is red: Expected: this. Came: that.",
        "12:00:00  green: 2 of 2 labs are green, 0.1 s",
    ]


def test_the_same_verdict_again_is_another_line(checkpoint: Checkpoint) -> None:
    first, again = (view(checkpoint, "green", "green", "green") for _ in range(2))
    assert first == again
    assert len(lines(first, first, again)) == 2


def test_a_line_is_one_line_whatever_is_in_it(checkpoint: Checkpoint) -> None:
    nasty = view(checkpoint, verdict=desk.verdict("red", "red", "red", message=NASTY))
    (line,) = lines(nasty)
    assert "\x1b" not in line
    assert "[bold]x[/nope]" in line
    (line,) = lines(view(checkpoint, note="one\ntwo\x1b[2J"))
    assert line == "one two␛[2J"


def rows_on_a_terminal(view: View, height: int = 24, width: int = 80) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None, markup=False)
    Screen(console, CELLS).draw(view)
    return file.getvalue().removeprefix("\x1b[2J\x1b[H").splitlines()


def test_a_page_that_is_too_high_keeps_its_head_and_its_keys(checkpoint: Checkpoint) -> None:
    long = view(
        checkpoint, verdict=desk.verdict("red", "red", "red", message="Expected: this.\n" + "Came: that.\n" * 40)
    )
    rows = rows_on_a_terminal(long)
    assert len(rows) < 24
    assert rows[0] == "Checkpoint 42: A toy"
    assert rows[-1].endswith("q quit")
    assert "more lines: make the window higher" in rows[-3]


def test_a_page_that_fits_is_not_cut(checkpoint: Checkpoint) -> None:
    rows = rows_on_a_terminal(view(checkpoint, "red", "red", "red"))
    assert not any("more lines" in row for row in rows)


def test_the_hints_name_the_way_back(checkpoint: Checkpoint) -> None:
    page = pages(checkpoint)[3]
    assert "b back to the lab" in "\n".join(plain(page))


def test_after_the_last_hint_no_next_one_is_offered(checkpoint: Checkpoint) -> None:
    page = pages(checkpoint)[3]
    assert page.hints is not None
    assert "next hint" not in "\n".join(plain(page))
    assert "h next hint" in "\n".join(plain(replace(page, hints=replace(page.hints, seen=0))))


def test_the_list_is_shown_of_a_file_that_cannot_be_imported_too(checkpoint: Checkpoint) -> None:
    text = "\n".join(plain(view(checkpoint, verdict=no_import(), page="list")))
    assert "see 42.1" in text


def test_a_green_labs_hints_do_not_ask_to_write_it(checkpoint: Checkpoint) -> None:
    page = pages(checkpoint)[3]
    assert page.hints is not None
    text = "\n".join(plain(replace(page, hints=replace(page.hints, is_green=True))))
    assert "Lab 42.1 is green already." in text
    assert "write lab" not in text


@pytest.mark.parametrize("page", ["lab", "list", "hints"])
def test_that_the_file_is_gone_stands_above_whatever_is_open(checkpoint: Checkpoint, page: str) -> None:
    gone = Step("agent.py is not there. To lay the starter, type", "course practice 42 --into 'a folder with a name'")
    rows = plain(replace(pages(checkpoint)[3], page=page, gone=gone), width=40)
    assert rows[4].startswith("agent.py is not there.")
    assert "  course practice 42 --into 'a folder with a name'" in rows


def no_import() -> Verdict:
    first, *rest = desk.verdict("red", "not_run", "not_run").labs
    others = [replace(lab, message="agent.py could not be imported, so no test ran. See lab 42.1.") for lab in rest]
    return replace(desk.verdict("red", "red", "red"), labs=(first, *others))


def test_a_file_that_cannot_be_imported_is_told_as_that_alone(checkpoint: Checkpoint) -> None:
    text = "\n".join(plain(view(checkpoint, verdict=no_import(), before=desk.verdict("green", "green", "green"))))
    assert "agent.py cannot be imported\nExpected: this.\nCame: that." in text
    assert "Changed" not in text
    assert "Lab 42.1" not in text
    (line,) = lines(view(checkpoint, verdict=no_import()))
    assert "; agent.py cannot be imported: Expected: this. Came: that." in line
