"""Every stored notebook is what a real kernel shows today with the solution, `demo` cells and all."""

from __future__ import annotations

import pytest

from course.authoring import notebooks
from course.catalog import checkpoints


@pytest.mark.parametrize("id", list(checkpoints()))
def test_executing_a_notebook_again_changes_nothing(id: str) -> None:
    checkpoint = checkpoints()[id]
    executed = notebooks.execute(checkpoint)
    assert list(map(str, notebooks.stale_problems(checkpoint, executed))) == []
