"""Back to the starter, after a backup: all of a practice folder, or one lab's functions in agent.py."""

from __future__ import annotations

from pathlib import Path

import msgspec

from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.practice import backups, progress
from course.practice.backups import Backup
from course.practice.lab_code import PutBack, put_back
from course.practice.safe_file import replace_file
from course.workspace import overlay


class Done(msgspec.Struct, frozen=True):
    """The files that were changed, and the backup made before; None when there was nothing to keep."""

    changed: tuple[Path, ...]
    backup: Backup | None


def reset_all(checkpoint: Checkpoint, folder: Path) -> Done:
    """Notebook, test and agent.py as `course practice` lays them, where they are not so already.

    Raises CourseError when nothing is laid there, or it cannot be backed up or written.
    """
    files = overlay(checkpoint, checkpoint.starter.read_bytes())
    _check_laid(checkpoint, folder)
    done = _replace(folder, files)
    _forget(checkpoint, folder, [lab.id for lab in checkpoint.labs])
    return done


def reset_lab(checkpoint: Checkpoint, folder: Path, lab: Lab) -> tuple[Done, PutBack]:
    """agent.py with the starter's version of the functions that hold the lab's code, and nothing else changed.

    Raises CourseError where the learner's file does not allow it, and as `reset_all` does.
    """
    _check_laid(checkpoint, folder)
    text = _read(checkpoint, folder / "agent.py")
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    back = put_back(checkpoint, lab, text.removeprefix(mark))
    done = _replace(folder, {"agent.py": (mark + back.text).encode("utf-8")})
    _forget(checkpoint, folder, [lab.id, *back.others])
    return done, back


def restore(checkpoint: Checkpoint, folder: Path, name: str) -> Done:
    """The files as a backup has them, after a backup of what is there now. Raises CourseError as `reset_all` does."""
    backup = backups.find_backup(folder, name)
    return _replace(folder, {path.name: path.read_bytes() for path in backup.files})


def _replace(folder: Path, files: dict[str, bytes]) -> Done:
    """Back up what would be lost, then write."""
    differing = {name: content for name, content in files.items() if _content(folder / name) != content}
    backup = backups.back_up(folder, differing)
    try:
        for name, content in differing.items():
            replace_file(folder / name, content)
    except OSError as error:
        kept = f" What was there is in {backup.folder}." if backup else ""
        raise CourseError(f"{folder} cannot be written: {error.strerror or error}.{kept}") from error
    return Done(tuple(folder / name for name in differing), backup)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _check_laid(checkpoint: Checkpoint, folder: Path) -> None:
    if not any((folder / name).exists() for name in ("agent.py", checkpoint.notebook.name)):
        raise CourseError(f"Nothing is laid in {folder}. Lay it there first: course practice {checkpoint.id}")


def _read(checkpoint: Checkpoint, agent_py: Path) -> str:
    try:
        return agent_py.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise CourseError(f"There is no {agent_py}. Lay it again: course practice {checkpoint.id}") from error
    except UnicodeDecodeError as error:
        raise CourseError(
            f"{agent_py} is not UTF-8, so one lab alone cannot be put back. Save it as UTF-8, or put the whole file "
            f"back, with a backup of yours: course reset {checkpoint.id}"
        ) from error


def _forget(checkpoint: Checkpoint, folder: Path, labs: list[str]) -> None:
    """The labs count as not attempted from now on; that they were green once stays."""
    progress.record_reset(checkpoint, folder, labs)
