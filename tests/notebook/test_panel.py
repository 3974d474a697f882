"""The panel shows what marking found, and keeps nobody waiting while it marks."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import toy
from msgspec.structs import replace

from course.catalog import Lab
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, Word
from course.notebook import panel
from course.notebook.marker import Marker, Outcome, as_text
from course.notebook.panel import Panel
from course.practice import progress


class Script(Marker):
    """Gives one outcome after the other; `asked` says that it was called, and it waits for `release`."""

    def __init__(self, home: Path, *outcomes: Outcome) -> None:
        super().__init__(toy.lay(home), home, ["42.1"])
        self._left = list(outcomes)
        self._is_stopped = False
        self.asked, self.release = threading.Event(), threading.Event()
        self.release.set()
        self.threads: list[threading.Thread] = []

    async def mark(self) -> Outcome:
        with anyio.fail_after(20):
            while not self.release.is_set():
                await anyio.lowlevel.checkpoint()
        return self._left.pop(0)

    def mark_here(self) -> Outcome | None:
        self.threads.append(threading.current_thread())
        self.asked.set()
        assert self.release.wait(20)
        return None if self._is_stopped else self._left.pop(0)

    def stop(self) -> None:
        self._is_stopped = True
        self.release.set()


def outcome(word: Word) -> Outcome:
    message = None if word == "green" else "Expected: a count.\nCame: <b>none</b>"
    labs = (LabVerdict("42.1", "Count", word, 2, 1, message),)
    return Outcome(Verdict("42", word, Marked("/x/agent.py", "ab" * 32), labs, Versions("1", "3"), 1.0), "", 1.0)


class Shown:
    """What was displayed: the plain text that goes with each display and each update."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, str, str]] = []
        for name in ("display", "update_display"):
            monkeypatch.setattr(panel, name, self._recorder(name))

    def _recorder(self, name: str) -> Any:
        def record(shown: Panel, *, display_id: str) -> None:
            self.calls.append((name, display_id, shown._repr_mimebundle_()["text/plain"]))

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


@pytest.fixture
def clicked(tmp_path: Path, shown: Shown) -> Iterator[tuple[Panel, Script]]:
    """A panel that was red, and marks again since a click: it waits for `release`, or for `stop()`."""
    script = Script(tmp_path, outcome("red"), outcome("green"))
    drawn = Panel(script)
    drawn.mark_here()
    script.asked.clear()
    script.release.clear()
    shown.calls.clear()
    button(drawn, "Mark again").click()  # returns, though the marking waits
    assert script.asked.wait(20)
    yield drawn, script
    script.release.set()
    finish(script)


def finish(script: Script) -> None:
    """Wait until the threads of clicks have ended."""
    for thread in script.threads:
        if thread is not threading.main_thread():
            thread.join(20)


def test_a_click_marks_in_a_thread_of_its_own_and_what_was_found_is_old_meanwhile(
    clicked: tuple[Panel, Script],
) -> None:
    drawn, script = clicked
    assert "Marking agent.py …" in drawn._sheet.value
    assert "<progress" in drawn._sheet.value
    assert re.search(r'<div class="old"><p>Found before that:</p>.*42\.1', drawn._sheet.value)
    script.release.set()
    finish(script)
    assert "Lab 42.1 is green." in drawn._sheet.value
    assert 'class="old"' not in drawn._sheet.value
    assert "<progress" not in drawn._sheet.value
    assert button(drawn, "Mark again")
    assert script.threads[0] is threading.main_thread()
    assert [thread.name for thread in script.threads[1:]] == ["marking"]


def test_a_click_while_it_marks_stops_it_and_nothing_is_decided(clicked: tuple[Panel, Script]) -> None:
    drawn, script = clicked
    button(drawn, "Stop").click()
    finish(script)
    assert "The marking was stopped, and decided nothing." in drawn._sheet.value
    assert re.search(r'<div class="old"><p>Found before that:</p>.*42\.1', drawn._sheet.value)
    assert button(drawn, "Mark again")
    assert len(script.threads) == 2


def test_a_click_leaves_the_button_where_it_is_and_the_next_cell_stores_what_it_found(
    clicked: tuple[Panel, Script], shown: Shown
) -> None:
    drawn, script = clicked
    drawn.look()
    assert shown.calls == [], "a cell that is run meanwhile stores nothing"
    script.release.set()
    finish(script)
    assert shown.calls == [], "stored, it would be drawn anew, and the button would lose the focus"
    drawn.look()
    assert shown.calls == [
        ("update_display", "course-mark-42-42.1", as_text(drawn._marker.checkpoint, outcome("green")))
    ]
    drawn.look()
    assert len(shown.calls) == 1


def test_a_file_saved_since_makes_what_was_found_old_at_the_next_look(
    tmp_path: Path, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Panel(Script(tmp_path, outcome("red")))
    drawn.mark_here()
    for saved in (None, 1.0):
        monkeypatch.setattr(panel, "saved_at", lambda _, saved=saved: saved)
        drawn.look()
        is_old = saved is None
        assert ("agent.py has been saved since it was marked. Press Mark again." in drawn._sheet.value) is is_old
        assert ('class="old"' in drawn._sheet.value) is is_old
        assert ("Lab 42.1 is red." in drawn._sheet.value) is not is_old


def test_a_green_lab_names_the_one_that_is_left_in_the_kept_progress(tmp_path: Path, shown: Shown) -> None:
    for names, left in ((("42.1",), "lab 42.2"), (("42.1", "42.2"), "Lab 42.3")):
        labs = tuple(LabVerdict(name, "", "green", 1, 1) for name in names)
        found = outcome("green")
        assert found.verdict is not None
        drawn = Panel(Script(tmp_path, found))
        progress.record(drawn._marker.checkpoint, tmp_path, replace(found.verdict, labs=labs))
        drawn.mark_here()
        assert left in drawn._sheet.value


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
