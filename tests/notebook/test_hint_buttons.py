"""Hints come one at a time, and the last only to one who asks twice; `course hint` counts the same ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import toy
from ipywidgets import Button

from course.catalog import Lab
from course.notebook.hints import Hints
from course.practice import progress

LAB = Lab("9.1", "Count", 2, hints=("one", "two", "three"))
OTHER = Lab("9.2", "Wait", 2, hints=("first", "second", "third"))


@pytest.fixture
def hints(tmp_path: Path) -> Hints:
    return Hints(toy.CHECKPOINT, tmp_path, Button(description="Mark again"))


@pytest.fixture
def focused(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What had the focus, one after the other."""
    descriptions: list[str] = []
    monkeypatch.setattr(Button, "focus", lambda self: descriptions.append(self.description))
    return descriptions


def shown(hints: Hints) -> list[str]:
    return re.findall(r"<br>(.*?)</p>", hints.value)


def buttons(hints: Hints) -> list[str]:
    return [button.description for button in hints.buttons if button.layout.display != "none"]


def click(hints: Hints, description: str) -> None:
    next(button for button in hints.buttons if button.description == description).click()


def test_one_click_is_one_hint(hints: Hints) -> None:
    hints.offer(LAB)
    assert buttons(hints) == ["Hint 1 of 3 for lab 9.1"]
    click(hints, "Hint 1 of 3 for lab 9.1")
    assert shown(hints) == ["one"]
    assert buttons(hints) == ["Hint 2 of 3 for lab 9.1"]


def up_to_the_last(hints: Hints) -> None:
    hints.offer(LAB)
    for level in (1, 2, 3):
        click(hints, f"Hint {level} of 3 for lab 9.1")


def test_the_last_hint_asks_first(hints: Hints) -> None:
    up_to_the_last(hints)
    assert shown(hints) == ["one", "two"]
    assert "nearly gives the code away" in hints.value
    assert buttons(hints) == ["Show it", "Not yet"]
    click(hints, "Show it")
    assert shown(hints) == ["one", "two", "three"]
    assert buttons(hints) == []


def test_not_yet_takes_the_question_back(hints: Hints) -> None:
    up_to_the_last(hints)
    click(hints, "Not yet")
    assert "nearly gives the code away" not in hints.value
    assert buttons(hints) == ["Hint 3 of 3 for lab 9.1"]
    click(hints, "Hint 3 of 3 for lab 9.1")
    assert shown(hints) == ["one", "two"], "it asks again"


def test_who_only_presses_enter_is_asked_again_and_never_shown_the_last_hint(hints: Hints, focused: list[str]) -> None:
    hints.offer(LAB)
    click(hints, "Hint 1 of 3 for lab 9.1")
    for _ in range(5):
        click(hints, focused[-1])
    assert focused[:4] == ["Hint 2 of 3 for lab 9.1", "Hint 3 of 3 for lab 9.1", "Not yet", "Hint 3 of 3 for lab 9.1"]
    assert shown(hints) == ["one", "two"]


def test_after_the_last_hint_the_focus_is_on_what_is_left_to_press(hints: Hints, focused: list[str]) -> None:
    up_to_the_last(hints)
    click(hints, "Show it")
    assert focused[-1] == "Mark again"


def test_each_lab_has_its_own_hints_and_keeps_what_was_shown(hints: Hints) -> None:
    up_to_the_last(hints)
    hints.offer(OTHER)
    assert shown(hints) == []
    assert buttons(hints) == ["Hint 1 of 3 for lab 9.2"]
    hints.offer(LAB)
    assert shown(hints) == ["one", "two"]
    assert buttons(hints) == ["Hint 3 of 3 for lab 9.1"], "a question asked of another lab is not answered here"


def test_nothing_is_offered_where_there_is_nothing(hints: Hints) -> None:
    for lab in (None, Lab("9.3", "Bare", 2)):
        hints.offer(lab)
        assert hints.value == ""
        assert buttons(hints) == []


def test_a_hint_shown_by_the_command_is_there_already_and_the_next_one_follows(hints: Hints, tmp_path: Path) -> None:
    progress.record_hint(toy.CHECKPOINT, tmp_path, "9.1", 1)
    hints.offer(LAB)
    assert shown(hints) == ["one"]
    click(hints, "Hint 2 of 3 for lab 9.1")
    assert progress.read(toy.CHECKPOINT, tmp_path).hints == {"9.1": 2}


def test_where_nothing_can_be_kept_hints_are_shown_all_the_same(tmp_path: Path) -> None:
    hints = Hints(toy.CHECKPOINT, tmp_path / "missing", Button())
    hints.offer(LAB)
    click(hints, "Hint 1 of 3 for lab 9.1")
    click(hints, "Hint 2 of 3 for lab 9.1")
    assert shown(hints) == ["one", "two"]
