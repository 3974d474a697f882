"""The verdicts of the watching are those of a marking on its own, and always of the newest save."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import desk
import psutil
import pytest
from msgspec.structs import replace

from course.catalog import Checkpoint
from course.errors import CannotMarkError, CourseError
from course.marking.mark import mark
from course.marking.verdict import Verdict
from course.practice import marker as module
from course.practice.marker import Marker

SAFETY = 60


class Marking:
    def __init__(self, marker: Marker, answers: SimpleQueue[Verdict | Exception]) -> None:
        self.marker = marker
        self._answers = answers

    def next(self) -> Verdict | Exception:
        return self._answers.get(timeout=SAFETY)

    def words(self) -> str:
        answer = self.next()
        assert isinstance(answer, Verdict)
        return " ".join(lab.verdict for lab in answer.labs)

    def rest(self) -> list[Verdict | Exception]:
        self.marker.stop()
        return [self._answers.get() for _ in range(self._answers.qsize())]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "temporary"


@pytest.fixture
def agent_py(folder: Path) -> Path:
    return folder / "agent.py"


@pytest.fixture
def marking(checkpoint: Checkpoint, agent_py: Path, temporary: Path) -> Iterator[Marking]:
    answers: SimpleQueue[Verdict | Exception] = SimpleQueue()
    marker = Marker(checkpoint, agent_py, answers.put)
    marker.start()
    yield Marking(marker, answers)
    marker.stop()
    assert list(temporary.iterdir()) == []
    assert [process for process in psutil.process_iter() if _is_inside(temporary, process)] == []


def _is_inside(folder: Path, process: psutil.Process) -> bool:
    try:
        inside = process.environ().get("IPYTHONDIR", "").startswith(str(folder))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def hanging(agent_py: Path) -> Callable[[], str]:
    """Save a file that hangs; the function given returns once it is being run."""
    began = agent_py.parent.parent / "began"
    os.mkfifo(began)
    agent_py.write_text(f"open({str(began)!r}, 'w').close()\nwhile True: pass\n")
    return began.read_text


SAMPLES = {
    "solved": desk.starter("42.1", "42.2", "42.3"),
    "half solved": desk.starter("42.1"),
    "starter": desk.starter(),
    "wrong": desk.starter("42.1", "42.2").replace("+= n", "-= n"),
    "raises at the top": "raise ValueError('[bold]\\x1b[31m')",
    "ends the process": "import os\nos._exit(0)",
    "empty": "",
}


def test_each_verdict_is_the_one_that_a_marking_on_its_own_gives(
    marking: Marking, checkpoint: Checkpoint, agent_py: Path
) -> None:
    for source in [*SAMPLES.values(), SAMPLES["solved"]]:
        agent_py.write_text(source)
        marking.marker.mark()
        answer = marking.next()
        assert isinstance(answer, Verdict)
        assert replace(answer, seconds=0) == replace(mark(checkpoint, agent_py), seconds=0)


def test_nothing_is_marked_unasked(marking: Marking) -> None:
    assert marking.rest() == []


def test_a_save_during_a_marking_is_marked_and_the_older_one_says_nothing(marking: Marking, agent_py: Path) -> None:
    wait_until_it_runs = hanging(agent_py)
    marking.marker.mark()
    wait_until_it_runs()
    agent_py.write_text(SAMPLES["solved"])
    marking.marker.mark()
    assert marking.words() == "green green green"
    assert marking.rest() == []


def test_asked_many_times_it_answers_for_the_last(marking: Marking, agent_py: Path) -> None:
    for number in range(20):
        agent_py.write_text(SAMPLES["solved"] if number == 19 else SAMPLES["starter"])
        marking.marker.mark()
    words = marking.words()
    while words != "green green green":
        words = marking.words()
    assert marking.rest() == []


def test_stopped_during_a_marking_it_leaves_nothing(marking: Marking, agent_py: Path) -> None:
    wait_until_it_runs = hanging(agent_py)
    marking.marker.mark()
    wait_until_it_runs()
    assert marking.rest() == []


def test_a_file_that_is_away_for_a_moment_is_waited_for(
    marking: Marking, agent_py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_py.write_text(SAMPLES["solved"])
    agent_py.rename(agent_py.with_name("away"))
    monkeypatch.setattr(module.time, "sleep", lambda seconds: agent_py.with_name("away").rename(agent_py))
    marking.marker.mark()
    assert marking.words() == "green green green"


def test_a_file_that_stays_away_is_told_and_marked_when_it_is_back(
    marking: Marking, agent_py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent_py.unlink()
    monkeypatch.setattr(module.time, "sleep", lambda seconds: None)
    marking.marker.mark()
    answer = marking.next()
    assert isinstance(answer, CourseError)
    assert "course practice 42" in str(answer)
    agent_py.write_text(SAMPLES["half solved"])
    marking.marker.mark()
    assert marking.words() == "green not_attempted not_attempted"


def test_a_course_that_cannot_be_marked_is_told_and_ends_nothing(
    marking: Marking, checkpoint: Checkpoint, agent_py: Path
) -> None:
    test = checkpoint.test.read_bytes()
    checkpoint.test.write_text("def (")
    marking.marker.mark()
    assert isinstance(marking.next(), CannotMarkError)
    checkpoint.test.write_bytes(test)
    agent_py.write_text(SAMPLES["solved"])
    marking.marker.mark()
    assert isinstance(marking.next(), Verdict)


def test_processes_that_cannot_be_started_are_told(
    checkpoint: Checkpoint, agent_py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(module, "Ready", none_left)
    answers: SimpleQueue[Verdict | Exception] = SimpleQueue()
    marker = Marker(checkpoint, agent_py, answers.put)
    marker.start()
    assert isinstance(answers.get(timeout=SAFETY), BlockingIOError)
    marker.stop()
