"""Dated copies of a practice folder's files, beside the practice folders: practice/.backups/09/2026-01-31_18-00-00."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from course.errors import CourseError


class Backup(msgspec.Struct, frozen=True):
    """One of them. Its name is the local time at which it was made."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(sorted(path for path in self.folder.iterdir() if path.is_file()))


def home(folder: Path) -> Path:
    """Where the backups of this practice folder lie."""
    folder = folder.resolve()
    return folder.parent / ".backups" / folder.name


def back_up(folder: Path, names: Iterable[str], now: datetime | None = None) -> Backup | None:
    """Copy those of the named files that are in `folder`, and give the copy; None when there are none of them.

    Two in one second get different names. Raises CourseError when a copy cannot be made; a part of one is not kept.
    """
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        return None
    stamp = (now or datetime.now()).strftime("%Y-%m-%d_%H-%M-%S")
    try:
        backup = Backup(_new_folder(home(folder), stamp))
        try:
            for path in found:
                shutil.copy2(path, backup.folder / path.name)
        except BaseException:
            shutil.rmtree(backup.folder, ignore_errors=True)
            raise
    except OSError as error:
        raise CourseError(
            f"No backup could be made in {home(folder)}: {error.strerror or error}. Nothing was changed. "
            "Make room or make that folder writable, then try again."
        ) from error
    return backup


def _new_folder(home: Path, stamp: str) -> Path:
    home.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = home / (stamp if number == 1 else f"{stamp}_{number:02}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError


def backups(folder: Path) -> list[Backup]:
    """The backups of this practice folder, oldest first."""
    if not home(folder).is_dir():
        return []
    return [Backup(path) for path in sorted(home(folder).iterdir()) if path.is_dir()]


def find_backup(folder: Path, name: str) -> Backup:
    """The backup of that name, or the one whose name alone begins so. Raises CourseError naming those there are."""
    there = backups(folder)
    found = [backup for backup in there if backup.name == name] or [
        backup for backup in there if name and backup.name.startswith(name)
    ]
    if len(found) == 1:
        return found[0]
    if not there:
        raise CourseError(f"There are no backups in {home(folder)}. `course reset` makes one each time.")
    what = f"{len(found)} backups begin with {name!r}" if found else f"There is no backup {name!r}"
    names = "".join(f"\n  {backup.name}" for backup in found or there)
    raise CourseError(f"{what}. There {'is' if len(found or there) == 1 else 'are'}:{names}")
