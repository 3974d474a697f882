"""`python -m course.authoring`, as an author types it."""

from __future__ import annotations

import sys

import pytest

from course import catalog
from course.authoring import cli

from .small_course import Project


class TypeIn:
    """Runs a command line in this process: gives its exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, line: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["course.authoring", *line.split()])
        with pytest.raises(SystemExit) as exit:
            cli.main()
        out, err = self._capsys.readouterr()
        return int(exit.value.code or 0), out, err


@pytest.fixture
def type_in(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> TypeIn:
    monkeypatch.setattr(catalog, "checkpoints", lambda: catalog.read(project.root / "course"))
    return TypeIn(monkeypatch, capsys)


def test_build_writes_what_is_stale_and_says_what_it_did(project: Project, type_in: TypeIn) -> None:
    project.checkpoint.starter.unlink()
    code, out, _ = type_in("build")
    assert code == 0
    assert out.split("\n")[:2] == ["written  starters/01/agent.py", "fresh  solutions/01/agent.py"]
    assert project.checkpoint.starter.is_file()


def test_build_check_of_a_whole_course_exits_0(type_in: TypeIn) -> None:
    assert type_in("build --check")[0] == 0


def test_build_check_names_each_problem_on_stderr_writes_nothing_and_exits_1(project: Project, type_in: TypeIn) -> None:
    project.checkpoint.starter.unlink()
    code, _, err = type_in("build --check")
    assert code == 1
    assert err.startswith(
        "starters/01/agent.py: is missing. Never edit it by hand; run `python -m course.authoring build`"
    )
    assert not project.checkpoint.starter.exists()


def test_wrong_markers_stop_build_with_file_and_line(project: Project, type_in: TypeIn) -> None:
    project.checkpoint.source.write_text("# END SOLUTION\n")
    code, _, err = type_in("build")
    assert code == 1
    assert err.startswith("course/agent/tiny.py:1: no block is open here.")


@pytest.mark.parametrize("line", ["prove 07", "execute 07", "prove 01 --lab 1.9", "prove --only nothing", "nothing"])
def test_a_checkpoint_lab_or_command_that_does_not_exist_is_wrong_usage(type_in: TypeIn, line: str) -> None:
    code, _, err = type_in(line)
    assert code == 2
    assert err.strip()
