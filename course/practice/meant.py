"""What a command's arguments mean: which checkpoint, and which of its labs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from course.catalog import Checkpoint, Lab, checkpoints, find_checkpoint, find_lab
from course.errors import CourseError
from course.workspace import checkpoint_in


def chosen(number: str | None, lab: str | None = None, folder: Path | None = None) -> tuple[Checkpoint, Lab | None]:
    """The checkpoint and the one lab that are meant; None for all of its labs. Raises CourseError for two labs."""
    checkpoint, labs = chosen_labs([] if number is None else [number], [] if lab is None else [lab], folder)
    if len(labs) > 1:
        raise CourseError(f"One lab at a time: {' or '.join(labs)}?")
    return checkpoint, checkpoint.find_lab(labs[0]) if labs else None


def chosen_labs(ids: Sequence[str], labs: Sequence[str], folder: Path | None) -> tuple[Checkpoint, tuple[str, ...]]:
    """The checkpoint that is meant, and the labs, each once; none for all of them.

    Among `ids` are numbers of a checkpoint and ids of labs. With none of either it is the checkpoint that lies in
    `folder`, else the one whose practice folder we stand in, else the one to go on with.
    """
    found = [find(id) for id in (*ids, *(lab for lab in labs if "." in lab))]
    checkpoint = found[0][0] if found else _checkpoint_here(folder)
    if apart := next((id for id, (other, _) in zip(ids, found, strict=False) if other != checkpoint), None):
        raise CourseError(f"One checkpoint at a time: {ids[0]} or {apart}?")
    named = [lab.id for _, lab in found[: len(ids)] if lab is not None]
    return checkpoint, tuple(dict.fromkeys([*named, *(_lab_of(checkpoint, id).id for id in labs)]))


def find(id: str) -> tuple[Checkpoint, Lab | None]:
    """The checkpoint with this number, or the one of the lab with this id, and the lab."""
    return find_lab(id.lstrip("0")) if "." in id else (find_checkpoint(id), None)


def _lab_of(checkpoint: Checkpoint, id: str) -> Lab:
    """The lab with this id; in its own checkpoint lab 9.2 may be called 2."""
    return checkpoint.find_lab(id.lstrip("0") if "." in id else f"{checkpoint.id.lstrip('0')}.{id}")


def _checkpoint_here(folder: Path | None) -> Checkpoint:
    from course.practice.folder import here
    from course.practice.overview import current, standings  # rich, which only this case needs

    place = here(Path.cwd()) if folder is None else folder
    found = checkpoint_in(place) if place is not None else None
    return found or current(standings(checkpoints(), Path.cwd())).checkpoint
