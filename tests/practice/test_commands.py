"""hint, reset, solution, doctor and watch, as they are typed: what they print, what they keep, how they end."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import desk
import psutil
import pytest

COURSE = Path(__file__).parents[1] / "toy_course.py"
ROOT = COURSE.parents[1]
SAFETY = 60

Course = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that the learner stands in, with the practice folder laid."""
    checkpoint = desk.lay(tmp_path / "home")
    folder = tmp_path / "here" / "practice" / "42"
    folder.mkdir(parents=True)
    for source, name in (
        (checkpoint.notebook, checkpoint.notebook.name),
        (checkpoint.test, checkpoint.test.name),
        (checkpoint.starter, "agent.py"),
    ):
        (folder / name).write_bytes(source.read_bytes())
    (tmp_path / "temporary").mkdir()
    return tmp_path / "here"


@pytest.fixture
def agent_py(here: Path) -> Path:
    return here / "practice" / "42" / "agent.py"


def command(here: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(COURSE), str(here.parent / "home"), *arguments]


def environment(here: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    temporary = str(here.parent / "temporary")
    return {**kept, "TMPDIR": temporary, "COLUMNS": "80", "PYTHONPATH": str(ROOT), "TERM": "xterm"}


@pytest.fixture
def course(here: Path) -> Course:
    def course(*arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(here, *arguments),
            cwd=here,
            env=environment(here) | changed,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SAFETY,
        )

    return course


class TestHint:
    def test_each_call_shows_one_more_and_says_what_is_next(self, course: Course) -> None:
        first, second = course("hint", "42.1"), course("hint", "42.1")
        assert "Hint 1 of 3\n" in first.stdout
        assert "Hint 2 of 3\n" in second.stdout
        assert second.stdout.endswith("type  course checkpoint 42 --lab 42.1\n")
        assert (first.returncode, second.returncode) == (0, 0)

    def test_without_a_terminal_the_last_is_shown_only_with_yes(self, course: Course) -> None:
        for _ in range(2):
            course("hint", "42.1")
        refused, shown = course("hint", "42.1"), course("hint", "42.1", "--yes")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "course hint 42.1 --yes" in refused.stderr
        assert "return self.value" in shown.stdout

    def test_by_default_it_is_about_the_lab_to_go_on_with(self, course: Course) -> None:
        assert course("hint").stdout.startswith("Lab 42.1: Count")

    @pytest.mark.parametrize("lab", ["42.9", "7.1", "", "x.y"])
    def test_a_lab_that_is_none_is_wrong_usage(self, course: Course, lab: str) -> None:
        done = course("hint", lab)
        assert (done.returncode, done.stdout) == (2, "")
        assert "42" in done.stderr
        assert "Traceback" not in done.stderr

    def test_a_checkpoints_number_stands_for_its_lab_to_go_on_with(self, course: Course) -> None:
        assert course("hint", "42").stdout.startswith("Lab 42.1: Count")

    def test_on_a_lab_that_is_green_it_does_not_say_to_write_it(self, course: Course, agent_py: Path) -> None:
        agent_py.write_text(desk.starter("42.1"))
        course("checkpoint", "42.1")
        shown = course("hint", "42.1").stdout
        assert "Hint 1 of 3" in shown
        assert "write lab 42.1" not in shown

    def test_where_nothing_is_laid_the_command_that_lays_is_named(self, course: Course, tmp_path: Path) -> None:
        done = course("hint", "42.1", "--in", str(tmp_path / "an empty folder"))
        assert done.returncode == 2
        assert "course practice 42 --into" in done.stderr


class TestReset:
    def test_it_goes_back_and_names_the_way_to_undo_it_which_works(self, course: Course, agent_py: Path) -> None:
        agent_py.write_text("mine")
        done = course("reset", "42")
        assert done.returncode == 0
        assert agent_py.read_text() == desk.starter()
        undo = next(line for line in done.stdout.splitlines() if line.startswith("To undo it, type  course "))
        assert course(*undo.removeprefix("To undo it, type  course ").split()).returncode == 0
        assert agent_py.read_text() == "mine"

    def test_one_lab_alone(self, course: Course, agent_py: Path) -> None:
        agent_py.write_text(desk.starter("42.1", "42.2"))
        done = course("reset", "--lab", "42.2")
        assert done.stdout.startswith("Put back: Counter.add_later\n")
        assert "course checkpoint 42 --lab 42.2" in done.stdout
        assert agent_py.read_text() == desk.starter("42.1")

    def test_backups_are_listed(self, course: Course, agent_py: Path) -> None:
        assert "no backups yet" in course("reset", "42", "--list").stdout
        agent_py.write_text("mine")
        course("reset", "42")
        listed = course("reset", "42", "--list")
        (backup,) = (agent_py.parents[1] / ".backups" / "42").iterdir()
        assert listed.stdout.startswith(f"{backup.name}  agent.py\n")
        assert agent_py.read_text() == desk.starter()

    @pytest.mark.parametrize("what", [("--list",), ("--restore", "2026")])
    def test_a_backup_is_of_no_one_lab(self, course: Course, what: tuple[str, ...]) -> None:
        done = course("reset", "--lab", "42.2", *what)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Leave the lab out:\n  course reset 42 {' '.join(what)}" in done.stderr

    def test_a_backup_that_is_not_there_changes_nothing(self, course: Course, agent_py: Path) -> None:
        done = course("reset", "42", "--restore", "yesterday")
        assert done.returncode == 2
        assert "There are no backups" in done.stderr


class TestSolution:
    def test_it_is_refused_until_it_is_earned_or_asked_for(self, course: Course, agent_py: Path) -> None:
        refused = course("solution", "42")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "course hint 42.1" in refused.stderr
        assert "+        self.value += n" in course("solution", "42", "--spoil").stdout
        agent_py.write_text(desk.starter("42.1", "42.2"))
        assert course("checkpoint", "42").returncode == 0
        earned = course("solution", "42")
        assert earned.returncode == 0
        assert "+++ the solution" in earned.stdout

    def test_of_one_lab(self, course: Course) -> None:
        done = course("solution", "--lab", "42.2", "--spoil")
        assert "add(n)" in done.stdout
        assert "self.value += n" not in done.stdout

    def test_no_difference_is_said(self, course: Course, agent_py: Path) -> None:
        agent_py.write_text(desk.starter("42.1", "42.2", "42.3"))
        assert course("solution", "42", "--spoil").stdout == "No difference: yours is the solution, line by line.\n"


class TestDoctor:
    def test_for_machines_it_prints_one_list_and_nothing_else(self, course: Course) -> None:
        done = course("doctor", "--json")
        found = json.loads(done.stdout)
        assert {check["state"] for check in found} <= {"ok", "fault", "optional"}
        assert done.returncode == int(any(check["state"] == "fault" for check in found))

    def test_a_fault_has_its_fix_below_and_ends_it_with_1(self, course: Course, here: Path) -> None:
        (here.parent / "home/solutions/42/agent.py").write_text("raise ValueError('broken')")
        done = course("doctor")
        lines = done.stdout.splitlines()
        (number,) = [number for number, line in enumerate(lines) if line.startswith("✘ fault    marking")]
        assert "Fix:  course checkpoint 42 --in" in lines[number + 1]
        assert lines[-1] == "1 to mend. Type what stands behind Fix, then again  course doctor"
        assert done.returncode == 1


def test_a_lab_that_is_not_green_points_to_its_hints(course: Course) -> None:
    assert course("checkpoint", "42").stdout.endswith("Type  course hint 42.1\n")


@pytest.mark.parametrize("arguments", [("checkpoint", "42"), ("hint", "42.1"), ("reset", "42"), ("--help",)])
def test_a_terminal_that_knows_no_unicode_ends_no_command(course: Course, arguments: tuple[str, ...]) -> None:
    assert "Traceback" not in course(*arguments, PYTHONIOENCODING="ascii", PYTHONUTF8="0").stderr


class TestWatchingWithoutATerminal:
    @pytest.fixture
    def watching(self, here: Path) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            command(here, "watch", "42"),
            cwd=here,
            env=environment(here),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            yield process
            process.kill()

    def test_each_save_is_answered_with_a_line(self, watching: subprocess.Popen[str], agent_py: Path) -> None:
        assert watching.stdout is not None
        assert "lab 42.1 is not attempted: " in watching.stdout.readline()
        agent_py.write_text(desk.starter("42.1"))
        assert "; lab 42.2 is not attempted: " in watching.stdout.readline()
        agent_py.write_text(desk.starter("42.1", "42.2", "42.3"))
        assert "green: 2 of 2 labs are green" in watching.stdout.readline()

    @pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
    @pytest.mark.parametrize("while_it", ["waits", "marks"])
    def test_interrupted_it_leaves_nothing(
        self, watching: subprocess.Popen[str], here: Path, agent_py: Path, signum: int, code: int, while_it: str
    ) -> None:
        assert watching.stdout is not None
        watching.stdout.readline()
        if while_it == "marks":
            began = here.parent / "began"
            os.mkfifo(began)
            agent_py.write_text(f"open({str(began)!r}, 'w').close()\nwhile True: pass\n")
            began.read_text()
        watching.send_signal(signum)
        out, errors = watching.communicate(timeout=SAFETY)
        assert (watching.returncode, out, errors) == (code, "", "")
        assert nothing_is_left(here)

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
    def test_killed_outright_it_leaves_no_process(self, watching: subprocess.Popen[str], here: Path) -> None:
        assert watching.stdout is not None
        watching.stdout.readline()
        watching.kill()
        watching.wait()
        assert psutil.wait_procs(processes(here), timeout=SAFETY)[1] == []


def test_where_nothing_is_laid_there_is_nothing_to_watch(course: Course, tmp_path: Path) -> None:
    done = course("watch", "42", "--in", str(tmp_path))
    assert (done.returncode, "course practice 42 --into" in done.stderr) == (2, True)


class Terminal:
    """A terminal of 80 columns and 24 rows in which the watching runs."""

    def __init__(self, here: Path) -> None:
        self._other, ours = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.settings = termios.tcgetattr(ours)
        env = environment(here)
        del env["COLUMNS"]
        self.process = subprocess.Popen(
            command(here, "watch", "42"), cwd=here, env=env, stdin=ours, stdout=ours, stderr=ours
        )
        self._ours = ours

    def wait_for(self, text: str) -> str:
        """Everything that was written from the last call up to and with `text`."""
        found = b""
        while text.encode() not in found:
            assert select.select([self._other], [], [], SAFETY)[0], f"{text!r} never came: {found.decode()}"
            found += os.read(self._other, 4096)
        return found.decode(errors="replace")

    def press(self, key: str) -> None:
        os.write(self._other, key.encode())

    def is_as_before(self) -> bool:
        return termios.tcgetattr(self._ours) == self.settings

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._other)
        os.close(self._ours)


@pytest.fixture
def terminal(here: Path) -> Iterator[Terminal]:
    terminal = Terminal(here)
    yield terminal
    terminal.close()


def test_on_a_terminal_keys_and_saves_lead_from_the_first_lab_to_the_end(
    terminal: Terminal, here: Path, agent_py: Path
) -> None:
    terminal.wait_for("0 of 2 labs are green")
    terminal.press("h")
    terminal.wait_for("Add, then return.")
    agent_py.write_text(desk.starter("42.1"))
    terminal.wait_for("Press n for lab 42.2: Wait.")
    terminal.press("n")
    terminal.wait_for("not attempted  0 of 2 tests passed")
    terminal.press("l")
    terminal.wait_for("back to the lab")
    terminal.press("b")
    agent_py.write_text(desk.starter("42.1", "42.2", "42.3"))
    terminal.wait_for("2 of 2 labs are green")
    terminal.press("q")
    assert terminal.process.wait(SAFETY) == 0
    assert terminal.is_as_before()
    assert nothing_is_left(here)


@pytest.mark.parametrize("signum", [signal.SIGWINCH, signal.SIGCONT], ids=["resized", "continued"])
def test_what_the_terminal_has_lost_is_drawn_again(terminal: Terminal, signum: signal.Signals) -> None:
    terminal.wait_for("q\x1b[0m quit")
    terminal.process.send_signal(signum)
    terminal.wait_for("0 of 2 labs are green")


def test_ctrl_c_on_a_terminal_ends_it_and_gives_the_terminal_back(terminal: Terminal, here: Path) -> None:
    terminal.wait_for("0 of 2 labs are green")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.process.wait(SAFETY) == 130
    assert terminal.is_as_before()
    assert nothing_is_left(here)


def processes(here: Path) -> list[psutil.Process]:
    return [one for one in psutil.process_iter() if _is_inside(here.parent / "temporary", one)]


def nothing_is_left(here: Path) -> bool:
    return processes(here) == [] and list((here.parent / "temporary").iterdir()) == []


def _is_inside(folder: Path, process: psutil.Process) -> bool:
    try:
        inside = process.environ().get("IPYTHONDIR", "").startswith(str(folder))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
