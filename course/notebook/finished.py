"""The finished agent's names, for a notebook's `demo` cells: `from course.notebook.finished import Agent`.

In a practice folder `course.agent.<module>` is the learner's own file. Here its names come from ours all the same, and
every other name is the one that `course.agent` has. While a learner's file is marked, this module cannot be imported.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from course import stand_in


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    agent = importlib.import_module("course.agent")
    ours = stand_in.installed()
    if ours is None:
        return getattr(agent, name)
    module = _load(ours.checkpoint.source)
    return getattr(module, name) if hasattr(module, name) else getattr(agent, name)


@functools.cache
def _load(source: Path) -> ModuleType:
    """The finished module, loaded under a name of its own, so that it and the learner's stand side by side."""
    name = f"{__name__}_{source.stem}"
    spec = importlib.util.spec_from_file_location(name, source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are resolved through it
    spec.loader.exec_module(module)
    return module
