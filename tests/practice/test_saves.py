"""Every way in which editors save is noticed, with file events and without."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
import watchfiles

from course.practice.saves import Saves, signature

SAFETY = 30
"""Seconds after which a test gives up waiting for what must come."""


class Noticed:
    """What was told, in order."""

    def __init__(self, saves: Saves, told: SimpleQueue[str]) -> None:
        self.saves = saves
        self._told = told

    def next(self) -> str:
        return self._told.get(timeout=SAFETY)

    def rest(self) -> list[str]:
        """What else was told until it was stopped."""
        self.saves.stop()
        self.saves.join(SAFETY)
        assert not self.saves.is_alive()
        found = []
        while not self._told.empty():
            found.append(self._told.get())
        return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text("old")
    return tmp_path / "agent.py"


@pytest.fixture(params=["events", "looking", "no events"])
def noticed(path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Noticed]:
    if request.param == "no events":  # as on a system that has no handles left

        def watch(*_: object, **__: object) -> Iterator[object]:
            raise OSError(24, "inotify limit reached")

        monkeypatch.setattr(watchfiles, "watch", watch)
    told: SimpleQueue[str] = SimpleQueue()
    saves = Saves(path, told.put, poll=request.param == "looking")
    saves.start()
    yield Noticed(saves, told)
    saves.stop()
    saves.join(SAFETY)


def by_writing(path: Path) -> None:
    path.write_text("new")


def by_renaming(path: Path) -> None:
    beside = path.with_name("agent.py~")
    beside.write_text("new")
    os.replace(beside, path)


def by_moving_away_first(path: Path) -> None:
    path.rename(path.with_name("agent.py.bak"))
    path.write_text("new")


def by_removing_first(path: Path) -> None:
    path.unlink()
    path.write_text("new")


def by_emptying_first(path: Path) -> None:
    with path.open("w") as file:
        file.flush()
        os.fsync(file.fileno())
        file.write("new")


def through_a_link(path: Path) -> None:
    real = path.with_name("real.py")
    real.write_text("new")
    path.unlink()
    path.symlink_to(real)


@pytest.mark.parametrize(
    "save",
    [by_writing, by_renaming, by_moving_away_first, by_removing_first, by_emptying_first, through_a_link],
    ids=lambda save: save.__name__,
)
def test_a_save_is_noticed(noticed: Noticed, path: Path, save: Callable[[Path], None]) -> None:
    save(path)
    assert noticed.next() == "saved"
    assert path.read_text() == "new"


def test_saves_one_after_the_other_are_each_noticed(noticed: Noticed, path: Path) -> None:
    for text in ("one", "two and", "three more"):
        path.write_text(text)
        assert noticed.next() == "saved"


def test_a_burst_is_a_few_saves_and_the_last_of_it_is_among_them(path: Path) -> None:
    seen: SimpleQueue[str] = SimpleQueue()
    saves = Saves(path, lambda told: seen.put(path.read_text()))
    saves.start()
    for number in range(200):
        path.write_text(f"{number:03}")
    heard = [seen.get(timeout=SAFETY)]
    while heard[-1] != "199":
        heard.append(seen.get(timeout=SAFETY))
    saves.stop()
    saves.join(SAFETY)
    assert len(heard) < 20


def test_other_files_in_the_folder_are_not_saves(noticed: Noticed, path: Path) -> None:
    path.with_name("other.py").write_text("x")
    path.with_name(".progress.json").write_text("x")
    path.write_text("new")
    assert noticed.next() == "saved"
    assert noticed.rest() == []


def test_a_file_that_goes_away_is_told_once_and_so_is_its_return(noticed: Noticed, path: Path) -> None:
    path.rename(path.with_name("away"))
    assert noticed.next() == "gone"
    path.with_name("away").rename(path)
    assert noticed.next() == "saved"


def test_a_folder_that_goes_away_and_returns_ends_nothing(noticed: Noticed, path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    assert noticed.next() == "gone"
    path.parent.with_name("moved").rename(path.parent)
    assert noticed.next() == "saved"


def test_events_that_fail_are_replaced_by_looking(noticed: Noticed, path: Path, request: pytest.FixtureRequest) -> None:
    path.write_text("new")
    assert noticed.next() == "saved"
    assert noticed.saves.is_polling == (request.node.callspec.params["noticed"] != "events")


def test_nothing_is_told_where_nothing_is_saved(noticed: Noticed) -> None:
    assert noticed.rest() == []


def test_a_missing_file_has_no_signature(tmp_path: Path) -> None:
    assert signature(tmp_path / "none") is None
