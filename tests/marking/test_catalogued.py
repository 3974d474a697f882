"""Every checkpoint of the course is marked as it must be, in a quick shell and in a real kernel alike."""

from __future__ import annotations

import pytest

from course.catalog import Checkpoint, checkpoints
from course.marking.mark import mark
from course.marking.notebook import Kernel

every_checkpoint = pytest.mark.parametrize("checkpoint", checkpoints().values(), ids=checkpoints())
each_kernel = pytest.mark.parametrize("kernel", ["quick", "real"])


@every_checkpoint
@each_kernel
def test_the_solution_is_green_in_every_lab(checkpoint: Checkpoint, kernel: Kernel) -> None:
    verdict = mark(checkpoint, checkpoint.solution, kernel=kernel)
    assert [(lab.lab, lab.verdict, lab.message) for lab in verdict.labs if not lab.is_green] == []
    assert [lab.tests for lab in verdict.labs] == [lab.tests for lab in checkpoint.labs]


@every_checkpoint
@each_kernel
def test_the_starter_is_green_in_no_lab_and_the_first_is_not_attempted(checkpoint: Checkpoint, kernel: Kernel) -> None:
    verdict = mark(checkpoint, checkpoint.starter, kernel=kernel)
    assert [lab.lab for lab in verdict.labs if lab.is_green] == []
    assert verdict.labs[0].verdict == "not_attempted"
    assert {lab.verdict for lab in verdict.labs} <= {"not_attempted", "not_run"}
