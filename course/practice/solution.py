"""The difference from the learner's file to the solution, for one who has solved it, or asks to be told."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.marking.table import near
from course.practice.lab_code import Span, functions_of, spans_in
from course.practice.plain import visible
from course.practice.progress import Progress

STYLES = {"+": "green", "-": "red", "@": "bold"}

MIN_WIDTH = 16
"""Columns that must be left beside the indentation of a line that goes on in the next row."""


def check_earned(checkpoint: Checkpoint, lab: Lab | None, progress: Progress, where: str = "") -> None:
    """Raise CourseError, with what to type instead, unless the lab, or every required one, was green once.

    `where` is the option that names the folder.
    """
    wanted = [lab] if lab else [lab for lab in checkpoint.labs if not lab.optional]
    missing = [one for one in wanted if not progress.is_green(one.id)]
    if not missing:
        return
    what = f"lab {lab.id}" if lab else f"checkpoint {checkpoint.id}"
    why = "it has not been green yet" if lab else f"lab {missing[0].id} has not been green yet"
    option = f" --lab {lab.id}" if lab else ""
    raise CourseError(
        f"The solution of {what} is for those who have solved it, and {why}.\n"
        f"A hint helps more:\n  course hint {missing[0].id}{where}\n"
        f"To see it all the same:\n  course solution {checkpoint.id}{option} --spoil{where}"
    )


def difference(checkpoint: Checkpoint, agent_py: Path, lab: Lab | None = None) -> list[str]:
    """A unified diff from `agent_py` to the solution, or to the solution of one lab; empty where they agree."""
    mine = agent_py.read_bytes().decode("utf-8", errors="replace").splitlines()
    target = checkpoint.solution.read_text(encoding="utf-8").splitlines()
    if lab is not None:
        target = _toward(mine, target, spans_in(checkpoint.solution, functions_of(checkpoint, lab)))
    named = f"the solution of lab {lab.id}" if lab else "the solution"
    return list(difflib.unified_diff(mine, target, near(str(agent_py)), named, lineterm=""))


def _toward(mine: Sequence[str], solution: Sequence[str], spans: Sequence[Span]) -> list[str]:
    """`mine` with those of the differences made that lie within `spans` of the solution."""
    out: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, mine, solution, autojunk=False).get_opcodes():
        inside = any(span.first <= max(d, c + 1) and c + 1 <= span.last for span in spans)
        out += solution[c:d] if inside and kind != "equal" else mine[a:b]
    return out


def show(console: Console, lines: Sequence[str]) -> None:
    """Print the diff: `-` before your lines, `+` before the solution's; the colours only repeat that.

    On a terminal a line that is too long goes on below, indented, after a `…`. Anywhere else it stays one line.
    """
    for line in lines:
        text = Text(visible(line), style=STYLES.get(line[:1], ""))
        for row in _rows(console, text) if console.is_terminal else [text]:
            console.print(row, soft_wrap=True)


def _rows(console: Console, line: Text) -> Iterator[Text]:
    """The line as it fits the terminal."""
    indent = len(line.plain) - len(line.plain[1:].lstrip())
    room = max(console.width - indent - 2, MIN_WIDTH)
    if line.cell_len <= console.width:
        yield line
        return
    first, *rest = line[indent:].wrap(console, room)
    yield line[:indent] + first
    for row in rest:
        yield Text(" " * indent + "… ", style=line.style) + row
