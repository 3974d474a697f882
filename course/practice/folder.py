"""Where a learner's practice folder lies, seen from where they stand."""

from __future__ import annotations

from pathlib import Path

from course.catalog import Checkpoint
from course.errors import CourseError
from course.workspace import Laid, checkpoint_in, workspace


def practice_home(start: Path) -> Path:
    """The folder of the practice folders: `practice` below `start`, or the one above when `start` is one of them."""
    return start.parent if checkpoint_in(start) is not None else start / "practice"


def practice_folder(checkpoint: Checkpoint, start: Path) -> Path:
    """`start` itself when it holds this checkpoint, else the checkpoint's folder among the practice folders."""
    return start if checkpoint_in(start) == checkpoint else practice_home(start) / checkpoint.id


def lay(checkpoint: Checkpoint, folder: Path) -> Laid:
    """Lay the starter, notebook and test into `folder`, and never over a file that is there."""
    return workspace(checkpoint, checkpoint.starter.read_bytes(), folder)


def find_agent(checkpoint: Checkpoint, folder: Path) -> Path:
    """The learner's `agent.py` in `folder`. Raises CourseError, with the command to type, when there is none."""
    agent_py = folder / "agent.py"
    if agent_py.is_file():
        return agent_py
    into = "" if folder == practice_folder(checkpoint, Path.cwd()) else f" --into {folder}"
    raise CourseError(f"There is no {agent_py}. Lay the starter there first: course practice {checkpoint.id}{into}")
