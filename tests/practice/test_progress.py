"""Progress is kept, only ever grows, and survives whatever happens to the process that writes it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import toy

from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, Word
from course.practice import progress


def verdict(sha256: str = "first", **labs: Word) -> Verdict:
    judged = tuple(LabVerdict(f"42.{id[-1]}", "", word, 0, 0) for id, word in labs.items())
    return Verdict("42", "red", Marked("agent.py", sha256), judged, Versions("", ""), 0.0)


def test_where_nothing_was_marked_there_is_no_progress(tmp_path: Path) -> None:
    assert progress.read(toy.CHECKPOINT, tmp_path).labs == {}


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    recorded = progress.record(toy.CHECKPOINT, tmp_path, verdict(lab1="green", lab2="red"))
    assert progress.read(toy.CHECKPOINT, tmp_path) == recorded
    assert recorded.is_green("42.1")
    assert not recorded.is_green("42.2")
    assert not recorded.is_green("42.3")


def test_a_green_lab_stays_green_with_the_file_that_earned_it(tmp_path: Path) -> None:
    progress.record(toy.CHECKPOINT, tmp_path, verdict("good", lab1="green"))
    after = progress.record(toy.CHECKPOINT, tmp_path, verdict("bad", lab1="crashed"))
    assert after.labs["42.1"] == progress.LabProgress("green", "good", "crashed")


def test_labs_that_were_not_marked_keep_what_they_had(tmp_path: Path) -> None:
    progress.record(toy.CHECKPOINT, tmp_path, verdict(lab1="green"))
    assert set(progress.record(toy.CHECKPOINT, tmp_path, verdict(lab2="red")).labs) == {"42.1", "42.2"}


def test_what_could_not_be_marked_changes_nothing(tmp_path: Path) -> None:
    before = progress.record(toy.CHECKPOINT, tmp_path, verdict(lab1="green"))
    assert progress.record(toy.CHECKPOINT, tmp_path, verdict("other", lab1="error")) == before


def test_the_next_lab_is_the_first_that_is_not_green_now_and_optional_ones_come_last() -> None:
    empty = progress.Progress("42")
    done = progress.add(empty, verdict(lab1="green", lab2="green"))
    lost = progress.add(done, verdict(lab1="red"))
    every = progress.add(done, verdict(lab3="green"))
    found = [progress.next_lab(toy.CHECKPOINT, one) for one in (empty, done, lost, every)]
    assert [lab and lab.id for lab in found] == ["42.1", "42.3", "42.1", None]


def test_a_file_that_cannot_be_read_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    (tmp_path / progress.FILE).write_text('{"checkpoint": "42", "la')
    assert progress.read(toy.CHECKPOINT, tmp_path).labs == {}
    progress.record(toy.CHECKPOINT, tmp_path, verdict(lab1="green"))
    assert progress.read(toy.CHECKPOINT, tmp_path).is_green("42.1")
    assert (tmp_path / f"{progress.FILE}.unreadable").read_text() == '{"checkpoint": "42", "la'


def test_a_write_that_fails_leaves_the_old_progress_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = progress.record(toy.CHECKPOINT, tmp_path, verdict(lab1="green"))
    files = sorted(tmp_path.iterdir())

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            progress.record(toy.CHECKPOINT, tmp_path, verdict(lab2="green"))
    assert progress.read(toy.CHECKPOINT, tmp_path) == before
    assert sorted(tmp_path.iterdir()) == files


def test_two_markings_at_once_lose_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[3:]\n"
        "from pathlib import Path\nimport toy\nfrom test_progress import verdict\n"
        "from course.practice import progress\n"
        "for _ in range(20): progress.record(toy.CHECKPOINT, Path(sys.argv[1]), verdict(**{sys.argv[2]: 'green'}))"
    )
    here = Path(__file__)
    paths = [str(here.parents[2]), str(here.parents[1]), str(here.parent)]
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), lab, *paths]) for lab in ("lab1", "lab2", "lab3")
    ]
    assert [process.wait(timeout=60) for process in running] == [0, 0, 0]
    found = progress.read(toy.CHECKPOINT, tmp_path)
    assert all(found.is_green(id) for id in ("42.1", "42.2", "42.3"))
