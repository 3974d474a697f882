"""A module with some of its labs solved."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from course.authoring.problem import AuthoringError
from course.authoring.views import read_source

from .small_course import Project


def run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "agent.py", "exec", dont_inherit=True), names)
    return names


def test_the_solution_is_the_module_without_markers_and_neutral_bodies(project: Project) -> None:
    source = project.module(
        """
        def double(number):
            # BEGIN SOLUTION 1.1: add

            # The sum.
            return number + number  # twice

            # UNTIL THEN
            # return 0
            # END SOLUTION
        """
    )
    assert source.solution == "def double(number):\n    # The sum.\n    return number + number  # twice\n"


def test_the_starter_raises_the_labs_own_words_in_each_block(project: Project) -> None:
    names = run(read_source(project.checkpoint).starter)
    with pytest.raises(NotImplementedError, match=r"^Lab 1\.1: add the number to itself$"):
        names["double"](1)
    with pytest.raises(NotImplementedError, match=r"^Lab 1\.2: yield each number$"):
        next(names["count"](1))


def test_a_neutral_body_stands_in_the_starter_below_a_comment_that_names_its_lab(project: Project) -> None:
    source = project.module(
        """
        def double(number):
            # BEGIN SOLUTION 1.1: add
            return number + number
            # UNTIL THEN
            # if number:
            #     return number
            #
            # return 0
            # END SOLUTION
        """
    )
    neutral = "    if number:\n        return number\n\n    return 0\n"
    assert source.starter == "def double(number):\n    # Lab 1.1: add\n" + neutral


def test_labs_up_to_k_are_solved_and_later_ones_are_not(project: Project) -> None:
    names = run(read_source(project.checkpoint).render(["1.1"]))
    assert names["double"](2) == 4
    with pytest.raises(NotImplementedError, match=r"Lab 1\.2"):
        next(names["count"](1))


def test_lines_outside_of_blocks_are_kept_byte_for_byte(project: Project) -> None:
    before, after = "# Grüße  \nX = '''\ttab\u2028'''\x0c\n\n\n", "Y = 2   \n\n# the end"
    block = "def f():\n    # BEGIN SOLUTION 1.1: add\n    return 1\n    # END SOLUTION\n"
    source = project.module(before + block + after)
    assert source.solution == f"{before}def f():\n    return 1\n{after}"
    assert source.starter == f'{before}def f():\n    raise NotImplementedError("Lab 1.1: add")\n{after}'


@pytest.mark.parametrize(("keyword", "is_generator"), [("", "isgeneratorfunction"), ("async ", "isasyncgenfunction")])
def test_a_starter_keeps_its_generators_generators(project: Project, keyword: str, is_generator: str) -> None:
    source = project.module(
        f"""
        {keyword}def count(upto):
            # BEGIN SOLUTION 1.2: the first
            yield 0
            # END SOLUTION
            # BEGIN SOLUTION 1.2: the rest
            yield 1
            # END SOLUTION
        """
    )
    assert getattr(inspect, is_generator)(run(source.starter)["count"])
    assert source.starter.count("yield") == 1


def test_a_yield_outside_of_the_block_needs_no_second_one(project: Project) -> None:
    source = project.module(
        """
        def count(upto):
            yield 0
            # BEGIN SOLUTION 1.2: the rest
            yield 1
            # END SOLUTION
        """
    )
    assert source.starter.count("yield") == 1


def test_a_neutral_body_that_ends_a_generator_is_an_error(project: Project) -> None:
    problems = project.problems(
        """
        def count(upto):
            # BEGIN SOLUTION 1.2: count
            yield 1
            # UNTIL THEN
            # return
            # END SOLUTION
        """
    )
    assert problems[0].startswith("1: the starter's `count` would be no generator any more. Give the neutral body")


def test_a_starter_that_would_lose_a_public_name_is_an_error(project: Project) -> None:
    problems = project.problems(
        """
        # BEGIN SOLUTION 1.1: add
        def double(number):
            '''Twice.'''
            return number + number
        # UNTIL THEN
        # def double(number): ...
        # END SOLUTION
        """
    )
    assert problems[0].startswith("2: the starter would lose the signature or the docstring of `double`")


def test_private_helpers_may_be_a_learners_own_idea(project: Project) -> None:
    source = project.module(
        """
        # BEGIN SOLUTION 1.1: helpers
        def _twice(number):
            return number + number


        # UNTIL THEN
        # # Your helpers.
        # END SOLUTION


        def double(number):
            # BEGIN SOLUTION 1.1: add
            return _twice(number)
            # END SOLUTION
        """
    )
    assert source.starter.startswith("# Lab 1.1: helpers\n# Your helpers.\n\n\ndef double(number):\n    raise")
    assert run(source.solution)["double"](2) == 4


def test_a_neutral_body_that_is_not_python_is_told_at_its_line(project: Project) -> None:
    problems = project.problems(
        """
        def double(number):
            # BEGIN SOLUTION 1.1: add
            return number + number
            # UNTIL THEN
            # number = 0
            # return number +
            # END SOLUTION
        """
    )
    assert problems == ["6: this neutral body is not Python: invalid syntax."]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('say "no"', "'Lab 1.1: say \"no\"'"),
        ('don\'t say "no"', '"Lab 1.1: don\'t say \\"no\\""'),
        (r"keep \n", r'"Lab 1.1: keep \\n"'),
    ],
)
def test_the_labs_words_are_quoted_whatever_they_hold(project: Project, text: str, quoted: str) -> None:
    source = project.module(f"def f():\n    # BEGIN SOLUTION 1.1: {text}\n    return 1\n    # END SOLUTION\n")
    assert quoted in source.starter
    with pytest.raises(NotImplementedError) as caught:
        run(source.starter)["f"]()
    assert str(caught.value) == f"Lab 1.1: {text}"


def test_a_long_raise_is_wrapped_as_the_formatter_does_and_a_longer_one_is_an_error(project: Project) -> None:
    module = "def f():\n    # BEGIN SOLUTION 1.1: {}\n    return 1\n    # END SOLUTION\n"
    source = project.module(module.format("x" * 70))
    assert source.starter.split("\n")[1:4] == [
        "    raise NotImplementedError(",
        f'        "Lab 1.1: {"x" * 70}"',
        "    )",
    ]
    assert project.problems(module.format("x" * 90)) == ["2: its starter has a line of 109 columns. Shorten the text."]
    neutral = module.replace("return 1", "return 1\n    # UNTIL THEN\n    # return 0")
    assert project.problems(neutral.format("x" * 90)) == ["2: its starter has a line of 105 columns. Shorten the text."]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"x = 1\ny = '\xff'\n", "tiny.py:2: is not UTF-8"),
        (b"x = 1\r\n", "tiny.py:1: ends in CR LF"),
        (b"x = 1\ny = (\n", "tiny.py:2: is not Python"),
    ],
)
def test_a_file_that_cannot_be_read_as_python_is_told(project: Project, content: bytes, told: str) -> None:
    project.checkpoint.source.write_bytes(content)
    with pytest.raises(AuthoringError, match=told):
        read_source(project.checkpoint)


def test_a_module_that_is_missing_is_told(project: Project) -> None:
    project.checkpoint.source.unlink()
    with pytest.raises(AuthoringError, match=r"tiny\.py: is not there"):
        read_source(project.checkpoint)
