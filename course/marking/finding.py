"""What the tests, or the notebook's cells, say about one lab."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from course.catalog import Checkpoint
from course.marking import message
from course.marking.listen import Stop
from course.marking.steps import CUT_SHORT, Fault, Frame
from course.marking.verdict import Word

_SLIPS = ("NameError", "UnboundLocalError", "TypeError", "ImportError", "ModuleNotFoundError")
"""What says all there is to say: no rule of the lab explains it."""

_STUB = re.compile(r"\bLab (\d+\.\d+): ")
_ENDS = re.compile(r"""\n|['"]\)|['"]$""")


class Finding(msgspec.Struct, frozen=True):
    """A word, how many tests or cells passed, and for whatever is not green: why and where."""

    word: Word
    passed: int = 0
    message: str | None = None
    where: str | None = None


class Place(msgspec.Struct, frozen=True):
    """What every finding of one marking is about: the learner's file, and the checkpoint it is marked against."""

    checkpoint: Checkpoint
    learner: Path

    def command(self, lab: str) -> str:
        return f"course checkpoint {self.checkpoint.id} --lab {lab}"

    def of(self, frames: Sequence[Frame]) -> str | None:
        """`path:line` of the innermost of `frames` in the learner's file, else in the test beside it."""
        for frame in reversed(frames):
            if frame.path == str(self.learner):
                return f"{frame.path}:{frame.line}"
        for frame in reversed(frames):
            if Path(frame.path).name == self.checkpoint.test.name:
                copy = self.learner.parent / self.checkpoint.test.name
                return f"{copy if copy.exists() else self.checkpoint.test}:{frame.line}"
        return None


def from_fault(
    place: Place, lab: str, expected: str, fault: Fault | None, printed: str = "", rule: str = ""
) -> Finding:
    """The finding for a test or cell of `lab` that was to do `expected`, because of `rule`, and did not pass."""
    if fault is None:
        return Finding("red", 0, f"Expected: {expected}.\nCame: it was skipped, and only what ran and passed counts.")
    where = place.of(fault.mine or fault.frames)
    if fault.kind == "EqualToAnything":
        return Finding("tampered", 0, equal_to_anything(fault.text))
    if fault.kind == CUT_SHORT:
        return Finding("red", 0, f"Expected: {expected}.\n{_SWALLOWED}", where)
    if fault.kind in ("SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        text = f"Expected: {expected}.\nCame: the code ended the process ({fault.kind}), instead of returning."
        return Finding("crashed", 0, text, where)
    stub = missing_lab(place.checkpoint, fault)
    if stub is not None:
        return _not_written(place, lab, stub, where)
    return Finding("red", 0, message.for_fault(expected, fault, printed, "" if fault.kind in _SLIPS else rule), where)


def _not_written(place: Place, lab: str, stub: tuple[str, str], where: str | None) -> Finding:
    needed, text = stub
    if needed == lab:
        return Finding("not_attempted", 0, f"{text}. That is still to be written.", where)
    ids = [one.id for one in place.checkpoint.labs]
    if ids.index(needed) < ids.index(lab):
        why = f"Lab {lab} needs lab {needed}, which is not written yet ({text}).\nFirst: {place.command(needed)}"
        return Finding("not_run", 0, why, where)
    why = f"Your lab {lab} calls code of lab {needed}, which is not written yet ({text}). Let lab {lab} do without it."
    return Finding("red", 0, why, where)


def missing_lab(checkpoint: Checkpoint, fault: Fault) -> tuple[str, str] | None:
    """The lab whose skeleton's NotImplementedError lies behind `fault`, and its text; None when none does.

    It may have come wrapped: as a cause, in a group, or as text in a run's error.
    """
    candidates = [fault.stub] if fault.stub else []
    if "NotImplementedError" in fault.text or fault.kind == "NotImplementedError":
        candidates.append(fault.text)
    for text in candidates:
        found = _STUB.search(text)
        if found and any(lab.id == found[1] for lab in checkpoint.labs):
            return found[1], _ENDS.split(text[found.start() :], maxsplit=1)[0]
    return None


def from_stop(place: Place, expected: str, stop: Stop) -> Finding:
    """The finding for the test or cell in which the process stopped."""
    frames = [frame for frame in stop.stack if frame.path == str(place.learner)]
    dumped = frames or [frame for frame in dumped_in(stop.errors) if frame.path == str(place.learner)]
    where = f"{dumped[0].path}:{dumped[0].line}" if dumped else None
    came = stop.text + (f" It was at {message.short_place(dumped[0])}." if dumped else "")
    text = f"Expected: {expected}.\nCame: {came}" if stop.word != "error" else f"{stop.text}\n{stop.errors}".strip()
    return Finding(stop.word, 0, text, where)


def dumped_in(errors: str) -> Sequence[Frame]:
    from course.marking.contained import dumped_frames

    return dumped_frames(errors) if "Fatal Python error" in errors else ()


def equal_to_anything(kind: str) -> str:
    return (
        f"An object of class {kind} says that it equals anything at all, so no comparison with it proves anything. "
        "Give it an honest __eq__, or none."
    )


_SWALLOWED = (
    "Came: the test was cut short inside its `with` block, and the error that did it was swallowed.\n"
    "Why: an `__exit__` or `__aexit__` that returns True, or anything true, hides every error of its block."
)

RIGGED = (
    "A check that must fail has passed: something in your agent.py changes how checks are made, or what is reported "
    "of them. No lab can be marked until that is gone."
)
