"""A verdict as a table for a terminal: one row a lab, then what to do about the first that is not green."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from course.catalog import Checkpoint, Lab
from course.marking.verdict import SYMBOLS, LabVerdict, Verdict, Word

_FIRST = re.compile(r"\s*\bFirst: course checkpoint \S+ --lab (\d+\.\d+)$", re.MULTILINE)
"""How a message ends that names the lab to go to first. What `_next` prints says that, too."""

_CAME = re.compile(r"^Came: (.+)$", re.MULTILINE)
_NEEDS = re.compile(r"\bneeds lab (\d+\.\d+)")
_SEE = re.compile(r"\b(?:See lab|--lab) (\d+\.\d+)")
_NO_IMPORT = re.compile(r"^agent\.py could not be (?:imported|read)\b")
"""What the other labs say when the file as a whole is not good for any."""

STYLES: dict[Word, str] = {
    "green": "green",
    "red": "red",
    "not_attempted": "",
    "crashed": "red",
    "timed_out": "magenta",
    "not_run": "",
    "tampered": "magenta",
    "error": "magenta",
}
"""Colours that can be read on a dark and on a light background: neither dim nor yellow."""

NOT_WRITTEN = "not written yet"

NAMES = {"Lab": 4, "Verdict": 15}
COUNTS = {"Tests": 5, "Cells": 5}
TITLE = "What it is about"
"""The columns of the table, those that are always as wide with their width."""

GAP = 2
"""Columns between two of them."""


class Step:
    """What to do next, in words, and the command for it: on one line, or else the command on a line of its own.

    The command is never broken, so that it can be copied: print a Step with `crop=False`.
    """

    def __init__(self, words: str, command: str) -> None:
        self.words = words
        self.command = command

    def __str__(self) -> str:
        return f"{self.words}  {self.command}"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if cell_len(str(self)) <= options.max_width:
            yield Text.assemble(self.words, "  ", (self.command, "bold"))
        else:
            yield Text(self.words)
            yield Text(f"  {self.command}", style="bold", no_wrap=True, overflow="ignore")


def show(console: Console, verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int], command: str) -> None:
    """Print the verdict. `cells` says how many notebook cells count for each lab, `command` what marks all labs."""
    parts = Group(*_parts(verdict, checkpoint, cells, command, console.width))
    console.print(parts, highlight=False, soft_wrap=False, crop=False)


def _parts(
    verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int], command: str, width: int
) -> Iterator[RenderableType]:
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    yield rows(verdict, checkpoint, cells, width)
    yield Text()
    if first is not None:
        yield detail(first, checkpoint.find_lab(first.lab), cells, whole=without_import(verdict) is first)
        yield Text()
    yield _footer(verdict)
    yield _next(verdict, checkpoint, first, command)


def rows(verdict: Verdict, checkpoint: Checkpoint, cells: Mapping[str, int], width: int) -> Table:
    """One row a lab, in `width` columns. Where these are few, the counts go first, then the reasons."""
    titles = {lab.lab: _title(checkpoint.find_lab(lab.lab)) for lab in verdict.labs}
    reasons = {lab.lab: _reason(lab) for lab in verdict.labs}
    longest = max(map(cell_len, reasons.values()), default=0)
    title = max(map(cell_len, [TITLE, *titles.values()]))
    left = width - sum(room + GAP for room in NAMES.values()) - title
    needed = GAP + min(longest, len(NOT_WRITTEN))
    has_reasons = longest > 0 and left >= needed
    has_counts = left >= sum(room + GAP for room in COUNTS.values()) + needed * has_reasons

    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for name, room in (NAMES | (COUNTS if has_counts else {})).items():
        table.add_column(name, no_wrap=True, width=room)
    table.add_column(TITLE, no_wrap=True, overflow="ellipsis", width=title + min(left, 0))
    if has_reasons:
        room = left - GAP - sum(room + GAP for room in COUNTS.values()) * has_counts
        table.add_column("Why not", no_wrap=True, overflow="ellipsis", width=min(room, max(longest, 7)))
    for lab in verdict.labs:
        counts = _counts(lab, checkpoint.find_lab(lab.lab), cells) if has_counts else ()
        reason = [Text(reasons[lab.lab])] if has_reasons else []
        table.add_row(lab.lab, word(lab.verdict), *counts, Text(titles[lab.lab]), *reason)
    return table


def word(verdict: Word) -> Text:
    """`✔ green`: a symbol, the word, and a colour that only repeats them."""
    return Text(f"{SYMBOLS[verdict]} {verdict.replace('_', ' ')}", style=STYLES[verdict])


def _title(lab: Lab) -> str:
    return f"optional: {lab.title}" if lab.optional else lab.title


def _counts(lab: LabVerdict, of: Lab, cells: Mapping[str, int]) -> tuple[str, str]:
    return f"{lab.tests}/{of.tests}", f"{lab.cells}/{cells.get(lab.lab, 0)}" if _has_cells(lab, of) else "-"


def _has_cells(lab: LabVerdict, of: Lab) -> bool:
    """True when the lab's cells were looked at, which waits for its tests."""
    return lab.is_green or lab.tests >= of.tests


def passed(lab: LabVerdict, of: Lab, cells: Mapping[str, int]) -> str:
    """How much of a lab has passed, in words."""
    tests = f"{lab.tests} of {of.tests} tests"
    if not _has_cells(lab, of):
        return f"{tests} passed"
    return f"{tests} and {lab.cells} of {cells.get(lab.lab, 0)} cells passed"


def _reason(lab: LabVerdict) -> str:
    """Why a lab is not green, as short as a column."""
    message = lab.message or ""
    if lab.is_green or lab.verdict == "not_attempted":
        return "" if lab.is_green else NOT_WRITTEN
    if lab.verdict == "not_run":
        for words, found in (("needs", _NEEDS.search(message)), ("see", _SEE.search(message))):
            if found:
                return f"{words} {found[1]}"
    came = _CAME.search(message)
    return came[1] if came else message.partition("\n")[0]


def without_import(verdict: Verdict) -> LabVerdict | None:
    """The verdict that says why agent.py cannot be imported, or read, at all; None when it can."""
    if any(lab.verdict == "not_run" and _NO_IMPORT.match(lab.message or "") for lab in verdict.labs):
        return next((lab for lab in verdict.labs if lab.verdict != "not_run"), None)
    return None


def why(lab: LabVerdict) -> str:
    """The lab's message, without its id, which stands above it, and without the command, which stands below."""
    return _FIRST.sub("", lab.message or "").removeprefix(f"Lab {lab.lab}: ")


def detail(lab: LabVerdict, of: Lab, cells: Mapping[str, int], *, whole: bool = False) -> Text:
    """The whole message of one lab, or of the `whole` file when that cannot be imported, and the place to look at."""
    text = Text()
    if whole:
        text.append("agent.py cannot be imported", "bold")
    else:
        text.append(f"Lab {lab.lab}: {lab.title}\n", "bold")
        text.append_text(word(lab.verdict)).append(f"  {passed(lab, of, cells)}")
    if lab.message:
        text.append(f"\n{why(lab)}")
    if lab.where is not None:
        text.append(f"\nWhere: {near(lab.where)}")
    return text


def _footer(verdict: Verdict) -> Text:
    fingerprint = f"file fingerprint sha256 {verdict.agent.sha256[:12]}"
    return Text(f"Marked: {near(verdict.agent.path)} ({fingerprint}) in {verdict.seconds:.1f} s")


def _next(verdict: Verdict, checkpoint: Checkpoint, first: LabVerdict | None, command: str) -> Step:
    if first is None:
        if len(verdict.labs) < len(checkpoint.labs):
            return Step("Next: to mark the other labs, too, type", command)
        return Step("All labs are green. Next: type", "course")
    again = f"{command} --lab {first.lab}"
    if needed := _FIRST.search(first.message or ""):
        return Step(f"Next: lab {needed[1]} comes first; type", f"{command} --lab {needed[1]}")
    if verdict.is_green:
        return Step(f"All required labs are green. Next: lab {first.lab} is optional; type", again)
    if without_import(verdict) is first:
        return Step("Next: mend agent.py, then type", command)
    return Step(f"Next: {_advice(first.verdict, first.lab)}, then type", again)


def _advice(verdict: Word, lab: str) -> str:
    return {
        "not_attempted": f"write lab {lab} in agent.py",
        "error": "report this, it is not your fault",
    }.get(verdict, f"mend lab {lab} in agent.py")


def near(place: str) -> str:
    """`place` relative to the current folder where that is shorter."""
    here = str(Path.cwd()) + os.sep
    return place.removeprefix(here)
