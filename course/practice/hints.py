"""The hints of a lab: three levels, one more each time they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.practice.progress import Progress


class Hints(msgspec.Struct, frozen=True):
    """A lab's hints, of which the first `seen` have been shown before."""

    checkpoint: Checkpoint
    lab: Lab
    seen: int

    @property
    def level(self) -> int:
        """How many are shown when one more is asked for: at most all of them."""
        return min(self.seen + 1, len(self.lab.hints))

    @property
    def left(self) -> int:
        """How many are still unseen once one more was shown."""
        return len(self.lab.hints) - self.level

    @property
    def is_last_step(self) -> bool:
        """True when one more would be the last unseen one, which nearly gives the code away."""
        return self.left == 0 and self.seen < self.level and self.level > 1


LAST = "The last hint of lab {lab} nearly gives the code away."


def hints(checkpoint: Checkpoint, lab: Lab, progress: Progress) -> Hints:
    """The lab's hints as they stand. Raises CourseError when it has none."""
    if not lab.hints:
        raise CourseError(f"Lab {lab.id} has no hints. Mark it and read why: {_mark(checkpoint, lab)}")
    return Hints(checkpoint, lab, min(progress.hints.get(lab.id, 0), len(lab.hints)))


def render(hints: Hints) -> Group:
    """The hints up to one more than were seen, how many are left, and what to type next."""
    return Group(*_parts(hints))


def _parts(hints: Hints) -> Iterator[RenderableType]:
    lab = hints.lab
    yield Text(f"Lab {lab.id}: {lab.title}", style="bold")
    for number, text in enumerate(lab.hints[: hints.level], 1):
        before = " (seen before)" if number <= hints.seen else ""
        yield Text(f"\nHint {number} of {len(lab.hints)}{before}", style="dim" if before else "bold")
        yield Padding(Text(text, style="dim" if before else ""), (0, 0, 0, 2))
    yield Text()
    yield from _after(hints)


def _after(hints: Hints) -> tuple[Text, Text]:
    lab, checkpoint = hints.lab, hints.checkpoint
    if hints.left:
        left = Text.assemble(f"Hints left: {hints.left}. For the next one:  ", (f"course hint {lab.id}", "bold"))
    else:
        solution = f"course solution {checkpoint.id} --lab {lab.id} --spoil"
        left = Text.assemble("Hints left: none. To look at the solution:  ", (solution, "bold"))
    write = f"write lab {lab.id} in agent.py, then type  "
    return left, Text.assemble("Next:  ", write, (_mark(checkpoint, lab), "bold"))


def _mark(checkpoint: Checkpoint, lab: Lab) -> str:
    return f"course checkpoint {checkpoint.id} --lab {lab.id}"
