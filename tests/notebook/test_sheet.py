"""A verdict as HTML: all of it is there, in words, and nothing of a learner's is taken for markup."""

from __future__ import annotations

import html
import json
import re
from html.parser import HTMLParser
from typing import get_args

import pytest
from toy import CHECKPOINT

from course.marking.verdict import SYMBOLS, LabVerdict, Marked, Verdict, Versions, Word, overall
from course.notebook.marker import Outcome
from course.notebook.sheet import CSS, framed, headline, hint, rows, says

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
    assert f"{SYMBOLS[word]} {word.replace('_', ' ')} 42.1 Count 1/2 tests · 0/1 cell" in shown
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


def test_a_place_beside_the_marked_file_is_a_link_that_jupyterlab_follows() -> None:
    drawing = drawn(lab("42.1", "red", "x", f"{AGENT}:7"))
    arguments = re.search('data-commandlinker-args="([^"]*)"', drawing)
    assert arguments is not None
    assert json.loads(html.unescape(arguments[1])) == {"path": "agent.py", "id": "#line=6"}  # counted from 0


def test_a_place_elsewhere_is_text() -> None:
    drawing = drawn(lab("42.1", "red", "x", "/opt/course/test_42_toy.py:9"))
    assert "commandlinker" not in drawing
    assert "Where /opt/course/test_42_toy.py:9" in words(drawing)


def test_the_marked_file_is_named_with_its_hash_and_the_time_it_was_saved() -> None:
    shown = words(drawn(lab("42.1", "green")))
    assert f"{AGENT}, sha256 abababababab, as it was saved at " in shown
    assert "What your editor has not saved does not count." in shown


def test_a_file_saved_again_meanwhile_is_said() -> None:
    assert "It has been saved again since" in words(drawn(lab("42.1", "green"), saved=None))


def test_the_headline_counts_what_is_required() -> None:
    every = verdict(lab("42.1", "green"), lab("42.2", "red", "x"), lab("42.3", "red", "y"))
    assert headline(CHECKPOINT, every) == "Checkpoint 42: 1 of 2 required labs are green."
    assert headline(CHECKPOINT, verdict(lab("42.3", "timed_out", "x"))) == "Lab 42.3 is timed out."
    assert headline(CHECKPOINT, verdict(lab("42.1", "green"), lab("42.3", "green"))) == (
        "Checkpoint 42: 2 of 2 labs are green."
    )


def test_with_every_lab_green_it_says_where_to_go() -> None:
    everything = drawn(*(lab(id, "green") for id in TITLES))
    assert "All labs are green. In a terminal, course shows what comes next." in words(everything)
    assert "Go on with the next lab, or run %mark for all of them." in words(drawn(lab("42.1", "green")))


def test_a_hint_says_its_level_and_sets_code_as_code() -> None:
    from msgspec.structs import replace

    hinted = replace(CHECKPOINT.labs[0], hints=("Use `a < b`.", "More."))
    assert words(hint(hinted, 1)) == "Hint 1 of 2 for lab 42.1 Use a < b ."
    assert "<code>a &lt; b</code>" in hint(hinted, 1)


def test_nothing_is_fetched_from_anywhere() -> None:
    everything = CSS + framed(drawn(lab("42.1", "red", "x", f"{AGENT}:7")))
    assert not re.search(r"https?:|//|url\(|@import|src=|href=", everything)
