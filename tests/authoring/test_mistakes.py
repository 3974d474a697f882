"""Mistakes and alternatives as small replacements on the solution."""

from __future__ import annotations

import pytest

from course.authoring import mistakes
from course.authoring.mistakes import Alternative, Mistake, Variants
from course.authoring.problem import AuthoringError
from course.authoring.views import read_source

from .small_course import MISTAKES, Project

SOLUTION = """\
class Agent:
    def prompt(self):
        if self.active:
            raise Busy

        return self.start()

    def end(self):
        if self.run:
            self.active = None
"""


@pytest.fixture
def variants(project: Project) -> Variants:
    return mistakes.load(project.checkpoint)


def change(variants: Variants, *replace: tuple[str, str]) -> str:
    return variants.source_of(Mistake("9.2", "name", "why", replace), SOLUTION)


def test_an_old_text_of_one_line_is_any_piece_of_a_line(variants: Variants) -> None:
    changed = change(variants, ("self.active:", "False:"))
    assert changed == SOLUTION.replace("if self.active:", "if False:")


def test_an_old_text_of_several_lines_is_whole_lines_at_any_indentation(variants: Variants) -> None:
    changed = change(
        variants,
        (
            """
            if self.active:
                raise Busy

            return self.start()
            """,
            """
            self.queue()

            while self.active:
                self.wait()
            """,
        ),
    )
    assert (
        "    def prompt(self):\n        self.queue()\n\n        while self.active:\n            self.wait()\n"
        in changed
    )


def test_new_lines_for_a_piece_of_a_line_are_indented_like_it(variants: Variants) -> None:
    changed = change(variants, ("self.active = None", "\nself.active = None\nself.run = None\n"))
    assert changed.endswith("            self.active = None\n            self.run = None\n")


def test_several_replacements_are_made_one_after_the_other(variants: Variants) -> None:
    changed = change(variants, ("raise Busy", "return 1"), ("return 1", "return 2"))
    assert "return 2" in changed
    assert "return 1" not in changed


@pytest.mark.parametrize(
    ("old", "count"),
    [
        ("self.gone", 0),
        ("self.active", 2),
        ("def prompt(self):\nif self.active:", 0),
        ("if self.run:\nself.active = None", 0),
    ],
)
def test_an_old_text_must_occur_exactly_once(variants: Variants, old: str, count: int) -> None:
    with pytest.raises(AuthoringError, match=rf"name: its old text occurs {count} times in the solution, not once"):
        change(variants, (old, "x"))


def test_two_hits_on_one_line_are_two(variants: Variants) -> None:
    with pytest.raises(AuthoringError, match="occurs 2 times"):
        variants.source_of(Mistake("1.1", "name", "why", [("number", "x")]), "number + number\n")


def test_a_replacement_that_changes_nothing_is_an_error(variants: Variants) -> None:
    with pytest.raises(AuthoringError, match="it changes nothing"):
        change(variants, ("raise Busy", "raise Busy"))


def test_a_replacement_that_is_not_python_is_an_error(variants: Variants) -> None:
    with pytest.raises(AuthoringError, match=r"it is not Python: .* in `raise Busy if`"):
        change(variants, ("raise Busy", "raise Busy if"))


def test_a_problem_is_told_at_the_line_that_names_the_mistake(project: Project) -> None:
    project.write("tests/mistakes/mistakes_01.py", MISTAKES.replace('"number += 1", "number += 2"', '"gone", "x"'))
    source = read_source(project.checkpoint)
    (problem,) = mistakes.problems(mistakes.load(project.checkpoint), source)
    assert MISTAKES.split("\n")[problem.line - 1].strip().startswith('wrong("1.2", "counts in twos"')


def test_an_alternative_may_be_a_whole_file_beside_the_list(project: Project, variants: Variants) -> None:
    project.write("tests/mistakes/other.py", "X = 1\n")
    assert variants.source_of(Alternative("other", file="other.py"), SOLUTION) == "X = 1\n"
    with pytest.raises(AuthoringError, match=r"there is no file gone\.py beside this one"):
        variants.source_of(Alternative("gone", file="gone.py"), SOLUTION)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('wrong("1.1", "squares", "number + number", "number * number"),', "", "lab 1.1 has 3 mistakes of at least 4."),
        ('[Alternative("multiplies", replace=[("number + number", "2 * number")])]', "[]", "has no alternative."),
        ('wrong("1.1", "squares"', 'wrong("1.7", "squares"', "squares: lab 1.7 has no block in the module."),
    ],
)
def test_too_few_or_misfiled_variants_are_told(project: Project, old: str, new: str, told: str) -> None:
    assert MISTAKES.count(old) == 1
    project.write("tests/mistakes/mistakes_01.py", MISTAKES.replace(old, new))
    problems = mistakes.problems(mistakes.load(project.checkpoint), read_source(project.checkpoint))
    assert any(told in str(problem) for problem in problems)


@pytest.mark.parametrize("text", ["MISTAKES = [", "import nothing_of_this_name"])
def test_a_list_that_cannot_be_run_is_told(project: Project, text: str) -> None:
    project.write("tests/mistakes/mistakes_01.py", text)
    with pytest.raises(AuthoringError, match=r"mistakes_01\.py: cannot be run: "):
        mistakes.load(project.checkpoint)
