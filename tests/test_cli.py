"""The `course` command as a learner meets it: what it prints, what it leaves, and the code it ends with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import toy

from course import __version__

COURSE = Path(__file__).with_name("toy_course.py")

Course = Callable[..., subprocess.CompletedProcess[str]]


def command(home: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(COURSE), str(home), *arguments]


def environment(temporary: Path, columns: int = 80) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "TMPDIR": str(temporary), "COLUMNS": str(columns), "PYTHONPATH": str(COURSE.parents[1])}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder that the learner stands in."""
    (tmp_path / "here").mkdir()
    (tmp_path / "temporary").mkdir()
    return tmp_path / "here"


@pytest.fixture
def course(here: Path, tmp_path: Path) -> Course:
    def course(*arguments: str, columns: int = 80, cwd: Path = here) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(tmp_path / "home", *arguments),
            cwd=cwd,
            env=environment(tmp_path / "temporary", columns),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
        )

    return course


@pytest.fixture
def practice(course: Course, here: Path) -> Path:
    """A practice folder as `course practice` lays it, with nothing written."""
    assert course("practice", "42").returncode == 0
    return here / "practice" / "42"


class TestPractice:
    def test_it_lays_notebook_tests_and_starter_and_says_what_is_next(self, course: Course, here: Path) -> None:
        done = course("practice", "42")
        assert done.returncode == 0
        assert sorted(path.name for path in (here / "practice/42").iterdir()) == [
            "42_toy.ipynb",
            "agent.py",
            "test_42_toy.py",
        ]
        assert (here / "practice/42/agent.py").read_text() == toy.stub("42.1")
        assert "course lab 42" in done.stdout

    def test_it_never_overwrites(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text("mine")
        done = course("practice", "42")
        assert done.returncode == 0
        assert (practice / "agent.py").read_text() == "mine"
        assert "kept     practice/42/agent.py" in done.stdout

    def test_it_lays_where_it_is_told(self, course: Course, here: Path) -> None:
        done = course("practice", "42", "--into", "elsewhere")
        assert (here / "elsewhere/agent.py").exists()
        assert "course checkpoint 42 --in elsewhere" in done.stdout

    def test_the_next_command_can_be_typed_whatever_the_folder_is_called(self, course: Course, here: Path) -> None:
        done = course("practice", "42", "--into", "my lab", columns=40)
        assert "\n  course checkpoint 42 --in 'my lab'\n" in done.stdout

    def test_inside_of_the_practice_folders_it_lays_beside_the_others(self, course: Course, practice: Path) -> None:
        assert "kept     42/agent.py" in course("practice", "42", cwd=practice.parent).stdout

    def test_an_unknown_checkpoint_is_wrong_usage_and_names_those_there_are(self, course: Course) -> None:
        done = course("practice", "13")
        assert done.returncode == 2
        assert "There is no checkpoint '13'" in done.stderr
        assert "course practice 42" in done.stderr


class TestCheckpoint:
    def test_without_a_practice_folder_it_says_which_command_lays_it(self, course: Course) -> None:
        done = course("checkpoint", "42")
        assert done.returncode == 2
        assert "course practice 42" in done.stderr
        assert done.stdout == ""

    def test_the_starter_is_not_attempted_and_the_next_step_is_named(self, course: Course, practice: Path) -> None:
        done = course("checkpoint", "42")
        assert done.returncode == 1
        assert "○ not attempted" in done.stdout
        assert "Lab 42.1: Count\n○ not attempted  0 of 2 tests passed\nwrite this. That is still to be" in done.stdout
        assert "practice/42/agent.py:" in done.stdout
        assert "course checkpoint 42 --lab 42.1" in done.stdout

    def test_all_green_ends_with_0_and_names_the_marked_file(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.SOLUTION)
        done = course("checkpoint", "42")
        assert done.returncode == 0
        assert done.stdout.count("✔ green") == 3
        assert "Marked: practice/42/agent.py (file fingerprint sha256 " in done.stdout

    def test_json_is_one_object_of_the_documented_shape_and_nothing_else(self, course: Course, practice: Path) -> None:
        done = course("checkpoint", "42", "--json")
        found = json.loads(done.stdout)
        assert list(found) == ["checkpoint", "verdict", "agent", "labs", "versions", "seconds"]
        assert list(found["labs"][0]) == ["lab", "title", "verdict", "tests", "cells", "message", "where"]
        assert found["verdict"] == "not_attempted"
        assert found["agent"]["path"] == str(practice / "agent.py")
        assert done.returncode == 1

    def test_one_lab_can_be_marked_alone(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.stub("42.2"))
        assert course("checkpoint", "42", "--lab", "42.1").returncode == 0
        assert course("checkpoint", "42", "--lab", "42.2").returncode == 1

    def test_an_unknown_lab_is_wrong_usage(self, course: Course, practice: Path) -> None:
        done = course("checkpoint", "42", "--lab", "42.9")
        assert done.returncode == 2
        assert "has no lab '42.9'" in done.stderr

    @pytest.mark.parametrize(
        "arguments",
        [("42", "--lab", "42.1"), ("42.1",), ("42", "42.1"), ("42", "--lab", "1"), ("42.1", "--lab", "42.1")],
    )
    def test_a_lab_may_be_named_in_any_way_that_can_be_meant(
        self, course: Course, practice: Path, arguments: tuple[str, ...]
    ) -> None:
        (practice / "agent.py").write_text(toy.SOLUTION)
        labs = json.loads(course("checkpoint", *arguments, "--json").stdout)["labs"]
        assert [lab["lab"] for lab in labs] == ["42.1"]

    @pytest.mark.parametrize("where", ["agent.py", ".", ".."])
    def test_the_folder_may_be_named_by_its_file_or_by_the_folder_around_it(
        self, course: Course, practice: Path, where: str
    ) -> None:
        assert (
            json.loads(course("checkpoint", "42", "--in", str(practice / where), "--json").stdout)["checkpoint"] == "42"
        )

    def test_what_lies_in_the_place_of_the_file_is_named(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").unlink()
        (practice / "agent.py").mkdir()
        done = course("checkpoint", "42")
        assert done.returncode == 2
        assert "agent.py is a folder, not a file. Move it away" in done.stderr

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
    @pytest.mark.parametrize("output", ["/dev/full", "closed"])
    def test_output_that_cannot_be_written_ends_with_3_and_no_traceback(
        self, course: Course, here: Path, practice: Path, output: str
    ) -> None:
        if output == "closed":
            read_end, write_end = os.pipe()
            os.close(read_end)
        else:
            write_end = os.open(output, os.O_WRONLY)
        line, env = command(here.parent / "home", "checkpoint", "42"), environment(here.parent / "temporary")
        done = subprocess.run(line, cwd=here, env=env, stdout=write_end, stderr=subprocess.PIPE, text=True)
        os.close(write_end)
        assert done.returncode == 3
        assert "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == (0 if output == "closed" else 1)

    def test_another_folder_can_be_marked_and_keeps_no_progress(self, course: Course, here: Path) -> None:
        (here / "theirs").mkdir()
        (here / "theirs/agent.py").write_text(toy.SOLUTION)
        assert course("checkpoint", "42", "--in", "theirs").returncode == 0
        assert [path.name for path in (here / "theirs").iterdir()] == ["agent.py"]

    def test_inside_the_practice_folder_no_number_is_needed(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.SOLUTION)
        assert course("checkpoint", cwd=practice).returncode == 0

    def test_a_file_that_cannot_be_imported_is_told_as_that(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text("def (")
        done = course("checkpoint", "42")
        assert "\nagent.py cannot be imported\nExpected: agent.py to be Python." in done.stdout
        assert "see 42.1" in done.stdout
        assert done.stdout.endswith("Next: mend agent.py, then type  course checkpoint 42\n")

    def test_what_cannot_be_marked_ends_with_3(self, course: Course, practice: Path, tmp_path: Path) -> None:
        toy.at(tmp_path / "home").notebook.write_text("")
        done = course("checkpoint", "42")
        assert done.returncode == 3
        assert "The course's own notebook" in done.stderr

    @pytest.mark.parametrize("columns", [40, 80, 200])
    def test_no_line_is_wider_than_the_terminal(self, course: Course, practice: Path, columns: int) -> None:
        (practice / "agent.py").write_text(toy.replaced("+= n", "+= 1"))
        done = course("checkpoint", "42", columns=columns)
        assert max(map(len, done.stdout.splitlines())) <= columns

    def test_without_a_terminal_there_are_no_escape_codes(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.replaced("# 42.1", "raise ValueError('\\x1b[31m[bold]boo[/bold]')"))
        done = course("checkpoint", "42")
        assert "\x1b" not in done.stdout
        assert "[bold]boo[/bold]" in done.stdout


class TestWhereAmI:
    def test_a_newcomer_is_told_how_to_begin(self, course: Course) -> None:
        done = course()
        assert done.returncode == 0
        assert "not begun" in done.stdout
        assert "course lab 42" in done.stdout

    def test_progress_is_shown_and_stays_when_a_lab_turns_red_again(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.stub("42.2"))
        course("checkpoint", "42")
        assert "1 of 2" in course().stdout
        (practice / "agent.py").write_text("raise ValueError")
        course("checkpoint", "42")
        assert "1 of 2" in course().stdout

    def test_what_is_done_is_called_finished(self, course: Course, practice: Path) -> None:
        (practice / "agent.py").write_text(toy.SOLUTION)
        course("checkpoint", "42")
        assert "finished" in course().stdout

    def test_help_names_every_command_and_the_exit_codes(self, course: Course) -> None:
        done = course("--help")
        assert done.returncode == 0
        assert all(name in done.stdout for name in ("practice", "checkpoint", "lab", "Exit codes"))

    @pytest.mark.parametrize(("slip", "meant"), [("42", "course lab 42"), ("42.1", "course checkpoint 42 --lab 42.1")])
    def test_a_number_in_the_place_of_a_command_is_told_the_command(
        self, course: Course, slip: str, meant: str
    ) -> None:
        done = course(slip)
        assert (done.returncode, meant in done.stderr) == (2, True)

    def test_help_and_version_are_there_by_their_usual_names(self, course: Course) -> None:
        assert course("help").stdout == course("--help").stdout
        assert "--json" in course("help", "checkpoint").stdout
        assert course("--version").stdout == f"course {__version__}\n"

    def test_a_port_that_is_none_is_wrong_usage(self, course: Course) -> None:
        assert course("lab", "42", "--port", "80000").returncode == 2

    def test_a_command_that_is_none_is_wrong_usage(self, course: Course) -> None:
        assert course("chekpoint").returncode == 2


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_interrupted_it_leaves_nothing_behind(
    practice: Path, tmp_path: Path, signum: signal.Signals, code: int
) -> None:
    began = tmp_path / "began"
    os.mkfifo(began)
    (practice / "agent.py").write_text(f"open({str(began)!r}, 'w').close()\nwhile True: pass\n")
    running = subprocess.Popen(
        command(tmp_path / "home", "checkpoint", "42"),
        cwd=practice.parents[1],
        env=environment(tmp_path / "temporary"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    began.read_text()  # returns once the learner's file is being imported
    running.send_signal(signum)
    _, errors = running.communicate(timeout=30)
    assert running.returncode == code
    assert b"Traceback" not in errors
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [process for process in psutil.process_iter() if _is_inside(tmp_path / "temporary", process)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_killed_outright_it_leaves_no_process(practice: Path, tmp_path: Path) -> None:
    began = tmp_path / "began"
    os.mkfifo(began)
    (practice / "agent.py").write_text(f"open({str(began)!r}, 'w').close()\nwhile True: pass\n")
    running = subprocess.Popen(
        command(tmp_path / "home", "checkpoint", "42"),
        cwd=practice.parents[1],
        env=environment(tmp_path / "temporary"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    began.read_text()
    children = [process for process in psutil.process_iter() if _is_inside(tmp_path / "temporary", process)]
    running.kill()
    running.wait()
    assert children
    assert psutil.wait_procs(children, timeout=10)[1] == []


def _is_inside(folder: Path, process: psutil.Process) -> bool:
    try:
        inside = process.environ().get("IPYTHONDIR", "").startswith(str(folder))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
