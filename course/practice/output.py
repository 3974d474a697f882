"""Where a command's output goes, and what becomes of it when it cannot go there.

rich is imported when something is drawn: a marking starts its processes before that.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from course.errors import CannotMarkError

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """What to print tables and colours on. Raises BrokenPipeError when nobody reads it any more."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            """Rich would exit with 1, which means red."""
            raise BrokenPipeError

    return Output(markup=False, emoji=False, highlight=False)


def say(words: str, command: str) -> None:
    """Print what to do next, with the command for it in one piece."""
    from course.marking.table import Step

    console().print(Step(words, command), crop=False)


def cannot_go_on(error: OSError) -> CannotMarkError:
    """What to end with when output cannot be written; without a text where its reader has had enough."""
    if isinstance(error, BrokenPipeError):
        return CannotMarkError("")
    place = f" ({error.filename})" if error.filename is not None else ""
    return CannotMarkError(f"The command cannot go on: {error.strerror or error}{place}.")


def flush() -> None:
    """Have everything written that was printed. Raises OSError when it cannot be."""
    if sys.stdout is not None:  # as it is when the shell closed it
        sys.stdout.flush()


def forget() -> None:
    """What could not be written is not tried again at the end, which would be told on standard error."""
    try:
        flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
