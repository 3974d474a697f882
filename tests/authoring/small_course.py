"""A small course, whole and without a fault, for tests to spoil."""

from __future__ import annotations

import json
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from course import catalog
from course.authoring import build
from course.authoring.problem import AuthoringError
from course.authoring.views import Source, read_source
from course.catalog import Checkpoint

CATALOG = """
[[checkpoint]]
id = "01"
slug = "tiny"
title = "Tiny"
module = "tiny"
minutes = 1

[[checkpoint.lab]]
id = "1.1"
title = "Double"
tests = 2

[[checkpoint.lab]]
id = "1.2"
title = "Count"
tests = 2
"""

MODULE = '''
"""Two small functions."""


def double(number: int) -> int:
    """Twice the number."""
    # BEGIN SOLUTION 1.1: add the number to itself
    return number + number
    # END SOLUTION


def count(upto: int):
    """The numbers below `upto`, one by one."""
    # BEGIN SOLUTION 1.2: yield each number
    number = 0
    while number < upto:
        yield number
        number += 1
    # END SOLUTION
'''

TEST = """
import pytest
from agent import count, double


@pytest.mark.lab("1.1")
def test_double_of_two_is_four():
    assert double(2) == 4


@pytest.mark.lab("1.1")
def test_double_of_nothing_is_nothing():
    assert double(0) == 0


@pytest.mark.lab("1.2")
@pytest.mark.parametrize("upto", [0, 3])
def test_count_is_range(upto):
    assert list(count(upto)) == list(range(upto))


@pytest.mark.lab("1.2")
def test_count_counts_nothing_below_zero():
    assert list(count(-1)) == []
"""

MISTAKES = """
from course.authoring.mistakes import Alternative, Mistake

def wrong(lab, name, old, new):
    return Mistake(lab=lab, name=name, why="It is wrong.", replace=[(old, new)])

MISTAKES = [
    wrong("1.1", "adds one", "number + number", "number + 1"),
    wrong("1.1", "adds nothing", "number + number", "number"),
    wrong("1.1", "squares", "number + number", "number * number"),
    wrong("1.1", "gives None", "return number + number", "number + number"),
    wrong("1.2", "counts one too many", "number < upto", "number <= upto"),
    wrong("1.2", "starts at one", "number = 0", "number = 1"),
    wrong("1.2", "counts in twos", "number += 1", "number += 2"),
    wrong("1.2", "yields the end", "yield number", "yield upto"),
]
ALTERNATIVES = [Alternative("multiplies", replace=[("number + number", "2 * number")])]
"""


def code_cell(id: str, source: str, *outputs: dict[str, Any], tags: tuple[str, ...] = ()) -> dict[str, Any]:
    metadata = {"tags": list(tags)} if tags else {}
    return {
        "cell_type": "code",
        "id": id,
        "metadata": metadata,
        "source": source,
        "outputs": list(outputs),
        "execution_count": None,
    }


def stdout(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def notebook(*cells: dict[str, Any]) -> str:
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": list(cells)})


NOTEBOOK = notebook(
    code_cell("set-up", "from agent import count, double"),
    code_cell("double", "print(double(2))", stdout("4\n"), tags=("lab-1.1",)),
    code_cell("count", "print(list(count(2)))", stdout("[0, 1]\n"), tags=("lab-1.2",)),
)


@dataclass(frozen=True)
class Project:
    """The small course. `write` changes a file of it."""

    root: Path

    @property
    def checkpoint(self) -> Checkpoint:
        return catalog.read(self.root / "course")["01"]

    def write(self, path: str | Path, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
        return file

    def module(self, text: str) -> Source:
        """The module with this text, read as its author's tools read it."""
        self.write("course/agent/tiny.py", textwrap.dedent(text).lstrip("\n"))
        return read_source(self.checkpoint)

    def problems(self, text: str) -> list[str]:
        """What is wrong with a module with this text, as `line: text`."""
        with pytest.raises(AuthoringError) as caught:
            self.module(text)
        return [f"{problem.line}: {problem.text}" for problem in caught.value.problems]

    def build(self) -> None:
        for file in build.build(self.checkpoint):
            file.write()


def lay(root: Path) -> Project:
    """The small course in an empty folder, built."""
    project = Project(root)
    project.write("pyproject.toml", "[tool.ruff]\nline-length = 100\n")
    project.write("course/catalog.toml", CATALOG)
    project.write("course/agent/tiny.py", MODULE.lstrip("\n"))
    project.write("labs/01_tiny.ipynb", NOTEBOOK)
    project.write("tests/checkpoints/test_01_tiny.py", TEST)
    project.write("tests/mistakes/mistakes_01.py", MISTAKES)
    project.build()
    return project
