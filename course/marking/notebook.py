"""The lab notebook, as the parent sees it: which cells count, and nbval's own judgement on what came out of them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from course.catalog import Checkpoint
from course.errors import CannotMarkError
from course.marking.contained import Contained, Group
from course.marking.controls import ControlCells, control_cells
from course.marking.listen import Heard, Limits, Ran, listen

Kernel = Literal["quick", "real"]


def role(kernel: Kernel) -> str:
    """The module that runs a notebook's cells in such a kernel."""
    return "quick_kernel" if kernel == "quick" else "real_kernel"


class Cell(msgspec.Struct, frozen=True):
    """A code cell of the pristine notebook.

    `number` counts code cells from 1. `lab` is the id of its `lab-N.M` tag, None for
    a cell that decides nothing.
    """

    number: int
    source: str
    lab: str | None
    raises: bool
    outputs: tuple[dict[str, Any], ...]

    @property
    def id(self) -> str:
        return f"cell {self.number}"


class NotebookRequest(msgspec.Struct, frozen=True):
    """What the child needs: the sources in order, by id, and no stored output. `seconds` is the limit for a cell."""

    checkpoint: Checkpoint
    source: bytes
    cells: tuple[tuple[str, str], ...]
    seconds: float


class NotebookRun(msgspec.Struct, frozen=True):
    """The cells that were to run, and what was heard of them. `control_ids` are pairs: one prints, one raises."""

    cells: tuple[Cell, ...]
    controls: ControlCells
    control_ids: tuple[tuple[str, str], ...]
    heard: Heard

    def of(self, lab: str) -> tuple[Cell, ...]:
        return tuple(cell for cell in self.cells if cell.lab == lab)

    def ran(self, cell: Cell) -> Ran | None:
        return self.heard.ran.get(cell.id)

    def name(self, cell: Cell) -> str:
        """What a learner finds `cell` by: its place in its lab, or how it begins. The numbers on screen change."""
        if cell.lab is None:
            return f"the set-up cell that begins `{cell.source.strip().partition(chr(10))[0]}`"
        own = self.of(cell.lab)
        return f"cell {own.index(cell) + 1} of lab {cell.lab}" if len(own) > 1 else f"the cell of lab {cell.lab}"

    def failed_before(self, cell: Cell) -> Cell | None:
        """The first cell before `cell` that counts for no lab and did not run through."""
        for other in self.cells:
            if other.number >= cell.number:
                return None
            ran = self.ran(other)
            if other.lab is None and not other.raises and ran is not None and not ran.passed:
                return other
        return None


def find_cells(checkpoint: Checkpoint, labs: Sequence[str]) -> tuple[Cell, ...]:
    """The code cells of the pristine notebook that are run when `labs` are marked.

    Those tagged `demo` and those of other labs are left out, and so is what stands behind the last cell that counts:
    it could decide nothing. Empty when no cell counts for `labs`. Raises CannotMarkError when the notebook counts for
    no lab at all, or a cell that counts has no stored output to compare with.
    """
    every = tuple(_read_cells(checkpoint.notebook))
    if not any(cell.lab for cell in every):
        raise CannotMarkError(
            f"{checkpoint.notebook} holds no cell that counts for a lab. That is a fault of the course, not yours."
        )
    cells = [cell for cell in every if cell.lab is None or cell.lab in labs]
    for cell in cells:
        if cell.lab and not cell.outputs:
            raise CannotMarkError(
                f"Code cell {cell.number} of {checkpoint.notebook} counts for lab {cell.lab}, but stores no output. "
                "That is a fault of the course, not yours."
            )
    last = max((number for number, cell in enumerate(cells, 1) if cell.lab), default=0)
    return tuple(cells[:last])


def count_cells(checkpoint: Checkpoint) -> dict[str, int]:
    """How many cells of the pristine notebook count for each lab."""
    labs = [cell.lab for cell in _read_cells(checkpoint.notebook) if cell.lab]
    return {lab: labs.count(lab) for lab in labs}


def _read_cells(notebook: Path) -> Iterator[Cell]:
    try:
        content = json.loads(notebook.read_bytes())
        codes = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        for number, cell in enumerate(codes, 1):
            tags = cell["metadata"].get("tags", [])
            labs = [tag.removeprefix("lab-") for tag in tags if tag.startswith("lab-")]
            if "demo" not in tags:
                yield Cell(
                    number=number,
                    source=_joined(cell["source"]),
                    lab=labs[0] if labs else None,
                    raises="raises-exception" in tags,
                    outputs=tuple(_whole(output) for output in cell["outputs"] if output.get("name") != "stderr"),
                )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CannotMarkError(f"The course's own notebook {notebook} cannot be read: {error!r}") from error


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def _whole(output: dict[str, Any]) -> dict[str, Any]:
    """`output` with its multi-line strings joined, as nbformat has it in memory."""
    data = {
        kind: _joined(value) if kind != "application/json" else value for kind, value in output.get("data", {}).items()
    }
    return {
        **output,
        **({"text": _joined(output["text"])} if "text" in output else {}),
        **({"data": data} if data else {}),
    }


def run_notebook(
    cells: Sequence[Cell],
    kernel: Kernel,
    checkpoint: Checkpoint,
    source: bytes,
    learner: Path,
    folder: Path,
    limits: Limits,
    group: Group,
    started: Contained | None = None,
) -> NotebookRun:
    """Run the cells, in order, in a fresh process in `folder`, with two control cells after each lab's last cell.

    `started` is that process where it waits already, ready for this kernel's role.
    """
    controls = control_cells()
    steps, pairs = _with_controls(cells, controls)
    request = NotebookRequest(checkpoint, source, steps, limits.step)
    if kernel == "real":  # that process has the limit too, and stops the kernel itself; ours is the backstop
        limits = Limits(limits.start, limits.step + 5, limits.total)
    with started or Contained(role(kernel), folder=folder) as contained:
        contained.ask(request, str(learner))
        heard = listen(group.add(contained), limits, tuple(id for id, _ in steps))
    return NotebookRun(tuple(cells), controls, pairs, heard)


def _with_controls(
    cells: Sequence[Cell], controls: ControlCells
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Ids and sources of all cells to run, and the pairs of control ids among them."""
    last_of_lab = {cell.lab: cell.number for cell in cells if cell.lab}
    steps: list[tuple[str, str]] = []
    pairs: list[tuple[str, str]] = []
    for cell in cells:
        steps.append((cell.id, cell.source))
        if cell.lab and last_of_lab[cell.lab] == cell.number:
            pair = (secrets.token_hex(6), secrets.token_hex(6))
            pairs.append(pair)
            steps += zip(pair, (controls.prints, controls.raises), strict=True)
    return tuple(steps), tuple(pairs)
