"""What the notebook's cells say about each lab. Pure: it runs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from course.marking import message
from course.marking.comparison import Difference, compare
from course.marking.finding import RIGGED, Finding, Place, from_fault, from_stop
from course.marking.notebook import Cell, NotebookRun
from course.marking.steps import IMPORT


def notebook_findings(place: Place, run: NotebookRun, labs: Sequence[str]) -> Mapping[str, Finding]:
    """A finding for each of `labs`. A lab without cells of its own is green: its tests alone decide."""
    everywhere = _about_all(run) or _about_import(place, run)
    if everywhere is not None:
        return {lab: everywhere if run.of(lab) else Finding("green") for lab in labs}
    return {lab: _about_lab(place, run, lab) for lab in labs}


def _about_all(run: NotebookRun) -> Finding | None:
    stop = run.heard.stop
    if stop and stop.word == "tampered":
        return Finding("tampered", 0, f"{stop.text}\n{RIGGED}")
    if stop and stop.word == "error":
        return Finding("error", 0, f"{stop.text}\n{stop.errors}".strip())
    if _a_control_passed(run):
        return Finding("tampered", 0, RIGGED)
    return None


def _about_import(place: Place, run: NotebookRun) -> Finding | None:
    """A finding for when the notebook stopped before its first cell, and the tests did not: so nothing is sure."""
    stop = run.heard.stop
    return from_stop(place, "agent.py to be imported in the notebook", stop) if stop and stop.step == IMPORT else None


def _a_control_passed(run: NotebookRun) -> bool:
    """True when a cell that raises ran through, when wrong output was taken for right, or when output is replayed.

    Replayed: some lab's cell shows what is stored, and yet a cell that prints a fresh number does not.
    """
    for prints, raises in run.steps.controls.values():
        printed, raised = run.heard.ran.get(prints), run.heard.ran.get(raises)
        if raised is not None and raised.passed:
            return True
        if printed is None:
            continue
        if _shows(printed.finish.outputs, run.steps.control.says):
            continue
        if _shows(printed.finish.outputs, run.steps.control.denies):
            return True
        if any(_passed(run, cell) for cell in run.cells if cell.lab):
            return True
    return False


def _shows(outputs: Sequence[dict[str, object]], text: str) -> bool:
    return compare([{"output_type": "stream", "name": "stdout", "text": text}], outputs) is None


def _about_lab(place: Place, run: NotebookRun, lab: str) -> Finding:
    cells = run.of(lab)
    failed = [cell for cell in cells if not _passed(run, cell)]
    if not failed:
        return Finding("green", len(cells))
    first = _about_cell(place, run, failed[0], lab)
    return Finding(first.word, len(cells) - len(failed), first.message, first.where)


def _passed(run: NotebookRun, cell: Cell) -> bool:
    """Executed with the status it must have, and its output is the stored one."""
    ran = run.ran(cell)
    return ran is not None and ran.passed != cell.raises and _difference(run, cell) is None


def _difference(run: NotebookRun, cell: Cell) -> Difference | None:
    ran = run.ran(cell)
    assert ran is not None
    outputs = list(ran.finish.outputs)
    if ran.printed:  # what a subprocess wrote past the shell
        outputs.append({"output_type": "stream", "name": "stdout", "text": ran.printed})
    return compare(cell.outputs, outputs)


def _about_cell(place: Place, run: NotebookRun, cell: Cell, lab: str) -> Finding:
    ran = run.ran(cell)
    name = run.name(cell)
    expected = f"{name} to run"
    if ran is None:
        return _unrun(place, run, cell, expected)
    if ran.passed and cell.raises:
        return Finding("red", 0, f"Expected: {name} to raise.\nCame: it ran through.")
    if not ran.passed and not cell.raises:
        return _set_up_failed(run, cell, ran.fault.kind if ran.fault else "") or from_fault(
            place, lab, expected, ran.fault
        )
    apart = _difference(run, cell)
    assert apart is not None
    return Finding("red", 0, message.difference(name, apart.kind, apart.stored, apart.came))


def _set_up_failed(run: NotebookRun, cell: Cell, kind: str) -> Finding | None:
    """A name that is not there is the fault of the cell that was to set it up."""
    before = run.failed_before(cell)
    ran = run.ran(before) if before else None
    if before is None or ran is None or ran.fault is None or kind != "NameError":
        return None
    came = f"{ran.fault.kind}: {ran.fault.text}"
    name = _capital(run.name(before))
    return Finding("not_run", 0, f"{name} did not run through, and this lab needs what it makes.\nCame: {came}")


def _unrun(place: Place, run: NotebookRun, cell: Cell, expected: str) -> Finding:
    stop = run.heard.stop
    if stop is not None and stop.step == cell.id:
        return from_stop(place, expected, stop)
    by = next((other for other in run.cells if stop and stop.step == other.id), None)
    if by is not None and by.lab:
        text = f"{_capital(run.name(by))} stopped the notebook before this lab. First: {place.command(by.lab)}"
        return Finding("not_run", 0, text)
    if by is not None and stop is not None:
        return Finding("not_run", 0, f"{_capital(run.name(by))} stopped the notebook before this lab. {stop.text}")
    return Finding("not_run", 0, f"The notebook stopped before this lab. {stop.text if stop else ''}".strip())


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
