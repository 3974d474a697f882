"""The overlay: what lies in a practice folder, for a starter, a solution or a submission alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from course.catalog import Checkpoint, checkpoints
from course.errors import CourseError


@dataclass(frozen=True)
class Laid:
    """What laying a workspace did: the files it wrote and the ones it found and left alone."""

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def workspace(checkpoint: Checkpoint, agent_py: bytes, folder: Path) -> Laid:
    """Lay the checkpoint's notebook, its focused test and `agent_py` into `folder`.

    Never writes over a file that exists, whatever it holds. Raises CourseError when the folder already holds
    another checkpoint, or cannot be made.
    """
    other = checkpoint_in(folder)
    if other is not None and other.id != checkpoint.id:
        raise CourseError(
            f"{folder} already holds checkpoint {other.id}, and two checkpoints cannot share one agent.py. "
            f"Choose another folder: `course practice {checkpoint.id} --into DIR`."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new = {name: _write_new(folder / name, content) for name, content in overlay(checkpoint, agent_py).items()}
    except OSError as error:
        raise CourseError(f"{folder} cannot be written: {error.strerror}. Choose a folder of yours.") from error
    return Laid(
        written=tuple(folder / name for name, is_new in new.items() if is_new),
        kept=tuple(folder / name for name, is_new in new.items() if not is_new),
    )


def overlay(checkpoint: Checkpoint, agent_py: bytes) -> dict[str, bytes]:
    """The files of a workspace by name: the checkpoint's notebook, its focused test, and `agent_py`."""
    return {
        checkpoint.notebook.name: checkpoint.notebook.read_bytes(),
        checkpoint.test.name: checkpoint.test.read_bytes(),
        "agent.py": agent_py,
    }


def checkpoint_in(folder: Path) -> Checkpoint | None:
    """The checkpoint whose notebook lies in `folder`, or None."""
    for checkpoint in checkpoints().values():
        if (folder / checkpoint.notebook.name).exists():
            return checkpoint
    return None


def _write_new(path: Path, content: bytes) -> bool:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        return False
    return True
