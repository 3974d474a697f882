"""One lab's functions go back to the starter, and nothing else moves."""

from __future__ import annotations

import ast

import desk
import pytest

from course.catalog import Checkpoint, Lab, checkpoints
from course.errors import CourseError
from course.practice.lab_code import functions_of, labs_by_function, put_back, spans_in

EVERY_LAB = [(one, lab) for one in checkpoints().values() for lab in one.labs]


@pytest.mark.parametrize(("checkpoint", "lab"), EVERY_LAB, ids=[lab.id for _, lab in EVERY_LAB])
def test_any_lab_of_the_course_can_be_put_back_in_its_solution(checkpoint: Checkpoint, lab: Lab) -> None:
    solution, starter = checkpoint.solution.read_text("utf-8"), checkpoint.starter.read_text("utf-8")
    back = put_back(checkpoint, lab, solution)
    mine, theirs, before = (_functions(ast.parse(text)) for text in (back.text, starter, solution))
    assert back.functions
    assert {name: mine[name] for name in back.functions} == {name: theirs[name] for name in back.functions}
    around = {
        name for name in mine for one in back.functions if f"{name}.".startswith(f"{one}.") or one.startswith(name)
    }
    assert {name: mine[name] for name in mine if name not in around} == {
        name: before[name] for name in before if name not in around
    }


@pytest.mark.parametrize("checkpoint", checkpoints().values(), ids=checkpoints())
def test_all_labs_put_back_in_turn_give_the_starter(checkpoint: Checkpoint) -> None:
    text = checkpoint.solution.read_text("utf-8")
    for lab in checkpoint.labs:
        text = put_back(checkpoint, lab, text).text
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse(checkpoint.starter.read_text("utf-8")))


def _functions(tree: ast.AST, prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for child in ast.iter_child_nodes(tree):
        named = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            found[prefix + child.name] = ast.dump(child)
        found |= _functions(child, f"{prefix}{child.name}." if named else prefix)
    return found


def test_the_rest_of_the_file_stays_byte_for_byte(checkpoint: Checkpoint) -> None:
    mine = "# my own words\n" + desk.starter("42.1", "42.2", "42.3") + "\n\ndef helper():   \n    return  1\n"
    back = put_back(checkpoint, checkpoint.find_lab("42.2"), mine)
    assert back.text == mine.replace(desk.BODIES["42.2"], '        raise NotImplementedError("Lab 42.2: write this")\n')
    assert (back.functions, back.others) == (("Counter.add_later",), ())


def test_windows_line_ends_stay(checkpoint: Checkpoint) -> None:
    mine = desk.starter("42.1").replace("\n", "\r\n")
    assert put_back(checkpoint, checkpoint.find_lab("42.1"), mine).text == desk.starter().replace("\n", "\r\n")


def test_a_function_that_two_labs_share_goes_back_whole_and_that_is_told(checkpoint: Checkpoint) -> None:
    source = checkpoint.source.read_text("utf-8")
    shared = "        self.value += n\n        # END SOLUTION\n        # BEGIN SOLUTION 42.3: and say it\n"
    checkpoint.source.write_text(source.replace("        self.value += n\n", shared), "utf-8")
    assert labs_by_function(checkpoint)["Counter.add"] == ("42.1", "42.3")
    back = put_back(checkpoint, checkpoint.find_lab("42.1"), desk.starter(*desk.BODIES))
    assert back.others == ("42.3",)


@pytest.mark.parametrize(
    ("mine", "says"),
    [
        (desk.starter("42.1").replace("def add(", "def plus("), "agent.py has no Counter.add, which holds lab 42.1"),
        (desk.starter("42.1") + "\n\nclass Counter:\n    def add(self): ...\n", "defines Counter.add more than once"),
        (desk.starter("42.1") + "\n    x = (\n", "is not Python, line"),
        (desk.starter("42.1").replace("    ", "  "), "is indented otherwise"),
    ],
    ids=["renamed", "twice", "no Python", "other indentation"],
)
def test_a_file_of_another_shape_is_refused_with_what_to_do(checkpoint: Checkpoint, mine: str, says: str) -> None:
    with pytest.raises(CourseError, match=says) as raised:
        put_back(checkpoint, checkpoint.find_lab("42.1"), mine)
    assert "nothing was changed" in str(raised.value)
    assert "course reset 42" in str(raised.value)


def test_a_lab_without_a_function_is_refused(checkpoint: Checkpoint) -> None:
    checkpoint.source.write_text("# BEGIN SOLUTION 42.1: x\nx = 1\n# END SOLUTION\n")
    with pytest.raises(CourseError, match="stands in no function"):
        functions_of(checkpoint, checkpoint.find_lab("42.1"))


def test_decorators_belong_to_a_function(checkpoint: Checkpoint) -> None:
    checkpoint.solution.write_text("class A:\n    @property\n    @other\n    def b(self):\n        return 1\n")
    (span,) = spans_in(checkpoint.solution, ["A.b"])
    assert (span.first, span.last) == (2, 5)
