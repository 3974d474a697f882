"""What an author got wrong: where it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from course.errors import CourseError


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake in an authored file. `line` counts from 1; 0 is the file as a whole.

    As text it is `path:line: what is wrong, and the correction`, with the path relative to the current folder
    where it lies below it, so that a terminal makes it a link.
    """

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        place = f"{shown(self.path)}:{self.line}" if self.line else shown(self.path)
        return f"{place}: {self.text}"


class AuthoringError(CourseError):
    """Authored files that cannot be used as they are. Its text has one line a problem. Exit code 1."""

    exit_code = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__("\n".join(map(str, self.problems)))


def shown(path: Path) -> str:
    """The path as an author would type it: relative to the current folder where it lies below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
