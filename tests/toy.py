"""A checkpoint of three labs, small enough to see through: what the marking's tests mark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from course.catalog import Checkpoint, Lab

CHECKPOINT = Checkpoint(
    id="42",
    slug="toy",
    title="A toy",
    module="toy",
    minutes=1,
    labs=(
        Lab("42.1", "Count", 2, hints=("Add, then return.", "self.value holds the sum.", "return self.value")),
        Lab("42.2", "Wait", 2),
        Lab("42.3", "Show", 1, optional=True),
    ),
)

SOLUTION = '''\
"""A counter."""

import anyio


class Counter:
    def __init__(self):
        self.value = 0

    def add(self, n=1):
        # 42.1
        self.value += n
        return self.value

    async def add_later(self, n=1):
        # 42.2
        await anyio.sleep(0)
        return self.add(n)

    def show(self):
        # 42.3
        return f"<{self.value}>"
'''

TEST = """\
import anyio
import pytest
from agent import Counter

pytestmark = pytest.mark.anyio


@pytest.mark.lab("42.1")
def test_adding_gives_the_new_value():
    assert Counter().add(2) == 2, "add() must return the new value"


@pytest.mark.lab("42.1")
def test_counters_share_nothing():
    Counter().add()
    assert Counter().value == 0


@pytest.mark.lab("42.2")
async def test_adding_later_adds():
    assert await Counter().add_later(3) == 3


@pytest.mark.lab("42.2")
async def test_two_may_add_at_once():
    counter = Counter()
    async with anyio.create_task_group() as group:
        group.start_soon(counter.add_later)
        group.start_soon(counter.add_later)
    assert counter.value == 2, "one of two additions was lost"


@pytest.mark.lab("42.3")
def test_a_counter_shows_its_value():
    assert Counter().show() == "<0>"
"""

CELLS: list[tuple[str, tuple[str, ...], str]] = [
    ("from course.agent.toy import Counter\ncounter = Counter()", (), ""),
    ("raise RuntimeError('a demo cell, never run when marking')", ("demo",), ""),
    ("print(counter.add(1), counter.add(2))", ("lab-42.1",), "1 3\n"),
    ("print(await counter.add_later(2))", ("lab-42.2",), "5\n"),
    ("print(counter.show())", ("lab-42.3",), "<5>\n"),
    ("raise RuntimeError('behind the last cell that counts')", (), ""),
]
"""Source, tags, and what it prints."""


def stub(lab: str) -> str:
    """The solution with one lab's body taken out, as a starter has it."""
    lines = SOLUTION.splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if f"# {lab}" in line)
    end = next((number for number in range(start, len(lines)) if not lines[number].strip()), len(lines))
    return "".join([*lines[:start], f'        raise NotImplementedError("Lab {lab}: write this")\n', *lines[end:]])


def replaced(old: str, new: str) -> str:
    """The solution with `old` replaced, which must be in it."""
    assert old in SOLUTION
    return SOLUTION.replace(old, new)


def lay(
    home: Path, *, test: str = TEST, cells: list[tuple[str, tuple[str, ...], str]] = CELLS, labs: tuple[Lab, ...] = ()
) -> Checkpoint:
    """Write the checkpoint's files below `home` and give the checkpoint that has them."""
    (home / "labs").mkdir(parents=True, exist_ok=True)
    checkpoint = replace(at(home), labs=labs or CHECKPOINT.labs)
    for path in (checkpoint.notebook, checkpoint.test, checkpoint.solution, checkpoint.starter):
        path.parent.mkdir(parents=True, exist_ok=True)
    checkpoint.notebook.write_text(json.dumps(notebook(cells)), encoding="utf-8")
    checkpoint.test.write_text(test, encoding="utf-8")
    checkpoint.solution.write_text(SOLUTION, encoding="utf-8")
    checkpoint.starter.write_text(stub("42.1"), encoding="utf-8")
    return checkpoint


def at(home: Path) -> Checkpoint:
    """The checkpoint whose files lie below `home`."""
    return replace(CHECKPOINT, package=home / "course")


def notebook(cells: list[tuple[str, tuple[str, ...], str]]) -> dict[str, Any]:
    return {"cells": [_cell(*cell) for cell in cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def _cell(source: str, tags: tuple[str, ...], prints: str) -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": prints.splitlines(keepends=True)}] if prints else []
    return {
        "cell_type": "code",
        "id": str(abs(hash(source)))[:8],
        "metadata": {"tags": list(tags)},
        "source": source,
        "execution_count": 1,
        "outputs": outputs,
    }
