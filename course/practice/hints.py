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
        raise CourseError(
            f"Lab {lab.id} has no hints. Mark it and read why: course checkpoint {checkpoint.id} --lab {lab.id}"
        )
    return Hints(checkpoint, lab, min(progress.hints.get(lab.id, 0), len(lab.hints)))


def commands(hints: Hints) -> tuple[str, str]:
    """What to type for the next hint, and after writing the lab."""
    lab, checkpoint = hints.lab, hints.checkpoint
    return f"type  course hint {lab.id}", f"type  course checkpoint {checkpoint.id} --lab {lab.id}"


def render(hints: Hints, next_hint: str, then: str) -> Group:
    """The hints up to one more than were seen, how many are left, and what to do for the next one and after it."""
    return Group(*_hints(hints), Text(), _left(hints, next_hint), Text(f"Next: write lab {hints.lab.id}, then {then}"))


def _hints(hints: Hints) -> Iterator[RenderableType]:
    lab = hints.lab
    yield Text(f"Lab {lab.id}: {lab.title}", style="bold")
    for number, text in enumerate(lab.hints[: hints.level], 1):
        before = " (seen before)" if number <= hints.seen else ""
        yield Text(f"\nHint {number} of {len(lab.hints)}{before}", style="dim" if before else "bold")
        yield Padding(Text(text, style="dim" if before else ""), (0, 0, 0, 2), expand=False)


def _left(hints: Hints, next_hint: str) -> Text:
    if hints.left:
        return Text(f"Hints left: {hints.left}. For the next one: {next_hint}")
    solution = f"course solution {hints.checkpoint.id} --lab {hints.lab.id} --spoil"
    return Text(f"Hints left: none. To look at the solution:\n  {solution}")
