"""A verdict as HTML: all of it is there, in words, and nothing of a learner's is taken for markup."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import get_args

import pytest
from msgspec.structs import replace
from toy import CHECKPOINT

from course.catalog import Lab
from course.marking.verdict import SYMBOLS, LabVerdict, Marked, Verdict, Versions, Word, overall
from course.notebook.marker import Outcome
from course.notebook.sheet import CSS, framed, gone, headline, hint, old, rows, says

AGENT = "/home/ada/practice/42/agent.py"
TITLES = {lab.id: lab.title for lab in CHECKPOINT.labs}


def lab(id: str, word: Word, message: str | None = None, where: str | None = None) -> LabVerdict:
    return LabVerdict(id, TITLES[id], word, 1, 0, message, where)


def verdict(*labs: LabVerdict) -> Verdict:
    return Verdict("42", overall(labs), Marked(AGENT, "ab" * 32), labs, Versions("1", "3"), 1.25)


def drawn(*labs: LabVerdict, saved: float | None = 1_000_000.0) -> str:
    return rows(CHECKPOINT, Outcome(verdict(*labs), "", saved), {"42.1": 1, "42.2": 2})


def words(markup: str) -> str:
    """What a reader sees: the text without tags, each run of spaces as one."""
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", markup)).split())


class Tags(HTMLParser):
    def __init__(self, markup: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.append(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("word", get_args(Word))
def test_every_state_is_a_symbol_and_a_word_and_not_a_colour_alone(word: Word) -> None:
    shown = words(drawn(lab("42.1", word)))
    assert f"{SYMBOLS[word]} {word.replace('_', ' ')} 42.1 Count 1/2 tests · –/1 cell" in shown
    assert f".{word}" in CSS


def test_the_parts_of_a_message_are_named_and_a_next_step_follows() -> None:
    message = "Expected: a count.\nCame: assert 1 == 2\n   +  where 1 = f()\nWhy: it must count"
    shown = words(drawn(lab("42.1", "red", message, f"{AGENT}:7")))
    assert "Expected a count. Came assert 1 == 2 + where 1 = f() Why it must count Where agent.py, line 7 Next" in shown
    assert shown.count("%mark 42.1") == 1


def test_a_message_without_parts_is_a_paragraph() -> None:
    assert "<p>Lab 42.1: count. That is still to be written.</p>" in drawn(
        lab("42.1", "not_attempted", "Lab 42.1: count. That is still to be written.")
    )


def test_the_first_lab_that_is_not_green_is_open_and_no_other() -> None:
    drawing = drawn(lab("42.1", "green"), lab("42.2", "red", "x"), lab("42.3", "red", "y"))
    assert drawing.count("<details open>") == 1
    assert drawing.count("<details>") == 1
    assert drawing.index("<details open>") < drawing.index("42.2") < drawing.index("<details>")


HOSTILE = "<img src=x onerror=alert(1)> </dd></dl></details></div> &amp; \u202eevil `code` 'q' \"r\""


def test_markup_in_a_learners_output_is_shown_and_does_nothing() -> None:
    drawing = framed(drawn(lab("42.1", "red", f"Came: {HOSTILE}\n{HOSTILE}", f"{HOSTILE}:1")))
    tags = Tags(drawing)
    assert tags.open == []
    assert "img" not in tags.names
    assert words(drawing).count(HOSTILE.replace("\u202e", "\\u202e")) == 3


def test_markup_in_a_problem_or_a_line_of_ours_is_shown_too() -> None:
    assert "<img" not in rows(CHECKPOINT, Outcome(None, HOSTILE), {}) + says(HOSTILE)


def goes_to(drawing: str) -> list[dict[str, str]]:
    """Where a click on the place goes, one after the other."""
    arguments = re.search('data-commandlinker-args="([^"]*)"', drawing)
    assert arguments is not None
    assert 'data-commandlinker-command="apputils:run-all-enabled"' in drawing
    given, places = json.loads(html.unescape(arguments[1])), []
    while given is not None:
        assert given["commands"][0] == "rendermime:handle-local-link"
        places.append({key: given["args"][key] for key in ("path", "id") if key in given["args"]})
        given = given["args"] if given["commands"][-1] == "apputils:run-all-enabled" else None
    return places


def test_a_click_on_a_place_goes_some_lines_too_far_and_back_so_that_there_is_code_below_it() -> None:
    assert goes_to(drawn(lab("42.1", "red", "x", f"{AGENT}:7"))) == [
        {"path": "agent.py", "id": "#line=18"},  # counted from 0
        {"path": "agent.py", "id": "#line=6"},
    ]


def test_a_test_file_is_opened_from_the_pane_of_agent_py_and_so_not_over_the_notebook() -> None:
    test = AGENT.replace("agent.py", "test_42_toy.py")
    assert goes_to(drawn(lab("42.1", "red", "x", f"{test}:7"))) == [
        {"path": "agent.py"},
        {"path": "test_42_toy.py"},
        {"path": "test_42_toy.py", "id": "#line=18"},
        {"path": "test_42_toy.py", "id": "#line=6"},
    ]


def test_a_place_elsewhere_is_text() -> None:
    drawing = drawn(lab("42.1", "red", "x", "/opt/course/test_42_toy.py:9"))
    assert "commandlinker" not in drawing
    assert "Where /opt/course/test_42_toy.py:9" in words(drawing)


def test_when_it_was_saved_is_said_first_and_the_hash_is_for_whoever_looks_for_it() -> None:
    drawing = drawn(lab("42.1", "not_attempted", "x"))
    assert re.match(r"Marked as saved at \d\d:\d\d:\d\d; what is not saved does not count\. ○", words(drawing))
    assert words(drawing).endswith(f"Marked in 1.2 s: {AGENT}")
    assert 'title="sha256 abababababab"' in drawing


def test_what_was_found_before_is_said_to_be_old() -> None:
    assert words(old(drawn(lab("42.1", "green"), saved=None))).startswith("Found before that: ✔ green 42.1")
    assert old("") == ""


def test_a_panel_without_a_kernel_says_what_to_run_and_only_then() -> None:
    assert words(gone("%mark 42.1")) == "The kernel has changed. Run the set-up cell, then %mark 42.1 again."
    assert ".course-sheet .gone { display: none; }" in CSS
    assert re.search(r"\.jupyter-widgets-disconnected [^{]*\.gone { display: block", CSS)


@pytest.mark.parametrize(
    ("message", "next"),
    [
        (
            "Lab 42.2 needs lab 42.1, which is not written yet (Lab 42.1: count).\n"
            "First: course checkpoint 42 --lab 42.1",
            "Write lab 42.1 first, save, and run %mark 42.1 .",
        ),
        (
            "Lab 42.1 stopped the tests before this one. First: course checkpoint 42 --lab 42.1",
            "Mend lab 42.1 first, save, and run %mark 42.1 .",
        ),
        (
            "agent.py could not be read, so no test ran. See lab 42.1.",
            "Mend lab 42.1 first, save, and run %mark 42.1 .",
        ),
    ],
)
def test_a_lab_that_needs_another_one_names_it_for_the_notebook(message: str, next: str) -> None:
    shown = words(drawn(lab("42.2", "not_run", message)))
    assert f"Next {next}" in shown
    assert "course checkpoint" not in shown


def test_what_a_learner_printed_names_no_lab_to_go_to_first() -> None:
    shown = words(drawn(lab("42.2", "red", "Expected: x.\nCame: y. See lab 42.1.")))
    assert "See lab 42.1." in shown
    assert "Next Mend agent.py" in shown


def test_cells_that_nobody_looked_at_are_not_counted() -> None:
    assert "0/2 tests · –/1 cell" in words(drawn(replace(lab("42.1", "red", "x"), tests=0)))
    assert "2/2 tests · 0/1 cell" in words(drawn(replace(lab("42.1", "red", "x"), tests=2)))


def test_the_headline_counts_what_is_required() -> None:
    every = verdict(lab("42.1", "green"), lab("42.2", "red", "x"), lab("42.3", "red", "y"))
    assert headline(CHECKPOINT, every) == "Checkpoint 42: 1 of 2 required labs are green."
    assert headline(CHECKPOINT, verdict(lab("42.3", "timed_out", "x"))) == "Lab 42.3 is timed out."
    assert headline(CHECKPOINT, verdict(lab("42.1", "green"), lab("42.3", "green"))) == (
        "Checkpoint 42: 2 of 2 labs are green."
    )


@pytest.mark.parametrize(
    ("left", "next"),
    [
        (CHECKPOINT.labs[1], "Go on with lab 42.2, Wait, then run %mark 42.2 ."),
        (CHECKPOINT.labs[2], "All required labs are green. Lab 42.3, Show, is optional: %mark 42.3 ."),
        (None, "All labs are green. In a terminal, course shows what comes next."),
    ],
)
def test_when_all_is_green_the_next_lab_is_the_one_that_is_left(left: Lab | None, next: str) -> None:
    outcome = Outcome(verdict(lab("42.1", "green")), "", 1.0)
    assert f"Next {next}" in words(rows(CHECKPOINT, outcome, {}, left))


def test_a_hint_says_its_level_and_sets_code_as_code() -> None:
    hinted = replace(CHECKPOINT.labs[0], hints=("Use `a < b`.", "More."))
    assert words(hint(hinted, 1)) == "Hint 1 of 2 for lab 42.1 Use a < b ."
    assert "<code>a &lt; b</code>" in hint(hinted, 1)


def test_nothing_is_fetched_from_anywhere() -> None:
    everything = CSS + framed(drawn(lab("42.1", "red", "x", f"{AGENT}:7")))
    assert not re.search(r"https?:|//|url\(|@import|src=|href=", everything)
