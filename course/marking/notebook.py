"""The lab notebook, as the parent sees it: which cells count, and nbval's own judgement on what came out of them."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from course.catalog import Checkpoint
from course.errors import CannotMarkError
from course.marking.contained import Contained
from course.marking.controls import ControlCells, control_cells
from course.marking.listen import Heard, Limits, Ran, listen
from course.marking.steps import IMPORT

NEVER_MARKED = {"demo", "skip-execution"}
"""Tags of cells that marking leaves out: they show our own agent, or mark."""

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


class Enough:
    """Ends a notebook's process as soon as what it could still tell decides nothing.

    One thread listens and says which step has ended; another says, once it knows, which is the last that matters.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ran: set[str] = set()
        self._last: str | None = ""
        self._contained: Contained | None = None

    def ends(self, contained: Contained) -> None:
        """This is the process to end."""
        with self._lock:
            self._contained = contained
            self._look()

    def ran(self, step: str) -> None:
        with self._lock:
            self._ran.add(step)
            self._look()

    def after(self, step: str | None) -> None:
        """Nothing after this step matters; with None nothing at all."""
        with self._lock:
            self._last = step
            self._look()

    def _look(self) -> None:
        if self._contained is not None and (self._last is None or self._last in self._ran):
            self._contained.give_up()


class Steps(msgspec.Struct, frozen=True):
    """What runs, in order: the import of the learner's file, then the cells, with two controls after each lab's last.

    `all` holds ids and sources. `controls` has a pair of ids for each lab that has cells: one prints, one raises.
    """

    cells: tuple[Cell, ...]
    control: ControlCells
    all: tuple[tuple[str, str], ...]
    controls: dict[str, tuple[str, str]]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(id for id, _ in self.all)

    def last(self, labs: Sequence[str]) -> str | None:
        """The id of the last step that says something about one of `labs`; None when none does."""
        ids = [self.controls[lab][-1] for lab in labs if lab in self.controls]
        return max(ids, key=self.ids.index, default=None)


class NotebookRun(msgspec.Struct, frozen=True):
    """The steps that were to run, and what was heard of them."""

    steps: Steps
    heard: Heard

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.steps.cells

    def up_to(self, step: str) -> NotebookRun:
        """The same run, as if that had been its last step: what was heard later may differ from run to run."""
        ids = self.steps.ids[: self.steps.ids.index(step) + 1]
        ran = {id: ran for id, ran in self.heard.ran.items() if id in ids}
        return NotebookRun(self.steps, Heard(ids, ran, None if len(ran) == len(ids) else self.heard.stop))

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

    Those that are NEVER_MARKED and those of other labs are left out, and so is what stands behind the last cell that
    counts: it could decide nothing. Empty when no cell counts for `labs`. Raises CannotMarkError when the notebook
    counts for no lab at all, or a cell that counts has no stored output to compare with.
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
            if not NEVER_MARKED & set(tags):
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


def steps_of(cells: Sequence[Cell]) -> Steps:
    """The steps of a marking that runs these cells. What the file prints at its first import is no lab's output."""
    control = control_cells()
    last_of_lab = {cell.lab: cell.number for cell in cells if cell.lab}
    every = [(IMPORT, "import agent; del agent")]
    controls: dict[str, tuple[str, str]] = {}
    for cell in cells:
        every.append((cell.id, cell.source))
        if cell.lab and last_of_lab[cell.lab] == cell.number:
            pair = controls[cell.lab] = (secrets.token_hex(6), secrets.token_hex(6))
            every += zip(pair, (control.prints, control.raises), strict=True)
    return Steps(tuple(cells), control, tuple(every), controls)


def run_notebook(
    steps: Steps,
    kernel: Kernel,
    checkpoint: Checkpoint,
    source: bytes,
    learner: Path,
    limits: Limits,
    contained: Contained,
    enough: Enough,
) -> NotebookRun:
    """Run the steps in `contained`, a fresh process that is ready for this kernel's role, until it is `enough`."""
    request = NotebookRequest(checkpoint, source, steps.all, limits.step)
    if kernel == "real":  # that process has the limit too, and stops the kernel itself; ours is the backstop
        limits = Limits(limits.start, limits.step + 5, limits.total)
    enough.ends(contained)
    contained.ask(request, str(learner))
    return NotebookRun(steps, listen(contained, limits, steps.ids, enough.ran))
