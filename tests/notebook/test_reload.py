from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import ExecutionInfo
from toy import CHECKPOINT, SOLUTION, replaced

from course import stand_in
from course.agent.errors import AgentBusyError
from course.notebook.reload import Reloader

TWICE = replaced("self.value += n", "self.value += 2 * n")


class Desk:
    """A learner's file, a notebook's namespace, and the reloader between them."""

    def __init__(self, folder: Path) -> None:
        self.agent_py = folder / "agent.py"
        self.names: dict[str, Any] = {}
        self.save(SOLUTION)
        self.reloader = Reloader(stand_in.install(CHECKPOINT, self.agent_py), self.names)

    def save(self, source: str) -> None:
        self.agent_py.write_text(source, encoding="utf-8")

    def tell(self, source: str) -> None:
        """What IPython does before it runs a cell."""
        self.reloader.before_cell(ExecutionInfo(source, False, False, True, None))

    def cell(self, source: str) -> None:
        self.tell(source)
        exec(source, self.names)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    yield Desk(tmp_path)
    stand_in.uninstall()


def test_a_saved_change_is_in_the_next_cell_under_the_names_that_are_bound(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.cell("from agent import Counter; from course.agent.toy import Counter as Zaehler; import agent")
    desk.save(TWICE)
    desk.cell("values = Counter().add(), Zaehler().add(), agent.Counter().add()")
    assert desk.names["values"] == (2, 2, 2)
    assert desk.names["Counter"] is desk.names["Zaehler"] is sys.modules["course.agent.toy"].Counter
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert said.startswith("agent.py, saved at ")
    assert said.endswith("is loaded: Counter, Zaehler.\n")


def test_an_unchanged_file_is_not_loaded_again(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.cell("from agent import Counter")
    before = desk.names["Counter"]
    desk.save(SOLUTION)  # touched, with the same content
    desk.cell("counter = Counter()")
    assert desk.names["Counter"] is before
    assert capsys.readouterr().out == ""


def test_a_file_that_no_cell_has_imported_is_left_alone(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.save("raise RuntimeError")
    desk.cell("x = 1")
    assert capsys.readouterr() == ("", "")


def test_objects_and_subclasses_of_the_old_code_are_named_and_left_as_they_are(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.cell("from agent import Counter; mine = Counter()\nclass Loud(Counter): pass")
    desk.save(TWICE)
    desk.cell("value = mine.add()")
    assert desk.names["value"] == 1
    assert "Still on the old code, until you make them again: mine, Loud." in capsys.readouterr().out
    desk.cell("mine = Counter()")
    desk.save(SOLUTION + "\nMORE = 1\n")
    desk.cell("")
    assert "make them again: mine, Loud." in capsys.readouterr().out, "an object of the second version is old by now"


def test_what_the_cell_itself_makes_anew_is_not_called_old(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.cell("from agent import Counter; mine = Counter(); other = Counter()\nclass Loud(Counter): pass")
    desk.save(TWICE)
    desk.cell("mine = Counter()\nclass Loud(Counter): pass")
    assert "make them again: other." in capsys.readouterr().out


@pytest.mark.parametrize("cell", ["%mark", "%mark 9.1\n", "# my marks\n\n%mark 9.1\n%mark 9.2"])
def test_before_a_cell_that_only_marks_nothing_is_loaded_and_nothing_said(
    desk: Desk, capsys: pytest.CaptureFixture[str], cell: str
) -> None:
    desk.cell("from agent import Counter")
    desk.save(TWICE)
    desk.tell(cell)
    assert capsys.readouterr() == ("", "")
    desk.cell("two = Counter().add()")
    assert desk.names["two"] == 2
    assert "is loaded" in capsys.readouterr().out


def test_a_name_that_the_new_file_lacks_stays_and_is_named(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.save(SOLUTION + "\ndef double(n): return 2 * n\n")
    desk.cell("from agent import double")
    desk.save(SOLUTION)
    desk.cell("four = double(2)")
    assert desk.names["four"] == 4
    assert "until you make them again: double." in capsys.readouterr().out


def test_functions_and_constants_are_bound_anew(desk: Desk) -> None:
    desk.save("LIMIT = ['a']\n\ndef double(n): return 2 * n\n")
    desk.cell("from agent import LIMIT, double")
    desk.save("LIMIT = ['b']\n\ndef double(n): return n + n + 0.5\n")
    desk.cell("seen = LIMIT, double(1)")
    assert desk.names["seen"] == (["b"], 2.5)


def test_names_of_the_notebooks_own_are_never_touched(desk: Desk) -> None:
    desk.cell("import agent\nclass Counter: 'mine'")
    desk.save(TWICE)
    desk.cell("")
    assert desk.names["Counter"].__doc__ == "mine"


def test_an_except_clause_knows_the_error_of_the_new_code(desk: Desk) -> None:
    source = "from course.agent.errors import AgentBusyError\n\ndef prompt():\n    raise AgentBusyError('{}')\n"
    desk.save(source.format("first"))
    desk.cell("from agent import prompt\nfrom course.agent import AgentBusyError")
    desk.save(source.format("second"))
    desk.cell("try:\n    prompt()\nexcept AgentBusyError as error:\n    caught = str(error)")
    assert desk.names["caught"] == "second"
    assert desk.names["AgentBusyError"] is AgentBusyError


def test_a_class_of_the_same_name_in_the_learners_file_does_not_take_the_courses_place(desk: Desk) -> None:
    desk.save("from course.agent.errors import AgentBusyError\n")
    desk.cell("import agent\nfrom course.agent import AgentBusyError")
    desk.save("class AgentBusyError(Exception): 'another one'\n")
    desk.cell("theirs = agent.AgentBusyError")
    assert desk.names["AgentBusyError"] is AgentBusyError
    assert desk.names["theirs"].__doc__ == "another one"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("def add(:\n", "line 1: SyntaxError: invalid syntax"),
        ("\n\nraise ValueError('no')\n", "line 3: ValueError: no"),
        ("exit(3)\n", "line 1: SystemExit: 3"),
        ("import numpy_that_is_not_there\n", "line 1: ModuleNotFoundError: No module named"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_said_before_every_cell_and_the_old_code_goes_on(
    desk: Desk, capsys: pytest.CaptureFixture[str], broken: str, says: str
) -> None:
    desk.cell("from agent import Counter")
    desk.save(broken)
    desk.cell("one = Counter().add()")
    desk.cell("from agent import Counter as Again; from course.agent.toy import Counter as Third")
    assert desk.names["one"] == 1
    assert desk.names["Counter"] is desk.names["Again"] is desk.names["Third"]
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert said[0] == said[1]
    assert f"agent.py cannot be loaded: {says}" in said[0]
    assert "Cells go on with the version loaded before" in said[0]


def test_a_broken_file_runs_once_a_save_and_a_mended_one_is_loaded(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.cell("from agent import Counter")
    desk.save("print('runs')\nraise ValueError\n")
    desk.cell("")
    desk.cell("")
    assert capsys.readouterr().out == "runs\n"
    desk.save(TWICE)
    desk.cell("two = Counter().add()")
    assert desk.names["two"] == 2


def test_a_file_taken_back_to_what_is_loaded_is_not_called_broken_any_more(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.cell("from agent import Counter")
    desk.save("def add(:\n")
    desk.cell("")
    desk.save(SOLUTION)
    capsys.readouterr()
    desk.cell("")
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_while_the_file_loads_keeps_the_old_code(desk: Desk) -> None:
    desk.cell("from agent import Counter")
    desk.save("raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        desk.cell("")
    assert importlib.import_module("agent").Counter is desk.names["Counter"]


def test_a_file_that_is_gone_is_said(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.cell("from agent import Counter")
    desk.agent_py.unlink()
    desk.cell("one = Counter().add()")
    assert desk.names["one"] == 1
    assert capsys.readouterr().err.startswith("agent.py is gone or cannot be read.")
