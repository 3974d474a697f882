"""A learner's progress in one practice folder: for each lab the best verdict so far, and the last."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from course.catalog import Checkpoint, Lab
from course.marking.verdict import Verdict, Word
from course.practice.safe_file import replace_file

FILE = ".progress.json"
"""Lies in the practice folder itself, so that folder and progress can only be moved, copied or lost together."""

SECONDS_FOR_LOCK = 10


class LabProgress(msgspec.Struct, frozen=True):
    """`best` once green stays green. `sha256` is of the file that earned it, `last` how the lab stood last."""

    best: Word
    sha256: str
    last: Word


class Progress(msgspec.Struct, frozen=True):
    """What is kept of one practice folder.

    `labs` has an entry for each lab that was ever marked, `hints` for each lab how many of its hints were shown.
    """

    checkpoint: str
    labs: Mapping[str, LabProgress] = {}
    hints: Mapping[str, int] = {}

    def is_green(self, lab: str) -> bool:
        """True once the lab was green, whatever became of it since."""
        return lab in self.labs and self.labs[lab].best == "green"

    def is_green_now(self, lab: str) -> bool:
        """True when the lab was green the last time it was marked."""
        return lab in self.labs and self.labs[lab].last == "green"


def read(checkpoint: Checkpoint, folder: Path) -> Progress:
    """The progress in `folder`; empty when there is none, when it is another checkpoint's, or cannot be read."""
    try:
        found = msgspec.json.decode((folder / FILE).read_bytes(), type=Progress)
    except (OSError, msgspec.DecodeError):
        return Progress(checkpoint.id)
    return found if found.checkpoint == checkpoint.id else Progress(checkpoint.id)


def record(checkpoint: Checkpoint, folder: Path, verdict: Verdict) -> Progress:
    """Add a verdict to the progress in `folder`, and give what is there now. Raises as `change` does."""
    return change(checkpoint, folder, lambda before: add(before, verdict))


def record_hint(checkpoint: Checkpoint, folder: Path, lab: str, level: int) -> Progress:
    """Keep that so many of the lab's hints were shown, and give what is there now. Raises as `change` does."""
    return change(checkpoint, folder, lambda before: replace(before, hints={**before.hints, lab: level}))


def record_reset(checkpoint: Checkpoint, folder: Path, labs: Collection[str]) -> Progress:
    """Keep that the code of these labs was put back: they are to be written again, and what was green was green.

    Raises as `change` does.
    """

    def put_back(before: Progress) -> Progress:
        again = {id: replace(lab, last="not_attempted") for id, lab in before.labs.items() if id in labs}
        return replace(before, labs={**before.labs, **again})

    return change(checkpoint, folder, put_back)


def change(checkpoint: Checkpoint, folder: Path, step: Callable[[Progress], Progress]) -> Progress:
    """Replace the progress in `folder` by what `step` makes of it, and give that.

    The file is replaced in one step, so whatever happens it holds the old progress or the new. Two changes at once
    wait for each other, 10 s at most. A file that cannot be read is kept beside the new one, under another name.
    Raises OSError when the folder cannot be written.
    """
    from filelock import FileLock

    with FileLock(folder / f"{FILE}.lock", timeout=SECONDS_FOR_LOCK):
        _keep_unreadable(folder / FILE)
        after = step(read(checkpoint, folder))
        replace_file(folder / FILE, msgspec.json.format(msgspec.json.encode(after), indent=1))
    return after


def add(progress: Progress, verdict: Verdict) -> Progress:
    """The progress with one more verdict in it. A lab that was green stays green; any other takes the new word.

    A lab that could not be marked keeps what it had.
    """
    labs = dict(progress.labs)
    for lab in (lab for lab in verdict.labs if lab.verdict != "error"):
        before = labs.get(lab.lab)
        keeps = before is not None and before.best == "green" and not lab.is_green
        best, sha256 = (before.best, before.sha256) if before and keeps else (lab.verdict, verdict.agent.sha256)
        labs[lab.lab] = LabProgress(best, sha256, lab.verdict)
    return replace(progress, labs=labs)


def next_lab(checkpoint: Checkpoint, progress: Progress) -> Lab | None:
    """The first lab whose last verdict is not green, optional ones last; None when every lab is."""
    in_order = sorted(checkpoint.labs, key=lambda lab: lab.optional)
    return next((lab for lab in in_order if not progress.is_green_now(lab.id)), None)


def _keep_unreadable(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        try:
            msgspec.json.decode(path.read_bytes(), type=Progress)
        except msgspec.DecodeError:
            path.replace(path.with_name(f"{FILE}.unreadable"))
