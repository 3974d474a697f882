"""Where a block may stand."""

from __future__ import annotations

import ast

import pytest

from course.authoring import shape

from .small_course import Project


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (
            """
            def double(number):
                pass
                # BEGIN SOLUTION 1.1: add
                # END SOLUTION
            """,
            3,
            "holds no whole statement",
        ),
        (
            """
            def double(number):
                # BEGIN SOLUTION 1.1: add
                if number:
                    number += 1
                # END SOLUTION
                else:
                    number += 2
            """,
            5,
            "ends inside the statement that begins on line 3. End it on line 8 or later",
        ),
        (
            """
            def double(number):
                if number:
                    # BEGIN SOLUTION 1.1: add
                    number += 1
                else:
                    number += 2
                    # END SOLUTION
            """,
            3,
            "from one branch into the next",
        ),
        (
            """
            def double(number):
                try:
                    number += 1
                    # BEGIN SOLUTION 1.1: add
                    number += 1
                except ValueError:
                    number += 2
                    # END SOLUTION
            """,
            4,
            "from one branch into the next",
        ),
        (
            """
            def double(number):
                if number:
                    number += 1
                # BEGIN SOLUTION 1.1: add
                else:
                    number += 2
                # END SOLUTION
            """,
            6,
            "not indented like its block's markers",
        ),
        (
            """
            def double(number):
                # BEGIN SOLUTION 1.1: add
                '''Twice the number.'''
                return number + number
                # END SOLUTION
            """,
            2,
            "starters keep every docstring",
        ),
        (
            """
            # BEGIN SOLUTION 1.1: add
            TWO = 2
            # END SOLUTION
            """,
            1,
            "outside of a function the starter cannot raise",
        ),
        (
            """
            class Double:
                # BEGIN SOLUTION 1.1: add
                two = 2
                # END SOLUTION
            """,
            2,
            "outside of a function the starter cannot raise",
        ),
    ],
)
def test_a_misplaced_block_is_told_with_its_line_and_the_correction(
    project: Project, text: str, line: int, told: str
) -> None:
    problems = project.problems(text)
    assert any(problem.startswith(f"{line}: ") and told in problem for problem in problems), problems


@pytest.mark.parametrize(
    "text",
    [
        """
        def double(number):
            if number:
                number += 1
                # BEGIN SOLUTION 1.1: add
                number += 1
                # END SOLUTION
        """,
        """
        def double(number):
            try:
                number += 1
            except ValueError:
                # BEGIN SOLUTION 1.1: add
                number += 1
                # END SOLUTION
            return number
        """,
        """
        def double(number):
            match number:
                case 1:
                    # BEGIN SOLUTION 1.1: add
                    number += 1
                    # END SOLUTION
                case _:
                    pass
        """,
        """
        class Double:
            def double(self):
                # BEGIN SOLUTION 1.1: add
                @staticmethod
                def inner():
                    pass

                return inner
                # END SOLUTION
        """,
    ],
)
def test_whole_statements_of_any_body_may_be_a_block(project: Project, text: str) -> None:
    source = project.module(text)
    assert 'raise NotImplementedError("Lab 1.1: add")' in source.starter


def test_a_yield_of_a_function_inside_makes_no_generator_of_the_one_around() -> None:
    tree = ast.parse("def outer():\n    def inner():\n        yield 1\n    return inner, lambda: (yield)\n")
    assert list(shape.generators(tree)) == ["outer.inner"]


def test_the_public_face_is_signatures_and_docstrings_and_no_bodies() -> None:
    one = "class A:\n    'Doc.'\n    def f(self, x: int = 1) -> int:\n        return 1\n    def _g(self): ...\n"
    assert shape.public_face(ast.parse(one)) == shape.public_face(ast.parse(one.replace("return 1", "return 2")))
    assert shape.public_face(ast.parse(one)) != shape.public_face(ast.parse(one.replace("x: int = 1", "x: int")))
    assert shape.public_face(ast.parse(one)) != shape.public_face(ast.parse(one.replace("Doc.", "Text.")))
    assert list(shape.public_face(ast.parse(one))) == ["A", "A.f"]
