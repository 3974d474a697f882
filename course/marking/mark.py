"""One workspace -> one Verdict."""

from __future__ import annotations

import contextlib
import hashlib
import platform
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from course import __version__
from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.marking import message
from course.marking.finding import Finding, Place
from course.marking.focused import find_tests, run_focused
from course.marking.focused_findings import focused_findings
from course.marking.listen import Limits
from course.marking.notebook import Enough, Kernel, find_cells, run_notebook, steps_of
from course.marking.notebook_findings import notebook_findings
from course.marking.ready import Ready
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, overall

Pair = tuple[Finding, Finding]
"""What the tests say about a lab, and what its cells say."""

_NO_CELLS = Finding("green")


def mark(
    checkpoint: Checkpoint,
    agent_py: Path,
    *,
    source: bytes | None = None,
    labs: Sequence[str] = (),
    notebook: bool = True,
    kernel: Kernel = "quick",
    limits: Limits | None = None,
    ready: Ready | None = None,
) -> Verdict:
    """Mark `agent_py` against the checkpoint's own notebook and tests, in fresh processes, side by side.

    `source` is marked in the file's name instead of what lies there. `labs` are the ids to mark, all by default.
    Without `notebook` the tests alone decide. `kernel` runs the cells in a shell of our own or in a real kernel.
    `ready` is where to mark, made for the same checkpoint and kernel, used this once, and left for the caller to end.

    The file is read once: what is hashed is what runs. Nothing is left behind, whatever happens. Raises CourseError
    when there is no such file or lab, and CannotMarkError when the course's own files cannot be used.
    """
    started = time.monotonic()
    learner = agent_py.resolve()
    content = _read(learner, checkpoint) if source is None else source
    chosen = [checkpoint.find_lab(id) for id in dict.fromkeys(labs)] or list(checkpoint.labs)
    chosen.sort(key=checkpoint.labs.index)
    findings = _unreadable(content, learner, chosen)
    if findings is None:
        own = contextlib.nullcontext(ready) if ready else Ready(checkpoint, kernel if notebook else None)
        with own as ready:
            findings = _run(ready, Place(checkpoint, learner), content, chosen, kernel, limits or Limits())
    judged = tuple(_lab_verdict(lab, *findings[lab.id]) for lab in chosen)
    required = [verdict for lab, verdict in zip(chosen, judged, strict=True) if labs or not lab.optional]
    return Verdict(
        checkpoint=checkpoint.id,
        verdict=overall(required),
        agent=Marked(str(learner), hashlib.sha256(content).hexdigest()),
        labs=judged,
        versions=Versions(__version__, platform.python_version()),
        seconds=round(time.monotonic() - started, 3),
    )


def _read(learner: Path, checkpoint: Checkpoint) -> bytes:
    if str(learner) != str(learner).encode("utf-8", "replace").decode():
        raise CourseError(f"{str(learner)!a} has a name that is not UTF-8, and cannot be told. Rename the folder.")
    try:
        return learner.read_bytes()
    except OSError as error:
        raise CourseError(
            f"{learner} cannot be read: {error.strerror}. "
            f"Lay the practice folder with `course practice {checkpoint.id}`."
        ) from error


def _unreadable(content: bytes, learner: Path, labs: Sequence[Lab]) -> Mapping[str, Pair] | None:
    """Findings for a file that no process need look at: empty, or not UTF-8. None for any other."""
    try:
        if content.decode("utf-8-sig").strip():
            return None
        why, line = "Expected: agent.py to hold your code.\nCame: the file is empty.", 1
    except UnicodeDecodeError as error:
        why, line = _not_utf8(content, error.start)
    rest = Finding("not_run", 0, f"agent.py could not be read, so no test ran. See lab {labs[0].id}.")
    first = Finding("red", 0, why, f"{learner}:{line}")
    return {lab.id: (first if lab is labs[0] else rest, _NO_CELLS) for lab in labs}


def _not_utf8(content: bytes, at: int) -> tuple[str, int]:
    """What to say about the byte at that offset, and the line it stands in."""
    line, column = content.count(b"\n", 0, at) + 1, at - content.rfind(b"\n", 0, at)
    why = (
        "Expected: agent.py to be UTF-8.\n"
        f"Came: byte 0x{content[at]:02x} at line {line}, column {column}.\n"
        "Why: Python source is UTF-8. Save the file again with that encoding (your editor's 'Save with encoding')."
    )
    return why, line


def _run(
    ready: Ready, place: Place, content: bytes, labs: Sequence[Lab], kernel: Kernel, limits: Limits
) -> Mapping[str, Pair]:
    """Lay the workspace, run tests and notebook side by side, and give what each found about each lab.

    Cells are looked at for labs whose tests pass, and the notebook is run as far as these need it: a cell of a lab
    that is not written may well wait for ever.
    """
    ids = [lab.id for lab in labs]
    tests = find_tests(place.checkpoint, labs)
    steps = steps_of(find_cells(place.checkpoint, ids) if ready.notebook else ())
    ready.lay(place.checkpoint, content)
    ours, enough = (place.checkpoint, content, place.learner), Enough()
    with ThreadPoolExecutor(2) as pool:
        try:
            focused = pool.submit(run_focused, tests, *ours, ready.for_tests, limits, ready.focused)
            in_notebook = (
                pool.submit(run_notebook, steps, kernel, *ours, limits, ready.notebook, enough)
                if ready.notebook and steps.cells
                else None
            )
            by_tests = focused_findings(place, focused.result(), ids)
            passed = [id for id in ids if by_tests[id].word == "green"]
            last = steps.last(passed)
            enough.after(last)
            by_cells = (
                notebook_findings(place, in_notebook.result().up_to(last), passed) if in_notebook and last else {}
            )
        finally:
            ready.give_up()
    return {
        id: (_cleaned(by_tests[id], ready.for_tests), _cleaned(by_cells.get(id, _NO_CELLS), ready.for_cells))
        for id in ids
    }


def _cleaned(finding: Finding, folder: Path) -> Finding:
    text = finding.message and message.clean(finding.message, folder)
    return Finding(finding.word, finding.passed, text, finding.where)


def _lab_verdict(lab: Lab, tests: Finding, cells: Finding) -> LabVerdict:
    """The tests speak first, then the cells; rigged checks are said before anything else."""
    decides = cells if tests.word == "green" or cells.word == "tampered" else tests
    return LabVerdict(
        lab=lab.id,
        title=lab.title,
        verdict=decides.word,
        tests=tests.passed,
        cells=cells.passed,
        message=decides.message,
        where=decides.where,
    )
