"""Every stored notebook is what a real kernel shows today with the solution, `demo` cells and all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from course.authoring import notebooks
from course.catalog import PACKAGE, checkpoints
from course.workspace import workspace


@pytest.mark.parametrize("id", list(checkpoints()))
def test_executing_a_notebook_again_changes_nothing(id: str) -> None:
    checkpoint = checkpoints()[id]
    executed = notebooks.execute(checkpoint)
    assert list(map(str, notebooks.stale_problems(checkpoint, executed))) == []


@pytest.mark.parametrize("id", list(checkpoints()))
def test_plain_nbval_finds_nothing_to_complain_of_beside_the_solution(id: str, tmp_path: Path) -> None:
    checkpoint = checkpoints()[id]
    workspace(checkpoint, checkpoint.solution.read_bytes(), tmp_path)
    (tmp_path / "pytest.ini").touch()
    options = ("-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", "--nbval-cell-timeout", "60")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *options, checkpoint.notebook.name],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path), "PYTHONPATH": str(PACKAGE.parent)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout
