"""The quick way to run a notebook finds what a real kernel finds: on good, wrong, crashing, hanging, cheating files."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy
from corpus import CHEATS, IN_A_LAB, RIGHT, Sample, after

from course.catalog import Checkpoint
from course.marking.contained import Contained
from course.marking.finding import Place
from course.marking.listen import Limits
from course.marking.notebook import Enough, Kernel, find_cells, role, run_notebook, steps_of
from course.marking.notebook_findings import notebook_findings
from course.workspace import workspace

KERNELS: tuple[Kernel, Kernel] = ("quick", "real")

ONLY_HERE = {
    "os._exit(0) at the top": Sample("import os\nos._exit(0)", ""),
    "raises at the top": Sample("raise ValueError('top')", ""),
    "prints at the top": Sample(after("print('hello')"), ""),
    "writes past the shell": Sample(after("import os\nos.write(1, b'hello')"), ""),
    "a subprocess that prints": Sample(
        toy.replaced("# 42.3\n", "import subprocess; subprocess.run(['echo', 'hello'])\n"), ""
    ),
    "standard error only": Sample(toy.replaced("# 42.3\n", "import sys; print('hello', file=sys.stderr)\n"), ""),
    "a task that prints later": Sample(
        toy.replaced(
            "# 42.3\n",
            "import asyncio\n        async def later(): print('later')\n"
            "        self.task = asyncio.create_task(later())\n",
        ),
        "",
    ),
    "a display": Sample(toy.replaced("# 42.3\n", "import IPython.display as d; d.display('hello')\n"), ""),
    "a cleared output": Sample(
        toy.replaced("# 42.3\n", "import IPython.display as d; print('hello'); d.clear_output()\n"), ""
    ),
    "a cancelled cell": Sample(
        toy.replaced("return self.add(n)", "import asyncio; asyncio.current_task().cancel(); await anyio.sleep(0)"), ""
    ),
}

IN_CELLS = ("a silenced traceback", "cells that always succeed", "outputs replayed", "exit() in a cell")

AS_ANOTHER = (
    "another right one",
    "an exit handler that exits",
    "its NotImplementedError as text",
    "a loop that catches everything",
    "endless recursion",
    "an error without a text",
)
"""What the notebook has no eyes for: another sample says the same of it."""

SAMPLES = {
    **{name: sample for name, sample in {**RIGHT, **IN_A_LAB}.items() if name not in AS_ANOTHER},
    **{name: CHEATS[name] for name in IN_CELLS},
    **ONLY_HERE,
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_both_kernels_find_the_same(tmp_path: Path, sample: Sample) -> None:
    checkpoint = toy.lay(tmp_path / "home")
    quick, real = (_found(checkpoint, sample, tmp_path / kernel, kernel) for kernel in KERNELS)
    assert quick == real


def _found(checkpoint: Checkpoint, sample: Sample, folder: Path, kernel: Kernel) -> list[tuple[str, int]]:
    labs = [lab.id for lab in checkpoint.labs]
    workspace(checkpoint, sample.content, folder)
    with Contained(role(kernel), folder=folder) as contained:
        limits = Limits(step=2) if "timed_out" in sample.words else Limits()
        steps = steps_of(find_cells(checkpoint, labs))
        path = folder / "agent.py"
        run = run_notebook(steps, kernel, checkpoint, sample.content, path, limits, contained, Enough())
    found = notebook_findings(Place(checkpoint, folder / "agent.py"), run, labs)
    return [(found[lab].word, found[lab].passed) for lab in labs]
