"""One workspace, one verdict: what a learner's file does decides, and nothing that lies beside it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import psutil
import pytest
import toy
from corpus import AT_IMPORT, CHEATS, IN_A_LAB, RIGHT, Sample, after, in_kernel, later, show

from course.catalog import Checkpoint, Lab
from course.errors import CannotMarkError, CourseError
from course.marking.listen import Limits
from course.marking.mark import mark
from course.marking.notebook import Kernel
from course.marking.verdict import Verdict

SHORT = Limits(step=2)
"""For files that hang; any other has the time it needs on a machine that is busy."""


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After each marking: no process of it, and no folder."""
    folders = tmp_path / "temporary"
    folders.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folders))
    yield
    assert list(folders.iterdir()) == []
    assert [process.cmdline() for process in psutil.process_iter() if _is_of(folders, process)] == []


def _is_of(folder: Path, process: psutil.Process) -> bool:
    """A marking process has its IPython folder in the temporary workspace."""
    try:
        inside = process.environ().get("IPYTHONDIR", "").startswith(str(folder))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@pytest.fixture
def checkpoint(tmp_path: Path) -> Checkpoint:
    return toy.lay(tmp_path / "home")


Marker = Callable[..., Verdict]


@pytest.fixture
def marked(checkpoint: Checkpoint, tmp_path: Path) -> Marker:
    """Write a file as `agent.py` and mark it."""

    def marked(
        source: str | bytes,
        labs: tuple[str, ...] = (),
        notebook: bool = True,
        kernel: Kernel = "quick",
        limits: Limits | None = None,
    ) -> Verdict:
        agent_py = tmp_path / "mine" / "agent.py"
        agent_py.parent.mkdir(exist_ok=True)
        agent_py.write_bytes(source if isinstance(source, bytes) else source.encode())
        return mark(checkpoint, agent_py, labs=labs, notebook=notebook, kernel=kernel, limits=limits)

    return marked


def words(verdict: Verdict) -> str:
    return " ".join(lab.verdict for lab in verdict.labs)


SAMPLES = {**RIGHT, **AT_IMPORT, **IN_A_LAB, **CHEATS}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)
def test_every_kind_of_file_gets_its_word(marked: Marker, sample: Sample) -> None:
    verdict = marked(sample.source, limits=SHORT if "timed_out" in sample.words else None)
    assert words(verdict) == sample.words
    assert all(lab.message for lab in verdict.labs if not lab.is_green)
    assert all("\x1b" not in (lab.message or "") for lab in verdict.labs)


def test_the_notebook_can_be_run_in_a_real_kernel(marked: Marker) -> None:
    assert words(marked(toy.SOLUTION, kernel="real")) == "green green green"
    assert words(marked(show('return "<0>"'), kernel="real")) == "green green red"


def test_a_shell_that_is_taken_apart_is_never_green(marked: Marker) -> None:
    assert words(marked(in_kernel("shell.run_cell = shell.run_cell_async = None"))) == "not_run not_run not_run"


def test_the_verdict_names_the_file_and_the_bytes_that_ran(marked: Marker, tmp_path: Path) -> None:
    verdict = marked(toy.SOLUTION)
    assert verdict.agent.path == str(tmp_path / "mine" / "agent.py")
    assert verdict.agent.sha256 == hashlib.sha256(toy.SOLUTION.encode()).hexdigest()


def test_tests_and_cells_that_passed_are_counted(marked: Marker) -> None:
    verdict = marked(toy.stub("42.2"))
    assert [(lab.tests, lab.cells) for lab in verdict.labs] == [(2, 1), (0, 0), (1, 0)]


SHUFFLED = later(
    "order = []\nasync def note(n): order.append(n)\nasync with anyio.create_task_group() as group:\n"
    "    for n in range(9): group.start_soon(note, n)\nif order != sorted(order): raise KeyError(order)\n"
    "return self.add(n)"
)
"""Fails on trio alone, with the order in which trio took its tasks."""


@pytest.mark.parametrize("source", [toy.stub("42.1"), later("raise KeyError(object())"), SHUFFLED])
def test_marked_again_it_is_the_same_to_the_byte(marked: Marker, source: str) -> None:
    first = marked(source)
    assert not first.is_green
    assert _untimed(first) == _untimed(marked(source))


def _untimed(verdict: Verdict) -> str:
    return verdict.json().replace(f'"seconds":{verdict.seconds}', "")


def test_a_lab_is_marked_without_what_comes_after_it(marked: Marker) -> None:
    verdict = marked(toy.stub("42.2"), labs=("42.1",))
    assert verdict.is_green
    assert words(verdict) == "green"


def test_a_lab_named_twice_is_marked_once(marked: Marker) -> None:
    assert [(lab.lab, lab.tests) for lab in marked(toy.SOLUTION, labs=("42.1", "42.1")).labs] == [("42.1", 2)]


def test_cells_of_a_lab_that_is_not_written_are_not_waited_for(marked: Marker) -> None:
    waits = in_kernel("async def wait(self, n): await anyio.Event().wait()\nCounter.add_later = wait")
    source = waits.replace("await anyio.sleep(0)\n", 'raise NotImplementedError("Lab 42.2: write this")\n')
    verdict = marked(source, labs=("42.1", "42.2"), limits=Limits(step=600))
    assert words(verdict) == "green not_attempted"
    assert verdict.seconds < 60


def test_an_optional_lab_counts_only_when_it_is_asked_for(marked: Marker) -> None:
    source = show("raise NotImplementedError('Lab 42.3: write this')")
    assert marked(source).verdict == "green"
    assert marked(source, labs=("42.3",)).verdict == "not_attempted"


def test_a_lab_that_reaches_an_unwritten_one_names_it(marked: Marker) -> None:
    lab = marked(toy.stub("42.1")).labs[1]
    assert lab.verdict == "not_run"
    assert "needs lab 42.1" in (lab.message or "")
    assert "course checkpoint 42 --lab 42.1" in (lab.message or "")


def test_given_bytes_are_marked_in_the_name_of_the_file(checkpoint: Checkpoint, tmp_path: Path) -> None:
    elsewhere = tmp_path / "agent.py"
    verdict = mark(checkpoint, elsewhere, source=toy.stub("42.1").encode())
    assert verdict.labs[0].verdict == "not_attempted"
    assert (verdict.labs[0].where or "").startswith(f"{elsewhere}:")


def test_without_the_notebook_the_tests_alone_decide(marked: Marker) -> None:
    verdict = marked(show('return "<0>"'), notebook=False)
    assert words(verdict) == "green green green"
    assert [lab.cells for lab in verdict.labs] == [0, 0, 0]


class TestWhatLiesBesideTheFile:
    """conftest, configuration, edited copies and folders of the learner's change nothing."""

    @pytest.fixture
    def mine(self, tmp_path: Path) -> Path:
        (tmp_path / "mine").mkdir()
        return tmp_path / "mine"

    FILES: ClassVar = {
        "conftest.py": "raise SystemExit('conftest')",
        "pytest.ini": "[pytest]\naddopts = --nonsense",
        "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '--nonsense'",
        "sitecustomize.py": "raise SystemExit('sitecustomize')",
        "usercustomize.py": "raise SystemExit('usercustomize')",
        "course/__init__.py": "raise SystemExit('a folder named course')",
        "anyio.py": "raise SystemExit('a file named as a library')",
        "test_42_toy.py": "def test_nothing(): pass",
        "42_toy.ipynb": "not a notebook",
        "ipython_config.py": "raise SystemExit('a profile')",
    }

    def test_it_has_no_effect(self, marked: Marker, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name, text in self.FILES.items():
            (mine / name).parent.mkdir(exist_ok=True)
            (mine / name).write_text(text)
        monkeypatch.chdir(mine)
        monkeypatch.setenv("PYTHONPATH", str(mine))
        monkeypatch.setenv("PYTEST_ADDOPTS", "--nonsense")
        monkeypatch.setenv("IPYTHONDIR", str(mine))
        for kernel in ("quick", "real"):
            assert words(marked(toy.SOLUTION, kernel=kernel)) == "green green green"
            assert words(marked(toy.stub("42.2"), kernel=kernel)) == "green not_attempted red"
        assert {name: (mine / name).read_text() for name in self.FILES} == self.FILES

    def test_a_module_beside_it_cannot_be_imported_and_the_message_says_so(self, marked: Marker, mine: Path) -> None:
        (mine / "helpers.py").write_text("value = 0")
        lab = marked("import helpers\n" + toy.SOLUTION).labs[0]
        assert lab.verdict == "red"
        assert "it imports helpers, which lies beside it" in (lab.message or "")

    def test_bytecode_of_an_earlier_file_is_not_used(self, marked: Marker, mine: Path) -> None:
        assert marked(toy.SOLUTION).is_green
        (mine / "agent.py").write_text(toy.stub("42.1"))
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(mine)], check=True)
        assert marked(toy.SOLUTION).is_green
        assert not marked(toy.stub("42.1")).is_green


class TestMessages:
    def test_a_red_lab_says_what_was_expected_what_came_and_why(self, marked: Marker) -> None:
        message = marked(toy.replaced("+= n", "+= 1")).labs[0].message or ""
        assert message.startswith("Expected: adding gives the new value.\nCame: 1 instead of 2\n")
        assert message.endswith("\nWhy: add() must return the new value")

    def test_a_raise_is_shown_at_its_line_in_the_learners_own_file(self, marked: Marker, tmp_path: Path) -> None:
        lab = marked(later("raise KeyError(n)")).labs[1]
        line = later("raise KeyError(n)").splitlines().index("        raise KeyError(n)") + 1
        assert lab.where == f"{tmp_path / 'mine' / 'agent.py'}:{line}"
        assert "Came: KeyError: 3" in (lab.message or "")

    def test_a_hang_is_shown_at_the_line_that_waits(self, marked: Marker) -> None:
        source = later("await anyio.Event().wait()")
        lab = marked(source, limits=SHORT).labs[1]
        line = source.splitlines().index("        await anyio.Event().wait()") + 1
        assert (lab.where or "").endswith(f"agent.py:{line}")
        assert "had not ended after 2 seconds" in (lab.message or "")

    def _with_a_rule(self, tmp_path: Path, wrong: str) -> str:
        """What is said of a counter whose value is `wrong`, by a test that states its rule and no reason."""
        stated = '():\n    """Each counter\n    has its own value."""\n    assert Counter().add'
        checkpoint = toy.lay(tmp_path / "home", test=toy.TEST.replace("():\n    assert Counter().add", stated, 1))
        source = toy.replaced("self.value = 0", wrong).encode()
        return mark(checkpoint, tmp_path / "agent.py", source=source, notebook=False).labs[0].message or ""

    def test_a_test_that_says_no_why_gives_the_rule_it_stands_for(self, tmp_path: Path) -> None:
        message = self._with_a_rule(tmp_path, "raise KeyError")
        assert message.endswith("Why: Each counter has its own value."), message

    def test_a_slip_is_told_without_a_rule_that_does_not_explain_it(self, tmp_path: Path) -> None:
        message = self._with_a_rule(tmp_path, "self.value = nought")
        assert "Came: NameError: name 'nought' is not defined" in message
        assert "Why" not in message

    def test_a_function_that_gives_none_is_guessed(self, marked: Marker) -> None:
        test = marked(toy.replaced("        return self.value\n", "")).labs[0].message or ""
        assert "Came: None instead of 2" in test

    def test_the_byte_that_is_not_utf8_is_named(self, marked: Marker) -> None:
        message = marked(b"first = 1\nname = '\xe9'\n").labs[0].message or ""
        assert "byte 0xe9 at line 2, column 9" in message
        assert "UTF-8" in message

    def test_missing_names_are_named(self, marked: Marker) -> None:
        assert "agent.py to define Counter" in (marked("x = 1").labs[0].message or "")

    def test_what_a_failing_test_printed_is_shown(self, marked: Marker) -> None:
        lab = marked(later("print('here', n); raise KeyError")).labs[1]
        assert "It printed: here 3" in (lab.message or "")

    def test_another_output_is_shown_from_where_it_differs(self, marked: Marker) -> None:
        lab = marked(show('return "<0>"')).labs[2]
        assert "Stored: <5>\nCame: <0>" in (lab.message or "")

    def test_the_temporary_folder_and_addresses_are_never_shown(self, marked: Marker) -> None:
        lab = marked(later("import os; raise KeyError(os.getcwd(), object())")).labs[1]
        assert "course-" not in (lab.message or "")
        assert "0x…" in (lab.message or "")


class TestTheCoursesOwnFaults:
    """Never green, and never the learner's red."""

    def _mark(self, checkpoint: Checkpoint, tmp_path: Path) -> Verdict:
        agent_py = tmp_path / "agent.py"
        agent_py.write_text(toy.SOLUTION)
        return mark(checkpoint, agent_py)

    def test_fewer_tests_than_the_catalog_says_cannot_be_marked(self, tmp_path: Path) -> None:
        checkpoint = toy.lay(tmp_path / "home", labs=(Lab("42.1", "Count", 3),))
        with pytest.raises(CannotMarkError, match=r"holds 2 tests for lab 42\.1, but the catalog says 3"):
            self._mark(checkpoint, tmp_path)

    def test_a_test_file_that_breaks_when_it_is_collected_is_not_green(self, tmp_path: Path) -> None:
        checkpoint = toy.lay(tmp_path / "home", test=toy.TEST + "\nraise RuntimeError('ours')\n")
        verdict = self._mark(checkpoint, tmp_path)
        assert words(verdict) == "red not_run not_run"
        assert "Came: RuntimeError: ours" in (verdict.labs[0].message or "")

    def test_a_notebook_with_nothing_to_run_cannot_be_marked(self, tmp_path: Path) -> None:
        checkpoint = toy.lay(tmp_path / "home", cells=[("1 + 1", ("demo",), "")])
        with pytest.raises(CannotMarkError, match="no cell that counts"):
            self._mark(checkpoint, tmp_path)

    def test_a_counting_cell_without_stored_output_cannot_be_marked(self, tmp_path: Path) -> None:
        checkpoint = toy.lay(tmp_path / "home", cells=[("x = 1", ("lab-42.1",), "")])
        with pytest.raises(CannotMarkError, match="stores no output"):
            self._mark(checkpoint, tmp_path)

    @pytest.mark.parametrize("text", ["", "<<<<<<< HEAD", '{"nbformat": 9}'])
    def test_a_notebook_that_is_none_cannot_be_marked(self, tmp_path: Path, text: str) -> None:
        checkpoint = toy.lay(tmp_path / "home")
        checkpoint.notebook.write_text(text)
        with pytest.raises(CannotMarkError, match="cannot be read"):
            self._mark(checkpoint, tmp_path)


class TestCells:
    """What counts for a lab must have run, as it was meant to."""

    def _mark(self, tmp_path: Path, *cells: tuple[str, tuple[str, ...], str], kernel: Kernel = "quick") -> Verdict:
        agent_py = tmp_path / "agent.py"
        agent_py.write_text(toy.SOLUTION)
        checkpoint = toy.lay(tmp_path / "home", cells=list(cells))
        return mark(checkpoint, agent_py, labs=("42.1",), kernel=kernel)

    def test_a_failed_set_up_cell_is_named_where_a_name_is_missing_for_it(self, tmp_path: Path) -> None:
        counting = ("print(number)", ("lab-42.1",), "1\n")
        lab = self._mark(tmp_path, ("number = 1 / 0", (), ""), counting).labs[0]
        assert (lab.verdict, lab.tests, lab.cells) == ("not_run", 2, 0)
        assert lab.message == (
            "The set-up cell that begins `number = 1 / 0` did not run through, and this lab needs what it makes.\n"
            "Came: ZeroDivisionError: division by zero"
        )

    def test_a_cell_is_named_by_its_place_in_its_lab(self, tmp_path: Path) -> None:
        right, wrong = ("print(1)", ("lab-42.1",), "1\n"), ("print(2)", ("lab-42.1",), "3\n")
        two, alone = self._mark(tmp_path, right, wrong).labs[0], self._mark(tmp_path, wrong).labs[0]
        assert "Expected: cell 2 of lab 42.1 to show what is stored" in (two.message or "")
        assert "Expected: the cell of lab 42.1 to show what is stored" in (alone.message or "")

    def test_a_cell_that_counts_for_nothing_decides_nothing(self, tmp_path: Path) -> None:
        counting = ("print(1)", ("lab-42.1",), "1\n")
        assert self._mark(tmp_path, ("1 / 0", (), ""), ("print(2)", (), "3\n"), counting).is_green

    @pytest.mark.parametrize("kernel", ["quick", "real"])
    def test_a_cell_that_must_raise_is_not_green_when_it_runs_through(self, tmp_path: Path, kernel: Kernel) -> None:
        tags = ("lab-42.1", "raises-exception")
        lab = self._mark(tmp_path, ("print(1)", tags, "1\n"), kernel=kernel).labs[0]
        assert lab.verdict == "red"
        assert "to raise.\nCame: it ran through" in (lab.message or "")
        assert self._mark(tmp_path, ("print(1)", ("lab-42.1",), "1\n"), kernel=kernel).is_green

    @pytest.mark.parametrize("kernel", ["quick", "real"])
    def test_a_magic_that_is_none_is_not_green(self, tmp_path: Path, kernel: Kernel) -> None:
        cell = ("print(1)\n%no_such_magic", ("lab-42.1",), "1\n")
        assert self._mark(tmp_path, cell, kernel=kernel).labs[0].verdict == "red"

    @pytest.mark.parametrize("marker", ["# NBVAL_SKIP", "# NBVAL_IGNORE_OUTPUT", "# NBVAL_RAISES_EXCEPTION"])
    def test_nbvals_markers_have_no_effect(self, tmp_path: Path, marker: str) -> None:
        lab = self._mark(tmp_path, (f"{marker}\nprint(2)", ("lab-42.1",), "1\n")).labs[0]
        assert lab.verdict == "red"


def test_a_file_that_is_not_there_is_wrong_usage(checkpoint: Checkpoint, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="course practice 42"):
        mark(checkpoint, tmp_path / "agent.py")


def test_a_folder_that_cannot_be_told_is_wrong_usage(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/caf\xe9"))
    folder.mkdir()
    (folder / "agent.py").write_text(toy.SOLUTION)
    with pytest.raises(CourseError, match=r"caf\\udce9.*not UTF-8.*Rename"):
        mark(checkpoint, folder / "agent.py")


def test_nothing_goes_over_from_one_marking_to_the_next(marked: Marker) -> None:
    look = "import builtins\nassert not hasattr(builtins, 'seen')\nbuiltins.seen = True"
    assert marked(after(look)).is_green
    assert marked(after(look)).is_green


@pytest.mark.parametrize("kernel", ["quick", "real"])
def test_a_kernel_that_dies_is_noticed_long_before_its_time_is_up(marked: Marker, kernel: Kernel) -> None:
    dies = show('if "pytest" in __import__("sys").modules: return "<0>"\n__import__("os")._exit(0)')
    verdict = marked(dies, kernel=kernel, limits=Limits(step=600))
    assert words(verdict) == "green green crashed"
    assert verdict.seconds < 60


def test_a_folder_that_the_file_has_shut_is_removed_too(marked: Marker) -> None:
    assert marked(after("import os\nos.makedirs('shut/inside')\nos.chmod('shut', 0)")).is_green


def test_an_unknown_lab_is_wrong_usage(marked: Marker) -> None:
    with pytest.raises(CourseError, match=r"has no lab '42\.9'"):
        marked(toy.SOLUTION, labs=("42.9",))


DETACHED = {
    "a child": "subprocess.Popen(wait)",
    "a child in a session of its own": "subprocess.Popen(wait, start_new_session=True)",
    "a child without our environment": "subprocess.Popen(wait, start_new_session=True, env={})",
    "a grandchild whose parent has left": (
        "if os.fork() == 0:\n    os.setsid()\n    os.fork() or os.execv(wait[0], wait)\n    os._exit(0)"
    ),
}


@pytest.mark.parametrize("code", DETACHED.values(), ids=DETACHED)
@pytest.mark.parametrize("kernel", ["quick", "real"])
def test_whatever_the_file_started_is_ended(marked: Marker, tmp_path: Path, code: str, kernel: Kernel) -> None:
    name = tmp_path.name
    waiter = f"import subprocess, sys, os\nwait = [sys.executable, '-c', 'import signal; signal.pause()', {name!r}]\n"
    assert marked(after(waiter + code), kernel=kernel).is_green
    assert [found for found in psutil.process_iter() if _runs(found, name)] == []


@pytest.mark.parametrize("kernel", ["quick", "real"])
def test_what_the_file_started_is_ended_even_when_it_crashed(marked: Marker, tmp_path: Path, kernel: Kernel) -> None:
    name = tmp_path.name
    waiter = f"import subprocess, sys, os\nwait = [sys.executable, '-c', 'import signal; signal.pause()', {name!r}]\n"
    crash = waiter + "subprocess.Popen(wait, start_new_session=True, env={})"
    source = show(f"{crash}\nos._exit(0)")
    assert words(marked(source, kernel=kernel)) == "green green crashed"
    assert [found for found in psutil.process_iter() if _runs(found, name)] == []


def _runs(process: psutil.Process, name: str) -> bool:
    try:
        return process.cmdline()[-1:] == [name] and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
