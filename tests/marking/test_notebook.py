"""Which cells of a notebook count, and how many there are."""

from __future__ import annotations

from pathlib import Path

import toy

from course.marking.controls import control_cells
from course.marking.notebook import Cell, _with_controls, count_cells, find_cells


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
    steps, pairs = _with_controls(cells, control_cells())
    assert [id for id, _ in steps] == ["cell 1", "cell 3", *pairs[0], "cell 4", *pairs[1], "cell 5", *pairs[2]]
