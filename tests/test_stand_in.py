"""The learner's file in the place of the finished module. Each claim is tried in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PRELUDE = """
import sys
from pathlib import Path
from msgspec.structs import replace
from course import catalog, stand_in

stateful = catalog.find_checkpoint("09")
loop = replace(stateful, id="07", slug="loop", module="loop")
catalog.checkpoints = lambda: {"07": loop, "09": stateful}
mine = Path("agent.py").absolute()
"""

LEARNER = 'Agent = "mine"\nreduce_agent_state = None\n'


class Python:
    """Runs lines in a fresh interpreter, in a folder with a learner's agent.py, and gives what they print."""

    def __init__(self, folder: Path) -> None:
        self.agent_py = folder / "agent.py"
        self.agent_py.write_text(LEARNER, encoding="utf-8")

    def __call__(self, code: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PRELUDE + code],
            cwd=self.agent_py.parent,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()


@pytest.fixture
def python(tmp_path: Path) -> Python:
    return Python(tmp_path)


def test_both_names_give_one_module_made_from_the_learners_file(python: Python) -> None:
    code = """
stand_in.install(stateful, mine)
import agent
import course.agent.agent as long
from course.agent import Agent
print(agent is long, agent.Agent, Agent, agent.__file__ == str(mine), agent.__name__)
"""
    assert python(code) == ["True mine mine True course.agent.agent"]


def test_the_order_of_the_two_imports_makes_no_difference(python: Python) -> None:
    code = "stand_in.install(stateful, mine)\nimport course.agent.agent as long, agent\nprint(agent is long)"
    assert python(code) == ["True"]


def test_a_finished_module_that_was_loaded_already_is_replaced(python: Python) -> None:
    code = """
from course.agent import Agent as ours
import course.agent
stand_in.install(stateful, mine)
from course.agent import Agent
import course.agent.agent
print(ours.__name__, Agent, course.agent.agent.Agent)
"""
    assert python(code) == ["Agent mine mine"]


def test_uninstalling_brings_the_finished_module_back_and_forgets_the_learners(python: Python) -> None:
    code = """
stand_in.install(stateful, mine)
import agent
stand_in.uninstall()
from course.agent import Agent
print(Agent.__module__, "agent" in sys.modules, stand_in.installed())
stand_in.uninstall()
"""
    assert python(code) == ["course.agent.agent False None"]


def test_installing_again_leaves_one_stand_in(python: Python) -> None:
    code = """
stand_in.install(stateful, mine)
second = stand_in.install(stateful, mine)
print(sum(isinstance(finder, stand_in.StandIn) for finder in sys.meta_path), stand_in.installed() is second)
"""
    assert python(code) == ["1 True"]


def test_modules_of_later_checkpoints_cannot_be_imported_even_if_they_were_loaded(python: Python) -> None:
    code = """
import course.agent.agent
stand_in.install(loop, mine)
for line in ("import course.agent.agent", "from course.agent.agent import Agent", "from course.agent import Agent"):
    try:
        exec(line)
    except ModuleNotFoundError as error:
        print(error)
"""
    told = (
        "course.agent.agent belongs to a later checkpoint; course.agent.loop may use only earlier modules and the "
        "given parts."
    )
    assert python(code) == [told] * 3


def test_earlier_modules_and_given_parts_are_the_finished_ones(python: Python) -> None:
    code = """
stand_in.install(stateful, mine)
from course.agent.loop import run_agent_loop
from course.agent import ScriptedModel
print(run_agent_loop.__module__, ScriptedModel.__module__)
"""
    assert python(code) == ["course.agent.loop course.agent.model"]


def test_the_ways_to_our_answers_are_closed_while_marking_and_open_otherwise(python: Python) -> None:
    code = """
import course.authoring
stand_in.install(stateful, mine)
import course.authoring
stand_in.install(stateful, mine, marking=True)
for name in ("course.notebook.finished", "course.authoring", "solutions", "tests.mistakes", "course.marking.mark"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error)
"""
    assert [line.split(";")[1] for line in python(code)] == [
        " use course.agent.agent here.",
        " write course.agent.agent yourself.",
        " write course.agent.agent yourself.",
        " write course.agent.agent yourself.",
        " course.agent.agent may use only earlier modules of course.agent and the given parts.",
    ]


def test_a_tool_that_was_loaded_before_cannot_be_reached_by_its_package_while_marking(python: Python) -> None:
    code = """
import course.catalog, course.notebook.extension
stand_in.install(stateful, mine, marking=True)
import course
print(hasattr(course, "catalog"), hasattr(course, "stand_in"), course.notebook.extension.__name__)
"""
    assert python(code) == ["False False course.notebook.extension"]


def test_given_bytes_run_instead_of_the_file(python: Python) -> None:
    code = """
stand_in.install(stateful, mine, b"Agent = 'bytes'")
from agent import Agent
print(Agent, mine.read_text().split()[2])
"""
    assert python(code) == ['bytes "mine"']


def test_a_fault_is_told_with_the_learners_file_and_line(python: Python) -> None:
    code = """
import traceback
stand_in.install(stateful, mine, b"x = 1\\n1 / 0\\n")
try:
    import agent
except ZeroDivisionError as error:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    print(frame.filename == str(mine), frame.lineno)
print("agent" in sys.modules, "course.agent.agent" in sys.modules)
"""
    assert python(code) == ["True 2", "False False"]


def test_an_edit_is_seen_by_the_next_install_whatever_its_time_and_size(python: Python) -> None:
    code = """
import os
stand_in.install(stateful, mine)
from agent import Agent
before = mine.stat()
mine.write_text(mine.read_text().replace("mine", "edit"))
os.utime(mine, ns=(before.st_atime_ns, before.st_mtime_ns))
stand_in.install(stateful, mine)
from agent import Agent as again
print(Agent, again, sorted(path.name for path in Path().iterdir()))
"""
    assert python(code) == ["mine edit ['agent.py']"]


def test_a_reload_gives_the_edited_file_under_both_names(python: Python) -> None:
    code = """
finder = stand_in.install(stateful, mine)
import agent
mine.write_text("Agent = 'edited'")
new = finder.reload()
import agent, course.agent.agent as long
from course.agent import Agent
print(new is agent is long is finder.loaded(), Agent, finder.source_of(new))
"""
    assert python(code) == ["True edited b\"Agent = 'edited'\""]


def test_a_reload_that_fails_leaves_the_module_that_was_there(python: Python) -> None:
    code = """
finder = stand_in.install(stateful, mine)
import agent
mine.write_text("1 / 0")
try:
    finder.reload()
except ZeroDivisionError:
    from course.agent import Agent
    import course.agent
    print(finder.loaded() is agent, Agent, course.agent.agent is agent)
"""
    assert python(code) == ["True mine True"]
