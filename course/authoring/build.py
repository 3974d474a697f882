"""Starters and solutions, built from the one hand-written version of each module."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from course.authoring.problem import Problem
from course.authoring.views import read_source
from course.catalog import Checkpoint

COMMAND = "python -m course.authoring build"


@dataclass(frozen=True)
class Built:
    """What a built file must hold."""

    path: Path
    content: bytes

    @property
    def is_stale(self) -> bool:
        return not self.path.is_file() or self.path.read_bytes() != self.content

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.content)


def build(checkpoint: Checkpoint) -> tuple[Built, Built]:
    """The checkpoint's starter and solution, as they must lie in the repository.

    Each is a view of the module below a short header. Raises AuthoringError where its markers are wrong.
    """
    source = read_source(checkpoint)
    return (
        Built(checkpoint.starter, (_starter_header(checkpoint) + source.starter).encode()),
        Built(checkpoint.solution, (_solution_header(checkpoint) + source.solution).encode()),
    )


def stale_problems(files: Iterable[Built]) -> Iterator[Problem]:
    """One problem for each built file that is missing or differs from what `build` would write."""
    for file in files:
        if file.is_stale:
            what = "differs from course/agent" if file.path.exists() else "is missing"
            yield Problem(file.path, 0, f"{what}. Never edit it by hand; run `{COMMAND}`.")


def _starter_header(checkpoint: Checkpoint) -> str:
    return (
        f"# Checkpoint {checkpoint.id}, {checkpoint.title}. This file is yours: write what raises\n"
        f"# NotImplementedError, lab by lab. Mark it with: course checkpoint {checkpoint.id}\n\n"
    )


def _solution_header(checkpoint: Checkpoint) -> str:
    module = checkpoint.import_name.replace(".", "/")
    return (
        f"# Checkpoint {checkpoint.id}, {checkpoint.title}: the solution.\n"
        f"# Built from {module}.py by `{COMMAND}`; edit that file instead.\n\n"
    )
