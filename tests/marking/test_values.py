"""Two values that are not equal are told where they differ, and no further."""

from __future__ import annotations

from typing import Any

import pytest

from course.marking.values import apart, without

LONG = "run_start message_accepted tool_call assistant_message tool_start tool_end turn_end text_delta run_end"
MANY = [f"message number {number}" for number in range(9)]


@pytest.mark.parametrize(
    ("came", "expected", "lines"),
    [
        (1, 2, ["came: 1 instead of 2"]),
        ("ing.", "Adding.", ["came: 'ing.' instead of 'Adding.'"]),
        ((1, "a"), (1, "b"), ["came: (1, 'a') instead of (1, 'b')"]),
        ({"text": LONG, "n": 1}, {"text": LONG, "n": 2}, ["came: n: 1 instead of 2"]),
        ({"text": LONG}, {"n": 2}, ["came: no 'n', which should be 2", f"'text', which should not be there: {LONG!r}"]),
        ((LONG, 1, 2), (LONG, 1, 3), ["came: item 2: 2 instead of 3"]),
        (
            LONG.replace(" tool_end", ""),
            LONG,
            ["came: (- is missing, + is too much)", "…", " tool_start", "-tool_end", " turn_end"],
        ),
        ([*MANY, "one more"], MANY, ["came: (- is missing, + is too much)", "…", " 'message number 8'", "+'one more'"]),
        ({LONG}, 2, [f"came: {{{LONG!r}}}", "instead of", "2"]),
    ],
)
def test_the_lines_show_the_difference_alone(came: Any, expected: Any, lines: list[str]) -> None:
    assert apart(came, expected) == lines


def test_a_value_that_cannot_be_shown_raises_what_it_raises() -> None:
    class Mute:
        def __repr__(self) -> str:
            raise KeyError

    with pytest.raises(KeyError):
        apart(Mute(), 1)


def test_texts_that_have_little_in_common_are_shown_whole() -> None:
    other = "AgentBusyError: " + "one run owns the transcript, so wait for it or steer it. " * 2
    assert apart(LONG, other) == [f"came: {LONG!r}", "instead of", repr(other)]


def test_a_text_that_lacks_something_is_shown_with_what_it_lacks() -> None:
    assert without("it was accepted", "AgentIdleError") == ["came: 'it was accepted', without 'AgentIdleError'"]
