"""The panel shows what marking found, and keeps nobody waiting while it marks."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import toy

from course.catalog import Lab
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, Word
from course.notebook import panel
from course.notebook.marker import Marker, Outcome, as_text
from course.notebook.panel import Panel


class Script(Marker):
    """Gives one outcome after the other; `asked` says that it was called, and it waits for `release`."""

    def __init__(self, home: Path, *outcomes: Outcome) -> None:
        super().__init__(toy.lay(home), home, ["42.1"])
        self._left = list(outcomes)
        self.asked, self.release = threading.Event(), threading.Event()
        self.release.set()
        self.threads: list[threading.Thread] = []

    async def mark(self) -> Outcome:
        with anyio.fail_after(20):
            while not self.release.is_set():
                await anyio.lowlevel.checkpoint()
        return self._left.pop(0)

    def mark_here(self) -> Outcome:
        self.threads.append(threading.current_thread())
        self.asked.set()
        assert self.release.wait(20)
        return self._left.pop(0)


def outcome(word: Word) -> Outcome:
    message = None if word == "green" else "Expected: a count.\nCame: <b>none</b>"
    labs = (LabVerdict("42.1", "Count", word, 2, 1, message),)
    return Outcome(Verdict("42", word, Marked("/x/agent.py", "ab" * 32), labs, Versions("1", "3"), 1.0), "", 1.0)


class Shown:
    """What was displayed: the plain text that goes with each display and each update."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str, str]] = []
        self.updated = threading.Event()
        for name in ("display", "update_display"):
            monkeypatch.setattr(panel, name, self._recorder(name))

    def _recorder(self, name: str) -> Any:
        def record(shown: Panel, *, display_id: str) -> None:
            self.calls.append((name, display_id, shown._repr_mimebundle_()["text/plain"]))
            if name == "update_display":
                self.updated.set()

        return record


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    return Shown(monkeypatch)


def button(of: Panel, description: str) -> Any:
    return next(button for button in of.children[1].children if button.description == description)


def test_its_plain_text_is_what_the_command_prints(tmp_path: Path, shown: Shown) -> None:
    drawn = Panel(Script(tmp_path, outcome("red")))
    drawn.mark_here()
    bundle = drawn._repr_mimebundle_()
    assert bundle["text/plain"] == as_text(drawn._marker.checkpoint, outcome("red"))
    assert "application/vnd.jupyter.widget-view+json" in bundle
    assert shown.calls == [
        ("display", "course-mark-42-42.1", "Marking agent.py …"),
        ("update_display", "course-mark-42-42.1", bundle["text/plain"]),
    ]


def test_what_was_found_is_drawn_and_the_learners_markup_is_text(tmp_path: Path, shown: Shown) -> None:
    drawn = Panel(Script(tmp_path, outcome("red")))
    drawn.mark_here()
    html = drawn._sheet.value
    assert "Lab 42.1 is red." in html
    assert "&lt;b&gt;none&lt;/b&gt;" in html


def test_a_problem_is_said_and_is_no_verdict(tmp_path: Path, shown: Shown) -> None:
    drawn = Panel(Script(tmp_path, Outcome(None, "There is no <agent.py>.")))
    drawn.mark_here()
    assert "There is no verdict." in drawn._sheet.value
    assert "There is no &lt;agent.py&gt;." in drawn._sheet.value
    assert drawn._repr_mimebundle_()["text/plain"] == "There is no <agent.py>."


def test_a_click_marks_in_a_thread_of_its_own(tmp_path: Path, shown: Shown) -> None:
    script = Script(tmp_path, outcome("red"), outcome("green"))
    drawn = Panel(script)
    drawn.mark_here()
    script.asked.clear()
    script.release.clear()
    shown.updated.clear()
    button(drawn, "Mark again").click()  # returns, though the marking waits
    assert script.asked.wait(20)
    assert "Marking agent.py …" in drawn._sheet.value
    assert "42.1" in drawn._sheet.value, "what was found last stays in sight"
    button(drawn, "Marking …").click()  # one at a time: this one starts nothing
    script.release.set()
    assert shown.updated.wait(20)
    for thread in script.threads[1:]:
        thread.join(20)
    assert "Lab 42.1 is green." in drawn._sheet.value
    assert button(drawn, "Mark again")
    assert script.threads[0] is threading.main_thread()
    assert [thread.name for thread in script.threads[1:]] == ["marking"]


@pytest.mark.anyio
async def test_an_interrupted_marking_says_that_it_decided_nothing(tmp_path: Path, shown: Shown) -> None:
    script = Script(tmp_path)
    script.release.clear()
    drawn = Panel(script)
    async with anyio.create_task_group() as group:
        group.start_soon(drawn.mark)
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    assert "The marking was interrupted, and decided nothing." in drawn._sheet.value
    assert shown.calls[-1][2] == "The marking was interrupted, and decided nothing."
    assert button(drawn, "Mark again")


def test_hints_are_offered_for_the_first_lab_that_is_not_green(tmp_path: Path, shown: Shown) -> None:
    lab = Lab("42.1", "Count", 2, hints=("a", "b", "c"))
    script = Script(tmp_path, outcome("not_attempted"), outcome("green"))
    script.checkpoint = toy.lay(tmp_path, labs=(lab, *toy.CHECKPOINT.labs[1:]))
    drawn = Panel(script)
    drawn.mark_here()
    hint = button(drawn, "Hint 1 of 3 for lab 42.1")
    assert hint.layout.display != "none"
    drawn.mark_here()
    assert hint.layout.display == "none"
