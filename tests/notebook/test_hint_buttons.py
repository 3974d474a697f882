"""Hints come one at a time, and the last only to one who asks twice."""

from __future__ import annotations

import re

from course.catalog import Lab
from course.notebook.hints import Hints

LAB = Lab("9.1", "Count", 2, hints=("one", "two", "three"))
OTHER = Lab("9.2", "Wait", 2, hints=("first", "second", "third"))


def shown(hints: Hints) -> list[str]:
    return re.findall(r"<br>(.*?)</p>", hints.value)


def buttons(hints: Hints) -> list[str]:
    return [button.description for button in hints.buttons if button.layout.display != "none"]


def click(hints: Hints, description: str) -> None:
    next(button for button in hints.buttons if button.description == description).click()


def test_one_click_is_one_hint() -> None:
    hints = Hints()
    hints.offer(LAB)
    assert buttons(hints) == ["Hint 1 of 3 for lab 9.1"]
    click(hints, "Hint 1 of 3 for lab 9.1")
    assert shown(hints) == ["one"]
    assert buttons(hints) == ["Hint 2 of 3 for lab 9.1"]


def up_to_the_last() -> Hints:
    hints = Hints()
    hints.offer(LAB)
    for level in (1, 2, 3):
        click(hints, f"Hint {level} of 3 for lab 9.1")
    return hints


def test_the_last_hint_asks_first() -> None:
    hints = up_to_the_last()
    assert shown(hints) == ["one", "two"]
    assert "close to the answer" in hints.value
    assert buttons(hints) == ["Show it", "Not yet"]
    click(hints, "Show it")
    assert shown(hints) == ["one", "two", "three"]
    assert buttons(hints) == []


def test_not_yet_takes_the_question_back() -> None:
    hints = up_to_the_last()
    click(hints, "Not yet")
    assert "close to the answer" not in hints.value
    assert buttons(hints) == ["Hint 3 of 3 for lab 9.1"]
    click(hints, "Hint 3 of 3 for lab 9.1")
    assert shown(hints) == ["one", "two"], "it asks again"


def test_each_lab_has_its_own_hints_and_keeps_what_was_shown() -> None:
    hints = up_to_the_last()
    hints.offer(OTHER)
    assert shown(hints) == []
    assert buttons(hints) == ["Hint 1 of 3 for lab 9.2"]
    hints.offer(LAB)
    assert shown(hints) == ["one", "two"]
    assert buttons(hints) == ["Hint 3 of 3 for lab 9.1"], "a question asked of another lab is not answered here"


def test_nothing_is_offered_where_there_is_nothing() -> None:
    hints = Hints()
    for lab in (None, Lab("9.3", "Bare", 2)):
        hints.offer(lab)
        assert hints.value == ""
        assert buttons(hints) == []
