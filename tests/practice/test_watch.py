"""What saves, verdicts and keys do to the watching."""

from __future__ import annotations

from pathlib import Path

import desk
import pytest
from msgspec.structs import replace

from course.catalog import Checkpoint
from course.errors import CannotMarkError
from course.marking.verdict import Verdict
from course.practice import progress
from course.practice.watch import View, Watch

NOTHING = desk.verdict("not_attempted", "not_run", "not_run")
FIRST = desk.verdict("green", "red", "not_attempted")
SECOND = desk.verdict("green", "green", "not_attempted")
ALL = desk.verdict("green", "green", "green")


class Drawn:
    """Keeps every view."""

    def __init__(self) -> None:
        self.views: list[View] = []

    def draw(self, view: View) -> None:
        self.views.append(view)


@pytest.fixture
def drawn() -> Drawn:
    return Drawn()


@pytest.fixture
def watch(checkpoint: Checkpoint, folder: Path, drawn: Drawn) -> Watch:
    return Watch(checkpoint, folder, drawn)


def shown(watch: Watch) -> str:
    assert watch.view.shown is not None
    return watch.view.shown.lab


def marked(watch: Watch, *verdicts: Verdict) -> Watch:
    for verdict in verdicts:
        watch.saved()
        watch.marked(verdict)
    return watch


def test_each_event_is_drawn(watch: Watch, drawn: Drawn) -> None:
    marked(watch, NOTHING)
    assert [view.is_marking for view in drawn.views] == [True, False]


@pytest.mark.parametrize(
    ("verdict", "lab"),
    [(NOTHING, "42.1"), (FIRST, "42.2"), (SECOND, "42.3"), (ALL, "42.3")],
    ids=lambda value: str(value)[:4],
)
def test_at_first_the_lab_to_go_on_with_is_shown(watch: Watch, verdict: Verdict, lab: str) -> None:
    assert shown(marked(watch, verdict)) == lab


def test_a_lab_that_has_turned_green_stays_until_n(watch: Watch) -> None:
    marked(watch, NOTHING, FIRST)
    assert shown(watch) == "42.1"
    watch.pressed("n")
    assert shown(watch) == "42.2"


def test_n_goes_on_only_when_the_lab_is_green(watch: Watch) -> None:
    marked(watch, FIRST).pressed("n")
    assert shown(watch) == "42.2"
    assert watch.view.note == "Lab 42.2 is not green yet. n goes on once it is."


def test_n_leaves_out_labs_that_are_green_already_and_takes_optional_ones_last(watch: Watch) -> None:
    marked(watch, NOTHING, SECOND).pressed("n")
    assert shown(watch) == "42.3"


def test_when_all_are_green_n_stays(watch: Watch) -> None:
    marked(watch, ALL).pressed("n")
    assert (shown(watch), watch.view.next) == ("42.3", None)


def test_an_earlier_lab_that_is_lost_is_shown_first(watch: Watch) -> None:
    marked(watch, FIRST, desk.verdict("red", "not_run", "not_run"))
    assert shown(watch) == "42.1"
    watch.pressed("n")
    assert "42.1 is not green" in watch.view.note


def test_l_shows_the_list_and_then_the_lab_again_and_the_list_stays_over_a_save(watch: Watch) -> None:
    marked(watch, NOTHING).pressed("l")
    assert watch.view.page == "list"
    assert marked(watch, FIRST).view.page == "list"
    watch.pressed("l")
    assert watch.view.page == "lab"


def test_h_shows_one_hint_more_each_time_and_asks_before_the_last(watch: Watch, checkpoint: Checkpoint) -> None:
    marked(watch, NOTHING)
    levels = []
    for _ in range(5):
        watch.pressed("h")
        levels.append((watch.view.hints.level if watch.view.hints else 0, "press h again" in watch.view.note))
    assert levels == [(1, False), (2, False), (2, True), (3, False), (3, False)]
    assert progress.read(checkpoint, watch.view.agent_py.parent).hints == {"42.1": 3}


def test_another_key_takes_the_question_back(watch: Watch) -> None:
    marked(watch, NOTHING)
    for key in "hhhlh":
        watch.pressed(key)
    assert watch.view.hints is not None
    assert watch.view.hints.level == 2
    assert "press h again" in watch.view.note


def test_a_verdict_takes_the_place_of_a_hint(watch: Watch) -> None:
    marked(watch, NOTHING).pressed("h")
    assert watch.view.page == "hints"
    assert marked(watch, FIRST).view.page == "lab"


def test_a_lab_without_hints_says_so(watch: Watch) -> None:
    marked(watch, FIRST).pressed("h")
    assert "Lab 42.2 has no hints" in watch.view.note


@pytest.mark.parametrize("key", ["h", "n", "l", "x", " ", "ß"])
def test_before_the_first_verdict_any_key_is_harmless(watch: Watch, key: str) -> None:
    assert watch.pressed(key)


def test_q_ends_it_in_either_case(watch: Watch) -> None:
    assert not watch.pressed("q")
    assert not watch.pressed("Q")


def test_each_verdict_is_kept_as_progress(watch: Watch, checkpoint: Checkpoint, folder: Path) -> None:
    marked(watch, FIRST)
    assert progress.read(checkpoint, folder).is_green("42.1")


def test_outside_of_a_practice_folder_nothing_is_written(checkpoint: Checkpoint, tmp_path: Path, drawn: Drawn) -> None:
    watch = Watch(checkpoint, tmp_path / "elsewhere", drawn)
    (tmp_path / "elsewhere").mkdir()
    marked(watch, NOTHING).pressed("h")
    assert watch.view.page == "hints"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_progress_that_cannot_be_kept_is_told_beside_the_verdict(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress, "replace_file", full)
    marked(watch, FIRST)
    assert watch.view.note == "Your progress could not be kept: No space left on device."
    assert watch.view.verdict == FIRST


def test_what_prevents_a_verdict_is_told_and_the_last_one_stays(watch: Watch) -> None:
    marked(watch, FIRST).failed(CannotMarkError("The course's own test cannot be read."))
    assert (watch.view.note, watch.view.verdict) == ("The course's own test cannot be read.", FIRST)


def test_a_file_that_is_gone_is_told_until_it_is_back(watch: Watch) -> None:
    marked(watch, FIRST).gone()
    for key in "hblx":
        watch.pressed(key)
        assert "course practice 42" in str(watch.view.gone)
    watch.saved()
    assert watch.view.gone is None


def broken() -> Verdict:
    """What is said of a file that cannot be imported."""
    first, *rest = desk.verdict("red", "not_run", "not_run").labs
    others = [replace(lab, message="agent.py could not be imported, so no test ran. See lab 42.1.") for lab in rest]
    return replace(NOTHING, labs=(first, *others), verdict="red")


def test_a_file_that_cannot_be_imported_leads_away_from_no_lab(watch: Watch) -> None:
    marked(watch, SECOND, broken())
    assert watch.view.broken is not None
    assert shown(watch) == "42.3"
    marked(watch, broken(), ALL)
    assert (shown(watch), watch.view.before) == ("42.3", SECOND)


def test_a_file_that_cannot_be_imported_at_first_chooses_no_lab(watch: Watch) -> None:
    marked(watch, broken(), SECOND)
    assert shown(watch) == "42.3"


def test_b_goes_back_to_the_lab(watch: Watch) -> None:
    for key in "hl":
        marked(watch, NOTHING).pressed(key)
        watch.pressed("b")
        assert watch.view.page == "lab"


def test_a_hint_knows_that_its_lab_is_green_though_nothing_is_kept(
    checkpoint: Checkpoint, tmp_path: Path, drawn: Drawn
) -> None:
    watch = marked(Watch(checkpoint, tmp_path, drawn), NOTHING, FIRST)
    watch.pressed("h")
    assert watch.view.hints is not None
    assert watch.view.hints.is_green


def test_the_lab_that_was_asked_for_is_shown_once_those_before_it_are_green(
    checkpoint: Checkpoint, folder: Path, drawn: Drawn
) -> None:
    watch = Watch(checkpoint, folder, drawn, lab="42.2")
    assert shown(marked(watch, NOTHING)) == "42.1"
    assert shown(marked(watch, SECOND)) == "42.2"


def test_asked_to_it_draws_the_same_again(watch: Watch, drawn: Drawn) -> None:
    marked(watch, FIRST).redraw()
    assert drawn.views[-1] == drawn.views[-2]
