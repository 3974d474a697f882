"""Backups are whole, have names of their own, and are found again."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path

import pytest

from course.errors import CourseError
from course.practice import backups

NOW = datetime(2026, 1, 31, 18, 0, 5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "practice" / "42"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_bytes(b"mine\r\n\xff")
    (folder / "notes.txt").write_text("not asked for")
    return folder


def test_one_holds_the_bytes_of_the_files_that_are_there(folder: Path) -> None:
    made = backups.back_up(folder, ["agent.py", "missing.py"], NOW)
    assert made is not None
    assert made.folder == folder.parent / ".backups" / "42" / "2026-01-31_18-00-05"
    assert [(path.name, path.read_bytes()) for path in made.files] == [("agent.py", b"mine\r\n\xff")]


def test_two_in_one_second_do_not_collide_and_stand_in_their_order(folder: Path) -> None:
    made = [backups.back_up(folder, ["agent.py"], NOW) for _ in range(12)]
    assert len({one.name for one in made if one}) == 12
    assert backups.backups(folder) == made


def test_where_there_is_nothing_to_keep_none_is_made(folder: Path) -> None:
    assert backups.back_up(folder, ["missing.py"]) is None
    assert backups.backups(folder) == []


def test_one_that_cannot_be_made_says_so_and_leaves_no_part(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", full)
    with pytest.raises(CourseError, match=r"No space left on device. Nothing was changed"):
        backups.back_up(folder, ["agent.py"])
    assert backups.backups(folder) == []


def test_one_is_found_by_its_name_or_by_how_that_begins(folder: Path) -> None:
    early = backups.back_up(folder, ["agent.py"], NOW)
    late = backups.back_up(folder, ["agent.py"], NOW.replace(hour=19))
    assert early is not None
    assert backups.find_backup(folder, early.name) == early
    assert backups.find_backup(folder, "2026-01-31_19") == late


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("2026", "2 backups begin with '2026'. There are:"),
        ("x", "There is no backup 'x'. There are:"),
        ("", "There is no backup ''"),
    ],
)
def test_a_name_that_fits_none_or_several_is_answered_with_those_there_are(folder: Path, name: str, says: str) -> None:
    made = [backups.back_up(folder, ["agent.py"], NOW.replace(hour=hour)) for hour in (18, 19)]
    with pytest.raises(CourseError, match=says) as raised:
        backups.find_backup(folder, name)
    assert all(one.name in str(raised.value) for one in made if one)


def test_a_name_that_is_a_whole_one_is_that_one_though_others_begin_so(folder: Path) -> None:
    first, _ = (backups.back_up(folder, ["agent.py"], NOW) for _ in range(2))
    assert first is not None
    assert backups.find_backup(folder, first.name) == first


def test_where_there_is_none_yet_that_is_said(folder: Path) -> None:
    with pytest.raises(CourseError, match="There are no backups"):
        backups.find_backup(folder, "2026")
