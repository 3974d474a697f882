"""The list of checkpoints and labs, and where each one's files lie."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from course.errors import CourseError

PACKAGE = Path(__file__).resolve().parent


class Lab(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One lab: its id ("9.2"), title, the number of focused tests that must run, and up to three hints."""

    id: str
    title: str
    tests: int
    optional: bool = False
    hints: tuple[str, ...] = ()


class Checkpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One checkpoint: a module of `course.agent`, its notebook, starter, solution, tests and labs.

    `minutes` is the time a learner should plan for. All paths are absolute and derived from `id`, `slug` and
    `package`, the folder of the `course` package that the catalog was read from.
    """

    id: str
    slug: str
    title: str
    module: str
    minutes: int
    labs: tuple[Lab, ...] = msgspec.field(name="lab")
    package: Path = PACKAGE

    @property
    def name(self) -> str:
        """`09_stateful_agent`: the stem of the notebook and, with `test_` before it, of the focused test."""
        return f"{self.id}_{self.slug}"

    @property
    def root(self) -> Path:
        """The folder that holds its labs/, starters/, solutions/ and tests/."""
        return root(self.package)

    @property
    def notebook(self) -> Path:
        return self.root / "labs" / f"{self.name}.ipynb"

    @property
    def starter(self) -> Path:
        return self.root / "starters" / self.id / "agent.py"

    @property
    def solution(self) -> Path:
        return self.root / "solutions" / self.id / "agent.py"

    @property
    def test(self) -> Path:
        return self.root / "tests" / "checkpoints" / f"test_{self.name}.py"

    @property
    def source(self) -> Path:
        """The finished module with its markers: the only hand-written version."""
        return self.package / "agent" / f"{self.module}.py"

    @property
    def mistakes(self) -> Path:
        """Wrong solutions that its tests must turn red, and different right ones that they must not."""
        return self.root / "tests" / "mistakes" / f"mistakes_{self.id}.py"

    @property
    def import_name(self) -> str:
        return f"course.agent.{self.module}"

    def find_lab(self, id: str) -> Lab:
        """The lab with this id. Raises CourseError naming the labs there are."""
        for lab in self.labs:
            if lab.id == id:
                return lab
        known = ", ".join(lab.id for lab in self.labs)
        raise CourseError(f"Checkpoint {self.id} has no lab {id!r}. Its labs are {known}.")


class _File(msgspec.Struct, forbid_unknown_fields=True):
    checkpoint: tuple[Checkpoint, ...]


def root(package: Path = PACKAGE) -> Path:
    """The folder that holds labs/, starters/, solutions/ and tests/: the checkout, or the wheel's data folder."""
    checkout = package.parent
    return checkout if (checkout / "labs").is_dir() else package / "data"


@functools.cache
def checkpoints() -> Mapping[str, Checkpoint]:
    """All checkpoints by id, in the course's order."""
    return read(PACKAGE)


def read(package: Path) -> Mapping[str, Checkpoint]:
    """All checkpoints by id, as `catalog.toml` in the folder of this `course` package has them."""
    text = (package / "catalog.toml").read_text(encoding="utf-8")
    file = msgspec.convert(tomllib.loads(text), _File)
    return {checkpoint.id: msgspec.structs.replace(checkpoint, package=package) for checkpoint in file.checkpoint}


def find_checkpoint(id: str) -> Checkpoint:
    """The checkpoint with this id; "9" means "09". Raises CourseError naming the checkpoints there are."""
    found = checkpoints().get(id.zfill(2))
    if found is None:
        known = ", ".join(checkpoints())
        raise CourseError(f"There is no checkpoint {id!r}. There is {known}: try `course practice {known[:2]}`.")
    return found


def find_lab(id: str) -> tuple[Checkpoint, Lab]:
    """The lab with this id, "9.2", and its checkpoint. Raises CourseError naming those there are."""
    checkpoint = find_checkpoint(id.partition(".")[0])
    return checkpoint, checkpoint.find_lab(id)


def later_modules(checkpoint: Checkpoint) -> frozenset[str]:
    """Modules of `course.agent` that belong to checkpoints after this one."""
    return frozenset(other.module for other in checkpoints().values() if other.id > checkpoint.id)
