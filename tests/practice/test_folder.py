"""The practice folder is found from where the learner stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.catalog import find_checkpoint
from course.errors import CourseError
from course.practice.folder import find_agent, practice_folder, practice_home


@pytest.fixture
def laid(tmp_path: Path) -> Path:
    """A folder that holds checkpoint 09, as far as can be seen from its notebook's name."""
    folder = tmp_path / "practice" / "09"
    folder.mkdir(parents=True)
    (folder / find_checkpoint("09").notebook.name).write_text("{}")
    return folder


def test_from_above_it_lies_in_practice(tmp_path: Path) -> None:
    assert practice_folder(find_checkpoint("09"), tmp_path) == tmp_path / "practice" / "09"


def test_inside_it_it_is_where_one_stands(laid: Path) -> None:
    assert practice_folder(find_checkpoint("09"), laid) == laid
    assert practice_home(laid) == laid.parent


def test_without_a_file_the_command_that_lays_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint = find_checkpoint("09")
    with pytest.raises(CourseError, match=r"first: course practice 09$"):
        find_agent(checkpoint, practice_folder(checkpoint, tmp_path))
    with pytest.raises(CourseError, match=r"first: course practice 09 --into elsewhere$"):
        find_agent(checkpoint, Path("elsewhere"))
