"""Lab notebooks executed with the solution, and stored so that the same run gives the same file."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

from course.authoring.problem import AuthoringError, Problem
from course.authoring.views import read_source
from course.catalog import Checkpoint
from course.workspace import workspace

CELL_SECONDS = 60
KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
CELL_METADATA = {
    "tags",
    "jupyter",
}  # what a cell keeps; the rest is how somebody looked at it
WIDGET = "application/vnd.jupyter.widget-view+json"  # names a live object of one kernel; its other forms stay

_STAND_IN = """\
from pathlib import Path
from course import catalog, stand_in
stand_in.install(catalog.read(Path({package!r}))[{id!r}], Path("agent.py").absolute())
del Path, catalog, stand_in
"""


def execute(checkpoint: Checkpoint) -> str:
    """The text of the checkpoint's notebook with the outputs that it has with the solution, in stored form.

    It runs in a fresh kernel of this Python, in a workspace of its own. Raises AuthoringError where a cell
    fails, or shows what differs from machine to machine.
    """
    notebook = _read(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        workspace(checkpoint, read_source(checkpoint).solution.encode(), Path(folder, "lab"))
        _run(checkpoint, notebook, Path(folder))
        tidy(notebook)
        if problems := list(_machine_problems(checkpoint.notebook, notebook, folder)):
            raise AuthoringError(problems)
    return nbformat.writes(notebook) + "\n"


def stale_problems(checkpoint: Checkpoint, executed: str) -> Iterator[Problem]:
    """Which cells of the stored notebook show something else than those of `executed`."""
    command = f"python -m course.authoring execute {checkpoint.id}"
    path = checkpoint.notebook
    stored = path.read_text(encoding="utf-8")
    before = nbformat.reads(stored, as_version=4)
    after = nbformat.reads(executed, as_version=4)
    changed = False
    for number, (old, new) in enumerate(zip(before.cells, after.cells, strict=True), 1):
        if old.get("outputs") != new.get("outputs"):
            changed = True
            yield Problem(path, 0, f"{_name(number, new)} would now show {_shown(new)}. Run `{command}`.")
    if stored != executed and not changed:
        yield Problem(path, 0, f"is not in its stored form. Run `{command}`.")


def tidy(notebook: NotebookNode) -> None:
    """Leave in a notebook only what the same run gives on any machine."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}})
    seen: set[str] = set()
    for number, cell in enumerate(notebook.cells, 1):
        if cell.get("id", "") in seen | {""}:
            cell.id = f"cell-{number}"
        seen.add(cell.id)
        cell.metadata = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
        if cell.cell_type == "code":
            cell.outputs = [tidied for output in cell.outputs if (tidied := _tidy_output(output))]
    _number(notebook)


def _number(notebook: NotebookNode) -> None:
    """Number what was run as Run All does, where cells tagged `skip-execution`, such as `%mark`, run too."""
    for number, cell in enumerate([cell for cell in notebook.cells if cell.cell_type == "code"], 1):
        for counted in (cell, *cell.outputs):
            if counted.get("execution_count") is not None:
                counted.execution_count = number


def _tidy_output(output: NotebookNode) -> NotebookNode | None:
    """The output without widget ids, timings and traceback paths, or None where nothing is left."""
    if output.output_type == "error":
        output.traceback = [f"{output.ename}: {output.evalue}"]
    if "data" in output:
        output.data.pop(WIDGET, None)
        output.metadata = {}
        return output if output.data else None
    return output


def _read(checkpoint: Checkpoint) -> NotebookNode:
    try:
        return nbformat.read(checkpoint.notebook, as_version=4)
    except FileNotFoundError as error:
        raise AuthoringError([Problem(checkpoint.notebook, 0, "is missing. Write it first.")]) from error
    except Exception as error:  # nbformat raises what its parts raise
        raise AuthoringError([Problem(checkpoint.notebook, 0, f"is no notebook: {error!r}.")]) from error


def _run(checkpoint: Checkpoint, notebook: NotebookNode, folder: Path) -> None:
    """Run every cell in order. The kernel sees the workspace's agent.py as the checkpoint's module."""
    startup = folder / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    text = _STAND_IN.format(package=str(checkpoint.package), id=checkpoint.id)
    (startup / "stand_in.py").write_text(text, encoding="utf-8")
    begun: list[int] = []
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder / "lab")}},
        on_cell_start=lambda cell, cell_index: begun.append(cell_index),
        config=Config({"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}}),  # no open port
    )
    try:
        client.execute(env={**os.environ, "IPYTHONDIR": str(folder / "ipython")})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        what = f"{error.ename}: {error.evalue}" if isinstance(error, CellExecutionError) else str(error).strip()
        cell = notebook.cells[begun[-1]]
        text = f"{_name(begun[-1] + 1, cell)} ended in {what}."
        raise AuthoringError([Problem(checkpoint.notebook, 0, text)]) from error


def _machine_problems(path: Path, notebook: NotebookNode, folder: str) -> Iterator[Problem]:
    """Outputs that hold a path or an address of this machine."""
    own = "|".join(re.escape(place) for place in (folder, str(Path.home()), sys.prefix))
    pattern = re.compile(rf"\b0x[0-9a-f]{{6,}}\b|{own}")
    for number, cell in enumerate(notebook.cells, 1):
        if match := pattern.search(str(cell.get("outputs", ""))):
            text = f"{_name(number, cell)} shows {match[0]!r}, which differs from machine to machine."
            yield Problem(path, 0, f"{text} Show something else.")


def _name(number: int, cell: NotebookNode) -> str:
    first = cell.source.split("\n")[0]
    return f"cell {number} (`{first}`)"


def _shown(cell: NotebookNode) -> str:
    outputs: list[dict[str, Any]] = cell.get("outputs", [])
    texts = [output.get("text") or output.get("evalue") or str(output.get("data", "")) for output in outputs]
    return repr(" ".join(texts)[:80]) if texts else "nothing"
