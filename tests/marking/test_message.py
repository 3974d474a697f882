"""What a learner reads says what was expected, what came and why, and nothing that changes by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.marking import message
from course.marking.steps import Fault, Frame


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07", "red link"),
        ("a\r\nb\tc\x00\x9b", "a\nb\tc"),
        ("<object at 0x7f3a12345678>", "<object at 0x…>"),
        ("/tmp/course-1/test_42.py:3 in /tmp/course-1", "test_42.py:3 in ."),
        ("[bold]kept[/bold]", "[bold]kept[/bold]"),
    ],
)
def test_a_clean_text_is_plain_and_repeatable(text: str, clean: str) -> None:
    assert message.clean(text, Path("/tmp/course-1")) == clean


@pytest.mark.parametrize(
    ("kind", "text", "came", "why"),
    [
        ("AssertionError", "so it is\nassert 1 == 2", "assert 1 == 2", "so it is"),
        ("AssertionError", "assert 1 == 2\n  + where", "assert 1 == 2\n  + where", ""),
        ("AssertionError", "", "an assert without a text failed", ""),
        ("Failed", "DID NOT RAISE <class 'course.agent.errors.AgentBusyError'>", "no AgentBusyError was raised", ""),
        ("KeyError", "'a'", "KeyError: 'a'", ""),
        ("KeyError", "", "KeyError", ""),
    ],
)
def test_what_came_and_why_it_matters_are_told_apart(kind: str, text: str, came: str, why: str) -> None:
    assert message.came_and_why(Fault(kind, text)) == (came, why)


def test_the_call_chain_is_shown_from_the_learners_own_code() -> None:
    mine = tuple(Frame("/a/agent.py", line, name) for line, name in ((1, "prompt"), (2, "_start")))
    assert "Called: agent.py:1 in prompt → agent.py:2 in _start" in message.for_fault("x", Fault("E", "", mine=mine))


def test_long_texts_are_cut_and_say_so() -> None:
    text = message.for_fault("x", Fault("E", "\n".join(str(line) for line in range(99))))
    assert "… and 88 more lines" in text
    assert len(text.splitlines()) < 20


def test_a_difference_begins_at_the_first_line_that_differs() -> None:
    text = message.difference("cell 2 of lab 42.1", "stdout", "1\n2\n3\n4\n", "1\n2\nX\n4\n")
    assert text.splitlines()[1:] == ["Stored: 2", "  3", "  4", "Came: 2", "  X", "  4"]
