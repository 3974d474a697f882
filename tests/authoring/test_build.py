"""Starters and solutions as they lie in the repository."""

from __future__ import annotations

import runpy
import tokenize

from course.authoring import build
from course.authoring.views import read_source

from .small_course import Project


def test_what_was_just_built_is_fresh(project: Project) -> None:
    assert list(build.stale_problems(build.build(project.checkpoint))) == []


def test_building_again_gives_the_same_bytes(project: Project) -> None:
    assert build.build(project.checkpoint) == build.build(project.checkpoint)


def test_each_stale_file_is_named_with_the_command_that_mends_it(project: Project) -> None:
    project.checkpoint.starter.unlink()
    project.write("solutions/01/agent.py", "edited by hand")
    mend = "Never edit it by hand; run `python -m course.authoring build`."
    assert [str(problem) for problem in build.stale_problems(build.build(project.checkpoint))] == [
        f"starters/01/agent.py: is missing. {mend}",
        f"solutions/01/agent.py: differs from course/agent. {mend}",
    ]


def test_a_changed_module_makes_its_built_files_stale(project: Project) -> None:
    project.module(project.checkpoint.source.read_text() + "\n\nX = 1\n")
    assert len(list(build.stale_problems(build.build(project.checkpoint)))) == 2


def test_the_starter_tells_its_reader_the_command_that_marks_it(project: Project) -> None:
    head = project.checkpoint.starter.read_text().split("\n\n")[0]
    assert "Checkpoint 01, Tiny" in head
    assert "course checkpoint 01" in head


def test_the_solution_is_the_module_below_a_comment(project: Project) -> None:
    text = project.checkpoint.solution.read_text()
    head, _, rest = text.partition("\n\n")
    assert all(line.startswith("#") for line in head.split("\n"))
    assert "course/agent/tiny.py" in head
    assert rest == read_source(project.checkpoint).solution


def test_headers_leave_the_docstring_a_docstring(project: Project) -> None:
    for path in (project.checkpoint.starter, project.checkpoint.solution):
        assert runpy.run_path(str(path))["__doc__"] == "Two small functions."


def test_built_files_are_utf8_with_line_feeds(project: Project) -> None:
    project.module("# Grüße\nX = 1\n")
    project.build()
    content = project.checkpoint.starter.read_bytes()
    assert "Grüße" in content.decode("utf-8")
    assert b"\r" not in content
    with project.checkpoint.starter.open("rb") as file:
        assert tokenize.detect_encoding(file.readline)[0] == "utf-8"
