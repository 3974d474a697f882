"""Which cells of a notebook count, and how many there are."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import toy

from course.marking.contained import Contained
from course.marking.notebook import Cell, Enough, count_cells, find_cells, steps_of


def numbers(cells: tuple[Cell, ...]) -> list[int]:
    return [cell.number for cell in cells]


def test_demo_cells_and_what_stands_behind_the_last_counting_cell_are_left_out(tmp_path: Path) -> None:
    checkpoint = toy.lay(tmp_path)
    assert numbers(find_cells(checkpoint, ["42.1", "42.2", "42.3"])) == [1, 3, 4, 5]


def test_cells_of_other_labs_are_left_out(tmp_path: Path) -> None:
    checkpoint = toy.lay(tmp_path)
    assert numbers(find_cells(checkpoint, ["42.2"])) == [1, 4]


def test_a_lab_without_cells_has_nothing_to_run(tmp_path: Path) -> None:
    checkpoint = toy.lay(tmp_path, cells=[cell for cell in toy.CELLS if cell[1] != ("lab-42.2",)])
    assert find_cells(checkpoint, ["42.2"]) == ()


def test_cells_are_counted_for_each_lab(tmp_path: Path) -> None:
    cells = [*toy.CELLS, ("print(1)", ("lab-42.1",), "1\n")]
    assert count_cells(toy.lay(tmp_path, cells=cells)) == {"42.1": 2, "42.2": 1, "42.3": 1}


def test_control_cells_follow_the_last_cell_of_each_lab(tmp_path: Path) -> None:
    cells = find_cells(toy.lay(tmp_path), ["42.1", "42.2", "42.3"])
    steps = steps_of(cells)
    one, two, three = steps.controls.values()
    assert steps.ids == ("import", "cell 1", "cell 3", *one, "cell 4", *two, "cell 5", *three)
    assert (steps.last(["42.2", "42.1"]), steps.last([])) == (two[1], None)


class Ended(Contained):
    """Remembers that it was given up."""

    def __init__(self) -> None:
        self.is_over = False

    def give_up(self) -> None:
        self.is_over = True


@pytest.mark.parametrize("order", [*itertools.permutations(["ends", "ran", "after"])])
def test_a_notebook_is_ended_after_the_last_step_that_matters_whatever_is_known_first(order: tuple[str, ...]) -> None:
    enough, contained = Enough(), Ended()
    say = {"ends": lambda: enough.ends(contained), "ran": lambda: enough.ran("b"), "after": lambda: enough.after("b")}
    enough.ran("a")
    for each in order:
        assert not contained.is_over
        say[each]()
    assert contained.is_over


def test_a_notebook_that_decides_nothing_is_ended_at_once() -> None:
    enough, contained = Enough(), Ended()
    enough.ends(contained)
    enough.after(None)
    assert contained.is_over
