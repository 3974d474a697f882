"""A checkpoint and its labs may be named in any way that can be meant, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from course.errors import CourseError
from course.practice.meant import chosen, chosen_labs, find


@pytest.mark.parametrize(
    ("ids", "labs", "meant"),
    [
        (["09"], [], ()),
        (["9"], [], ()),
        (["9.2"], [], ("9.2",)),
        (["09", "9.2", "09.3"], [], ("9.2", "9.3")),
        (["09"], ["9.2", "2", "9.2"], ("9.2",)),
        ([], ["9.10"], ("9.10",)),
    ],
)
def test_numbers_and_lab_ids_in_any_order_name_the_labs_once(
    ids: list[str], labs: list[str], meant: tuple[str, ...]
) -> None:
    checkpoint, found = chosen_labs(ids, labs, None)
    assert (checkpoint.id, found) == ("09", meant)


@pytest.mark.parametrize("id", ["9.99", "77", "x.y", "7.1", ""])
def test_what_names_nothing_is_wrong_usage(id: str) -> None:
    with pytest.raises(CourseError):
        find(id)


def test_where_one_lab_is_wanted_two_are_asked_back() -> None:
    with pytest.raises(CourseError, match=r"One lab at a time: 9\.2 or 9\.3\?"):
        chosen("9.2", "9.3")


def test_without_a_number_it_is_the_checkpoint_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "09_stateful_agent.ipynb").touch()
    checkpoint, lab = chosen(None, folder=tmp_path)
    assert (checkpoint.id, lab) == ("09", None)
