"""Where a learner is: every checkpoint, how far they came in it, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from course.catalog import Checkpoint
from course.marking.table import Step
from course.practice import progress
from course.practice.folder import practice_folder
from course.practice.progress import Progress

WIDE = 60
"""Columns from which on there is room for everything about a checkpoint."""


class Standing(msgspec.Struct, frozen=True):
    """One checkpoint as it stands. `is_laid` says whether its practice folder is there."""

    checkpoint: Checkpoint
    folder: Path
    is_laid: bool
    progress: Progress

    @property
    def required(self) -> list[str]:
        return [lab.id for lab in self.checkpoint.labs if not lab.optional]

    @property
    def green(self) -> int:
        """How many of the required labs have been green."""
        return sum(self.progress.is_green(lab) for lab in self.required)

    @property
    def is_finished(self) -> bool:
        return self.green == len(self.required)


def standings(checkpoints: Mapping[str, Checkpoint], start: Path) -> list[Standing]:
    """Every checkpoint as it stands in the practice folders seen from `start`."""
    folders = {id: practice_folder(checkpoint, start) for id, checkpoint in checkpoints.items()}
    return [
        Standing(one, folders[id], (folders[id] / "agent.py").exists(), progress.read(one, folders[id]))
        for id, one in checkpoints.items()
    ]


def current(standings: list[Standing]) -> Standing:
    """The checkpoint to go on with: one that is begun, else the first that is not, else the last."""
    begun = [one for one in standings if one.is_laid and not one.is_finished]
    fresh = [one for one in standings if not one.is_laid]
    return [*begun, *fresh, standings[-1]][0]


def next_step(standings: list[Standing]) -> Step:
    """What to do next."""
    one = current(standings)
    if not one.is_laid:
        return Step(f"Next: to begin {one.checkpoint.title}, type", f"course lab {one.checkpoint.id}")
    if one.is_finished:
        return Step("Every required lab is green. Next: to look at one again, type", f"course lab {one.checkpoint.id}")
    lab = progress.next_lab(one.checkpoint, one.progress)
    what = f"lab {lab.id}, {lab.title}" if lab else one.checkpoint.title
    return Step(f"Next: to go on with {what}, type", f"course checkpoint {one.checkpoint.id}")


def show(console: Console, standings: list[Standing]) -> None:
    """Print the table and the next command. Where the terminal is narrow, bars and minutes go before titles wrap."""
    is_wide = console.width >= WIDE
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("NN", "Checkpoint", *(("Labs green", "", "Minutes") if is_wide else ("Labs green",))):
        table.add_column(name, justify="right" if name == "Minutes" else "left", no_wrap=name != "Checkpoint")
    for one in standings:
        checkpoint = one.checkpoint
        cells = (_bar(one), _words(one), str(checkpoint.minutes)) if is_wide else (_words(one),)
        table.add_row(checkpoint.id, checkpoint.title, *cells)
    console.print(table)
    console.print()
    console.print(next_step(standings), highlight=False, crop=False)


def _bar(one: Standing) -> Text:
    return Text("■" * one.green + "·" * (len(one.required) - one.green), style="green" if one.is_finished else "")


def _words(one: Standing) -> str:
    if not one.is_laid:
        return "not begun"
    return "finished" if one.is_finished else f"{one.green} of {len(one.required)}"
