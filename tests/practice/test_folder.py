"""The practice folder is found from where the learner stands."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from course.catalog import find_checkpoint
from course.errors import CourseError
from course.practice.folder import find_agent, named_folder, option, practice_folder, practice_home


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
    with pytest.raises(CourseError, match=r"first:\n  course practice 09$"):
        find_agent(checkpoint, practice_folder(checkpoint, tmp_path))
    with pytest.raises(CourseError, match=r"first:\n  course practice 09 --into 'some where'$"):
        find_agent(checkpoint, Path("some where"))


@pytest.mark.parametrize("below", ["", "09/notes/of mine", ".backups"])
def test_among_the_practice_folders_and_below_one_it_is_found(laid: Path, below: str) -> None:
    (laid / "agent.py").touch()
    start = laid.parent / below
    start.mkdir(parents=True, exist_ok=True)
    assert practice_folder(find_checkpoint("09"), start) == laid
    assert practice_home(start) == laid.parent


def test_a_folder_of_practice_folders_may_be_named(laid: Path) -> None:
    assert named_folder(find_checkpoint("09"), laid.parent) == laid
    assert named_folder(find_checkpoint("09"), laid) == laid


def test_the_option_is_typed_only_where_it_is_needed(laid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = find_checkpoint("09")
    monkeypatch.chdir(laid.parents[1])
    assert option(checkpoint, Path("practice/09")) == ""
    assert option(checkpoint, laid.parents[1] / "my lab") == " --in 'my lab'"


def a_folder(path: Path) -> None:
    path.mkdir()


def a_named_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_a_file_that_is_not_there(path: Path) -> None:
    path.symlink_to("nowhere")


@pytest.mark.parametrize("put", [a_folder, a_named_pipe, a_link_to_a_file_that_is_not_there])
def test_what_lies_there_and_is_no_file_is_named(laid: Path, put: Callable[[Path], None]) -> None:
    put(laid / "agent.py")
    with pytest.raises(CourseError, match=f"agent.py is {put.__name__.replace('_', ' ')}, not a file. Move it away"):
        find_agent(find_checkpoint("09"), laid)
