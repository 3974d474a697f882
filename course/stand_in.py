"""The learner's `agent.py` in the place of the finished module: one module object under two names.

While it stands in, `import agent` and `import course.agent.<module>` give the same module, made from the
learner's file, and neither the finished module nor those of later checkpoints can be imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType

from course.catalog import Checkpoint, later_modules

_LATER = "belongs to a later checkpoint; {module} may use only earlier modules and the given parts."
_DEMO_ONLY = "is for cells tagged `demo`, which are left out when a file is marked; use {module} here."
_OURS = "holds the course's own answers, and importing one is not an answer; write {module} yourself."
_TOOLS = "is a tool of the course; {module} may use only earlier modules of course.agent and the given parts."

_FOR_CELLS = ("chart", "extension", "live", "moments", "picture", "reload", "stage", "timeline")
_OPEN_WHILE_MARKING = ("course.agent", *(f"course.notebook.{name}" for name in _FOR_CELLS))
"""What of `course` a notebook's cells use. Beside it nothing of ours can be imported while a file is marked."""

_ANSWERS = ("benchmarks", "solutions", "starters", "tests", "course.authoring", "course.data")


def install(checkpoint: Checkpoint, agent_py: Path, source: bytes | None = None, *, marking: bool = False) -> StandIn:
    """Put `agent_py` in the place of the checkpoint's finished module, for every import from now on.

    `source` is what to run, where it must be the bytes that were hashed; by default the file is read at each
    import. Modules that it replaces or closes are forgotten if they were loaded. While `marking`, the ways to our
    answers and to the tools of the course are closed as well: whoever needs one has to have imported it before.
    """
    uninstall()
    stand_in = StandIn(checkpoint, agent_py, source, marking=marking)
    stand_in.forget()
    sys.meta_path.insert(0, stand_in)
    return stand_in


def uninstall() -> None:
    """Undo `install`; modules from the learner's file are forgotten. Does nothing where none stands in."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, StandIn)]:
        sys.meta_path.remove(finder)
        finder.forget()


def installed() -> StandIn | None:
    """What stands in now, or None."""
    return next((finder for finder in sys.meta_path if isinstance(finder, StandIn)), None)


class StandIn(importlib.abc.MetaPathFinder):
    """Finds the learner's file under both names, and refuses the modules of later checkpoints."""

    def __init__(self, checkpoint: Checkpoint, agent_py: Path, source: bytes | None, *, marking: bool = False) -> None:
        self.checkpoint = checkpoint
        self.agent_py = agent_py
        self.source = source
        self.marking = marking
        self._later = frozenset(f"course.agent.{module}" for module in later_modules(checkpoint))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "agent":
            return importlib.machinery.ModuleSpec(fullname, _Alias(self.checkpoint.import_name))
        if fullname == self.checkpoint.import_name:
            loader = _Learner(fullname, self.agent_py, self.source)
            return importlib.util.spec_from_file_location(fullname, self.agent_py, loader=loader)
        why = self._why_closed(fullname)
        if why is not None:
            told = why.format(module=self.checkpoint.import_name)
            raise ModuleNotFoundError(f"{fullname} {told}", name=fullname)
        return None

    def _why_closed(self, name: str) -> str | None:
        """The reason why this module cannot be imported, None when it can."""
        if name in self._later:
            return _LATER
        if not self.marking:
            return None
        if name == "course.notebook.finished":
            return _DEMO_ONLY
        if _is_in(name, _ANSWERS):
            return _OURS
        is_open = name in ("course", "course.notebook") or _is_in(name, _OPEN_WHILE_MARKING)
        return _TOOLS if _is_in(name, ("course",)) and not is_open else None

    def forget(self) -> None:
        """Drop the modules that this finder decides about, so that the next import asks it again."""
        for name in list(sys.modules):
            if name in ("agent", self.checkpoint.import_name) or self._why_closed(name) is not None:
                del sys.modules[name]
                package, _, child = name.rpartition(".")
                if package in sys.modules:
                    sys.modules[package].__dict__.pop(child, None)

    def loaded(self) -> ModuleType | None:
        """The module made from the learner's file, None where none has been imported yet."""
        return sys.modules.get(self.checkpoint.import_name)

    def source_of(self, module: ModuleType) -> bytes | None:
        """The bytes that `module` was made from, None when it did not come from here."""
        loader = module.__spec__ and module.__spec__.loader
        return loader.compiled if isinstance(loader, _Learner) else None

    def reload(self) -> ModuleType:
        """Make the module anew from the learner's file, for every import from now on.

        Raises what the file raises; the module that was loaded before is then still the one that imports give.
        """
        old = self.loaded()
        self.forget()
        try:
            return importlib.import_module(self.checkpoint.import_name)
        except BaseException:
            if old is not None:
                self._put_back(old)
            raise

    def _put_back(self, module: ModuleType) -> None:
        sys.modules[self.checkpoint.import_name] = module
        package, _, name = self.checkpoint.import_name.rpartition(".")
        setattr(sys.modules[package], name, module)


def _is_in(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


class _Learner(importlib.machinery.SourceFileLoader):
    """Compiles the given bytes each time: bytecode from an earlier run is never used."""

    def __init__(self, fullname: str, path: Path, source: bytes | None) -> None:
        super().__init__(fullname, str(path))
        self._source = source
        self.compiled: bytes | None = None

    def get_code(self, fullname: str) -> CodeType:
        self.compiled = self._source if self._source is not None else self.get_data(self.path)
        return compile(self.compiled, self.path, "exec", dont_inherit=True)


class _Alias(importlib.abc.Loader):
    """Loads a name as the very module object of another name."""

    def __init__(self, real: str) -> None:
        self._real = real

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        self._module = importlib.import_module(self._real)
        self._spec = self._module.__spec__
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
