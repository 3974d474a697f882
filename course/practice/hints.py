"""The hints of a lab: three levels, one more each time they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.marking.table import Step
from course.practice.progress import Progress, next_lab


class Hints(msgspec.Struct, frozen=True):
    """A lab's hints, of which the first `seen` have been shown before.

    `is_green` says that the lab is green now, and `next` is the lab to go on with then; None when every lab is green.
    """

    checkpoint: Checkpoint
    lab: Lab
    seen: int
    is_green: bool = False
    next: Lab | None = None

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
    seen = min(progress.hints.get(lab.id, 0), len(lab.hints))
    return Hints(checkpoint, lab, seen, progress.is_green_now(lab.id), next_lab(checkpoint, progress))


def more(hints: Hints, where: str = "") -> Step:
    """What to type for the next hint, or after the last. `where` is the option that names the folder."""
    if hints.left:
        return Step(f"Hints left: {hints.left}. For the next one, type", f"course hint {hints.lab.id}{where}")
    solution = f"course solution {hints.checkpoint.id} --lab {hints.lab.id} --spoil{where}"
    return Step("Hints left: none. To look at the solution, type", solution)


def then(hints: Hints, where: str = "") -> Step:
    """What to type after writing the lab, or for the next one when this one is green."""
    mark = f"course checkpoint {hints.checkpoint.id}{where} --lab"
    if not hints.is_green:
        return Step(f"Next: write lab {hints.lab.id}, then type", f"{mark} {hints.lab.id}")
    if hints.next is None:
        return Step("Every lab is green. Next: type", "course")
    said = f"Lab {hints.lab.id} is green already. Next: to go on with lab {hints.next.id}, type"
    return Step(said, f"{mark} {hints.next.id}")


def render(hints: Hints, more: RenderableType, then: RenderableType, *, is_short: bool = False) -> Group:
    """The hints up to one more than were seen, then what to do for the next one and after it.

    Where it `is_short`, only the newest is shown in full, and each other one on one line.
    """
    return Group(*_hints(hints, is_short), Text(), more, then)


def _hints(hints: Hints, is_short: bool) -> Iterator[RenderableType]:
    lab = hints.lab
    yield Text(f"Lab {lab.id}: {lab.title}", style="bold")
    for number, text in enumerate(lab.hints[: hints.level], 1):
        head = f"Hint {number} of {len(lab.hints)}" + (" (seen before)" if number <= hints.seen else "")
        if is_short and number < hints.level:
            yield Text(f"{head}: {text}", no_wrap=True, overflow="ellipsis")
        else:
            yield Text(f"\n{head}", style="bold")
            yield Padding(Text(text), (0, 0, 0, 2), expand=False)
