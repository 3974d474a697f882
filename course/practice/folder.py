"""Where a learner's practice folder lies, seen from where they stand."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from course.catalog import Checkpoint, checkpoints
from course.errors import CourseError
from course.marking.table import near
from course.workspace import Laid, checkpoint_in, workspace


def here(start: Path) -> Path | None:
    """The practice folder that `start` is, or lies in; None when it is outside of any."""
    if checkpoint_in(start) is not None:
        return start
    return next((folder for folder in start.parents if checkpoint_in(folder) and (folder / "agent.py").exists()), None)


def practice_home(start: Path) -> Path:
    """The folder of the practice folders: `practice` below `start`, or the one that `start` is, or lies in."""
    own = here(start)
    if own is not None:
        return own.parent
    around = (folder for folder in (start / "practice", start, *start.parents) if _is_home(folder))
    return next(around, start / "practice")


def practice_folder(checkpoint: Checkpoint, start: Path) -> Path:
    """The folder we stand in when it holds this checkpoint, else the checkpoint's among the practice folders."""
    own = here(start)
    return own if own is not None and checkpoint_in(own) == checkpoint else practice_home(start) / checkpoint.id


def named_folder(checkpoint: Checkpoint, name: Path) -> Path:
    """The folder that `name` means: itself, or the checkpoint's own below it when `name` holds practice folders."""
    below = name / checkpoint.id
    return below if not _lies(name / "agent.py") and checkpoint_in(below) == checkpoint else name


def into(checkpoint: Checkpoint, folder: Path) -> str:
    """The command that lays the checkpoint in `folder`."""
    return f"course practice {checkpoint.id}{_unless_usual('--into', checkpoint, folder)}"


def option(checkpoint: Checkpoint, folder: Path) -> str:
    """The option with which a command finds the checkpoint in `folder`; "" where it does so by itself."""
    return _unless_usual("--in", checkpoint, folder)


def _unless_usual(name: str, checkpoint: Checkpoint, folder: Path) -> str:
    if folder.resolve() == practice_folder(checkpoint, Path.cwd()).resolve():
        return ""
    return f" {name} {shlex.quote(near(str(folder)))}"


def lay(checkpoint: Checkpoint, folder: Path) -> Laid:
    """Lay the starter, notebook and test into `folder`, and never over a file that is there."""
    return workspace(checkpoint, checkpoint.starter.read_bytes(), folder)


def find_agent(checkpoint: Checkpoint, folder: Path) -> Path:
    """The learner's `agent.py` in `folder`. Raises CourseError, with the command to type, when there is none."""
    agent_py = folder / "agent.py"
    if agent_py.is_file():
        return agent_py
    name, command = near(str(agent_py)), into(checkpoint, folder)
    if _lies(agent_py):
        raise CourseError(f"{name} is {_kind(agent_py)}, not a file. Move it away, then lay the starter:\n  {command}")
    raise CourseError(f"There is no {name}. Lay the starter there first:\n  {command}")


def _is_home(folder: Path) -> bool:
    return any(checkpoint_in(folder / one.id) == one for one in checkpoints().values())


def _lies(path: Path) -> bool:
    """True when anything lies there, be it a link to nothing."""
    return os.path.lexists(path)


def _kind(path: Path) -> str:
    if not path.exists():
        return "a link to a file that is not there"
    mode = path.stat().st_mode
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a named pipe"))
    return next((name for is_one, name in kinds if is_one(mode)), "a device or a socket")
