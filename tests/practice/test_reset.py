"""Back to the starter, and never a byte lost on the way."""

from __future__ import annotations

from pathlib import Path

import desk
import pytest

from course.catalog import Checkpoint
from course.errors import CourseError
from course.practice import backups, progress, reset

MINE = desk.starter("42.1", "42.2").encode()


@pytest.fixture
def agent_py(folder: Path) -> Path:
    (folder / "agent.py").write_bytes(MINE)
    return folder / "agent.py"


def kept(folder: Path) -> list[dict[str, bytes]]:
    return [{path.name: path.read_bytes() for path in backup.files} for backup in backups.backups(folder)]


def test_what_differs_from_the_starter_is_backed_up_and_goes_back(
    checkpoint: Checkpoint, folder: Path, agent_py: Path
) -> None:
    (folder / checkpoint.notebook.name).write_text("my notes")
    done = reset.reset_all(checkpoint, folder)
    assert agent_py.read_bytes() == checkpoint.starter.read_bytes()
    assert (folder / checkpoint.notebook.name).read_bytes() == checkpoint.notebook.read_bytes()
    assert kept(folder) == [{"agent.py": MINE, checkpoint.notebook.name: b"my notes"}]
    assert {path.name for path in done.changed} == {"agent.py", checkpoint.notebook.name}


def test_two_in_a_row_keep_both(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    reset.reset_all(checkpoint, folder)
    agent_py.write_bytes(b"second")
    reset.reset_all(checkpoint, folder)
    assert kept(folder) == [{"agent.py": MINE}, {"agent.py": b"second"}]


def test_where_nothing_differs_nothing_is_done(checkpoint: Checkpoint, folder: Path) -> None:
    assert reset.reset_all(checkpoint, folder) == reset.Done((), None)
    assert backups.backups(folder) == []


def test_a_missing_file_is_laid_again(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    agent_py.unlink()
    reset.reset_all(checkpoint, folder)
    assert agent_py.read_bytes() == checkpoint.starter.read_bytes()


def test_where_nothing_is_laid_the_command_that_lays_is_named(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match=r"course practice 42"):
        reset.reset_all(checkpoint, tmp_path / "nowhere")


def test_files_of_the_learners_own_are_not_touched(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    (folder / "notes.txt").write_text("mine")
    reset.reset_all(checkpoint, folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_one_lab_goes_back_and_the_other_stays(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    done, back = reset.reset_lab(checkpoint, folder, checkpoint.find_lab("42.1"))
    assert agent_py.read_bytes() == desk.starter("42.2").encode()
    assert kept(folder) == [{"agent.py": MINE}]
    assert (done.changed, back.functions) == ((agent_py,), ("Counter.add",))


def test_a_byte_order_mark_stays(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    agent_py.write_bytes(b"\xef\xbb\xbf" + MINE)
    reset.reset_lab(checkpoint, folder, checkpoint.find_lab("42.1"))
    assert agent_py.read_bytes() == b"\xef\xbb\xbf" + desk.starter("42.2").encode()


@pytest.mark.parametrize("content", [b"\xff\xfe", b"def add(:", b"", None], ids=["bytes", "no Python", "empty", "none"])
def test_a_lab_that_cannot_be_put_back_changes_nothing(
    checkpoint: Checkpoint, folder: Path, agent_py: Path, content: bytes | None
) -> None:
    agent_py.unlink() if content is None else agent_py.write_bytes(content)
    with pytest.raises(CourseError, match=r"course (reset|practice) 42"):
        reset.reset_lab(checkpoint, folder, checkpoint.find_lab("42.1"))
    assert (agent_py.read_bytes() if agent_py.exists() else None) == content
    assert backups.backups(folder) == []


def test_a_backup_is_put_back_after_one_of_what_is_there(checkpoint: Checkpoint, folder: Path, agent_py: Path) -> None:
    reset.reset_all(checkpoint, folder)
    agent_py.write_bytes(b"newer")
    (first,) = backups.backups(folder)
    done = reset.restore(checkpoint, folder, first.name)
    assert agent_py.read_bytes() == MINE
    assert kept(folder) == [{"agent.py": MINE}, {"agent.py": b"newer"}]
    assert done.changed == (agent_py,)


def test_a_folder_that_cannot_be_written_says_where_the_backup_is(
    checkpoint: Checkpoint, folder: Path, agent_py: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reset, "replace_file", full)
    with pytest.raises(CourseError, match=r"No space left on device.*\.backups") as raised:
        reset.reset_all(checkpoint, folder)
    (backup,) = backups.backups(folder)
    assert str(backup.folder) in str(raised.value)
    assert agent_py.read_bytes() == MINE


def test_a_lab_that_was_put_back_is_the_next_again_and_was_green_all_the_same(
    checkpoint: Checkpoint, folder: Path, agent_py: Path
) -> None:
    progress.record(checkpoint, folder, desk.verdict("green", "green", "red"))
    reset.reset_lab(checkpoint, folder, checkpoint.find_lab("42.2"))
    found = progress.read(checkpoint, folder)
    assert found.is_green("42.2")
    assert progress.next_lab(checkpoint, found) == checkpoint.find_lab("42.2")
