"""The public face of `course.agent`: the list of its names, read from both sides, each handed on when it is used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path
from types import FunctionType

import pytest

import course.agent

SOURCE = Path(course.agent.__file__)
ROOT = SOURCE.parent.parent.parent
CONTRACT = """
    UserMessage AssistantMessage ToolResultMessage Text ToolCall Transcript
    TextDelta ToolCallStart ToolCallDelta Done ModelRequest Model ScriptedModel say call Signal
    EventStream Tool tool ToolRegistry run_agent_loop RunResult
    Agent AgentState reduce_agent_state AGENT_OWNED RUN_OWNED Limits wait_idle
    AgentBusyError AgentLimitError
"""


def imported_for_type_checkers() -> dict[str, str]:
    """Name → module, from the ordinary imports in `course/agent/__init__.py`."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(SOURCE.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("course.agent."):
            for alias in node.names:
                assert alias.asname == alias.name, f"{alias.name} is not re-exported"
                found[alias.name] = node.module.removeprefix("course.agent.")
    return found


def modules() -> list[str]:
    return sorted(path.stem for path in SOURCE.parent.glob("*.py") if path.stem != "__init__")


def layers() -> dict[str, int]:
    """Module → how many layers lie below it, as the linter's contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    [contract] = [each for each in settings["contracts"] if each["containers"] == ["course.agent"]]
    lowest_first = reversed(contract["layers"])
    return {module.strip(" ()"): place for place, layer in enumerate(lowest_first) for module in layer.split("|")}


def run(code: str, given: str = "") -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_what_type_checkers_see_is_what_can_be_imported() -> None:
    assert imported_for_type_checkers() == course.agent._MODULE_OF
    assert sorted(course.agent._MODULE_OF) == course.agent.__all__


def test_every_name_that_the_contract_promises_is_public() -> None:
    assert set(CONTRACT.split()) <= set(course.agent.__all__)


@pytest.mark.parametrize("name", course.agent.__all__)
def test_every_public_name_is_the_one_its_module_defines(name: str) -> None:
    module = importlib.import_module(f"course.agent.{course.agent._MODULE_OF[name]}")
    value = getattr(course.agent, name)
    assert value is getattr(module, name)
    if isinstance(value, type | FunctionType):
        assert value.__module__ == module.__name__
        assert value.__doc__
    assert name in dir(course.agent)


def test_no_public_name_is_also_a_modules() -> None:
    assert not set(course.agent.__all__) & set(modules())  # importing that module would put it in the name's place


def test_every_error_of_ours_is_public() -> None:
    errors = importlib.import_module("course.agent.errors")
    defined = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert defined <= set(course.agent.__all__)
    for name in defined:
        assert issubclass(getattr(errors, name), course.agent.CourseAgentError)
        assert getattr(errors, name).__doc__


def test_a_name_that_is_not_there_is_an_attribute_error_and_an_import_error() -> None:
    with pytest.raises(AttributeError, match=r"'course\.agent' has no attribute 'Agnet'"):
        course.agent.Agnet  # type: ignore[attr-defined] # noqa: B018
    with pytest.raises(ImportError, match="Agnet"):
        exec("from course.agent import Agnet")


def test_a_star_import_gives_every_name() -> None:
    names: dict[str, object] = {}
    exec("from course.agent import *", names)
    assert set(course.agent.__all__) <= set(names)


def test_the_linters_layers_hold_every_module() -> None:
    assert sorted(layers()) == modules()


IMPORT_IN_ORDER = """
import importlib, sys
for module in sys.stdin.read().split():
    importlib.import_module(f"course.agent.{module}")
    print(module, *[name.rpartition(".")[2] for name in sys.modules if name.startswith("course.agent.")])
"""


def test_importing_a_module_in_a_fresh_process_imports_no_higher_one() -> None:
    loaded: list[str] = []
    lowest_first = sorted(modules(), key=lambda module: layers()[module])
    for line in run(IMPORT_IN_ORDER, given=" ".join(lowest_first)).splitlines():
        module, *loaded = line.split()
        assert [other for other in loaded if layers()[other] > layers()[module]] == []
    assert set(loaded) == set(modules())


def test_importing_the_package_imports_nothing() -> None:
    assert run("import sys, course.agent; print([n for n in sys.modules if n.startswith('course.agent.')])") == "[]"


BROKEN_AGENT = """
import sys, importlib.abc, importlib.util

class Broken(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "course.agent.agent" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        raise NotImplementedError("Lab 9.1")

sys.meta_path.insert(0, Broken())
import course.agent
from course.agent import ScriptedModel, run_agent_loop, tool
for name in course.agent.__all__:
    try:
        getattr(course.agent, name)
    except NotImplementedError:
        print(name)
"""


def test_a_broken_agent_module_takes_no_lower_name_with_it() -> None:
    own = {name for name, module in course.agent._MODULE_OF.items() if module == "agent"}
    assert set(run(BROKEN_AGENT).split()) == own
