"""A verdict as a table for a terminal: one row a lab, then what to do about the first that is not green."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from course.catalog import Checkpoint
from course.marking.verdict import SYMBOLS, LabVerdict, Verdict, Word

_NEEDED = re.compile(r"^First: (.+)$", re.MULTILINE)
"""The command that a lab which needs another one names."""

STYLES: dict[Word, str] = {
    "green": "green",
    "red": "red",
    "not_attempted": "dim",
    "crashed": "red",
    "timed_out": "yellow",
    "not_run": "dim",
    "tampered": "magenta",
    "error": "magenta",
}


def show(console: Console, verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int], command: str) -> None:
    """Print the verdict. `cells` says how many notebook cells count for each lab, `command` what marks all labs."""
    console.print(Group(*_parts(verdict, checkpoint, cells, command)), highlight=False, soft_wrap=False)


def _parts(verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int], command: str) -> list[RenderableType]:
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    parts: list[RenderableType] = [rows(verdict, checkpoint, cells), Text()]
    if first is not None:
        parts += [detail(first), Text()]
    return [*parts, _footer(verdict), _next(verdict, checkpoint, first, command)]


def rows(verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int]) -> Table:
    """One row a lab, as wide as the terminal and no wider."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold", expand=True)
    for name, width in (("Lab", 4), ("Verdict", 15), ("Tests", 5), ("Cells", 5)):
        table.add_column(name, no_wrap=True, width=width)
    table.add_column("What it is about, or why it is not green", overflow="ellipsis", no_wrap=True, ratio=1)
    for lab in verdict.labs:
        of = checkpoint.find_lab(lab.lab)
        table.add_row(
            lab.lab,
            word(lab.verdict),
            f"{lab.tests}/{of.tests}",
            f"{lab.cells}/{cells.get(lab.lab, 0)}",
            Text(("optional: " if of.optional else "") + _short(lab)),
        )
    return table


def word(verdict: Word) -> Text:
    """`✔ green`: a symbol, the word, and a colour that only repeats them."""
    return Text(f"{SYMBOLS[verdict]} {verdict.replace('_', ' ')}", style=STYLES[verdict])


def _short(lab: LabVerdict) -> str:
    return lab.title if lab.message is None else lab.message.partition("\n")[0].removeprefix(f"Lab {lab.lab}: ")


def detail(lab: LabVerdict) -> Text:
    """The whole message of one lab, and the place to look at."""
    text = Text.assemble((f"Lab {lab.lab}: {lab.title}", "bold"), "\n", lab.message or "")
    if lab.where is not None:
        text.append(f"\nWhere: {near(lab.where)}")
    return text


def _footer(verdict: Verdict) -> Text:
    return Text(f"Marked: {near(verdict.agent.path)}  sha256 {verdict.agent.sha256[:12]}  {verdict.seconds:.1f} s")


def _next(verdict: Verdict, checkpoint: Checkpoint, first: LabVerdict | None, command: str) -> Text:
    if first is not None:
        again = f"{command} --lab {first.lab}"
        if needed := _NEEDED.search(first.message or ""):
            return Text.assemble("Next:  another lab comes first: type  ", (needed[1], "bold"))
        if verdict.is_green:
            return Text.assemble(
                "All required labs are green. ", f"Lab {first.lab} is optional: type  ", (again, "bold")
            )
        return Text.assemble("Next:  ", _advice(first.verdict, first.lab), ", then type  ", (again, "bold"))
    if len(verdict.labs) < len(checkpoint.labs):
        return Text.assemble("Next:  the other labs: type  ", (command, "bold"))
    return Text.assemble("All labs are green. Next:  type  ", ("course", "bold"))


def _advice(verdict: Word, lab: str) -> str:
    return {
        "not_attempted": f"write lab {lab} in agent.py",
        "error": "report this, it is not your fault",
    }.get(verdict, f"mend lab {lab} in agent.py")


def near(place: str) -> str:
    """`place` relative to the current folder where that is shorter."""
    here = str(Path.cwd()) + os.sep
    return place.removeprefix(here)
