"""The overlay: what lies in a practice folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from course import workspace as module
from course.catalog import Checkpoint, find_checkpoint
from course.errors import CourseError
from course.workspace import checkpoint_in, workspace


@pytest.fixture
def checkpoint() -> Checkpoint:
    return find_checkpoint("09")


def test_it_lays_notebook_test_and_the_given_agent(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "practice"
    laid = workspace(checkpoint, b"mine\r\n", folder)
    assert sorted(folder.iterdir()) == sorted(laid.written)
    assert laid.kept == ()
    assert (folder / "agent.py").read_bytes() == b"mine\r\n"
    assert (folder / checkpoint.notebook.name).read_bytes() == checkpoint.notebook.read_bytes()
    assert (folder / checkpoint.test.name).read_bytes() == checkpoint.test.read_bytes()


@pytest.mark.parametrize("content", [b"", b"\xff not text", b"half an answer"])
def test_it_never_writes_over_a_file_whatever_it_holds(checkpoint: Checkpoint, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agent.py").write_bytes(content)
    laid = workspace(checkpoint, b"new", tmp_path)
    assert laid.kept == (tmp_path / "agent.py",)
    assert (tmp_path / "agent.py").read_bytes() == content
    assert {path.name for path in laid.written} == {checkpoint.notebook.name, checkpoint.test.name}


def test_laying_again_writes_nothing(checkpoint: Checkpoint, tmp_path: Path) -> None:
    first = workspace(checkpoint, b"x", tmp_path)
    again = workspace(checkpoint, b"y", tmp_path)
    assert (again.written, again.kept) == ((), first.written)


def test_a_link_that_leads_nowhere_is_not_written_through(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "agent.py").symlink_to(tmp_path / "elsewhere.py")
    laid = workspace(checkpoint, b"x", tmp_path / "folder")
    assert laid.kept == (tmp_path / "folder" / "agent.py",)
    assert not (tmp_path / "elsewhere.py").exists()


def test_a_folder_of_another_checkpoint_is_refused_and_left_alone(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(checkpoint, id="10", slug="session_tree")
    monkeypatch.setattr(module, "checkpoints", lambda: {"09": checkpoint, "10": other})
    (tmp_path / other.notebook.name).write_text("theirs")
    with pytest.raises(CourseError, match=r"already holds checkpoint 10, .* `course practice 09 --into DIR`"):
        workspace(checkpoint, b"x", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [other.notebook.name]


def test_a_place_that_is_no_folder_is_told_with_the_way_out(checkpoint: Checkpoint, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CourseError, match=r"file cannot be written: .* Choose a folder of yours") as caught:
        workspace(checkpoint, b"x", tmp_path / "file")
    assert caught.value.exit_code == 2


def test_a_folder_knows_its_checkpoint_by_the_notebook_in_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    assert checkpoint_in(tmp_path) is None
    workspace(checkpoint, b"x", tmp_path)
    assert checkpoint_in(tmp_path) is checkpoint
