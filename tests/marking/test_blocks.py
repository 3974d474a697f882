"""A test whose block was cut short has not passed, whatever swallowed the error."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import toy

from course.catalog import Lab
from course.marking.blocks import Blocks, count
from course.marking.mark import mark

SWALLOW = """
class Swallow:
    def __enter__(self): return self
    def __exit__(self, *error): return True
"""


def run(body: str) -> list[int]:
    """The lines of the blocks that a test with this body has entered and not gone through."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    tree = ast.parse(f"import contextlib, pytest\n{SWALLOW}\ndef test():\n{lines}")
    count(tree, ast.Name("blocks", ast.Load()))
    blocks = Blocks()
    names = {"blocks": blocks}
    exec(compile(tree, "test", "exec"), names)
    names["test"]()  # type: ignore[operator]
    return [line - 7 for line in blocks.open]


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        ("with Swallow():\n    assert True", []),
        ("with Swallow():\n    assert False", [1]),
        ("with Swallow():\n    with contextlib.nullcontext():\n        1 / 0", [1, 2]),
        ("for n in range(3):\n    with Swallow():\n        1 / (n - 1)", [2]),
        ("with pytest.raises(ZeroDivisionError):\n    with contextlib.nullcontext():\n        1 / 0", []),
        ("with contextlib.suppress(KeyError):\n    raise KeyError", []),
        ("with Swallow():\n    pass\nif True:\n    with Swallow():\n        1 / 0", [4]),
        ("def inner():\n    with Swallow():\n        1 / 0\ninner()", []),
    ],
)
def test_blocks_that_were_not_gone_through_are_known(body: str, cut: list[int]) -> None:
    assert run(body) == cut


TEST = """\
import pytest
from agent import Door

@pytest.mark.lab("42.1")
def test_a_door_knows_its_number():
    with Door(1) as door:
        assert door.number == 1

@pytest.mark.lab("42.1")
def test_a_door_can_be_left_by_an_error():
    with pytest.raises(KeyError):
        with Door(1):
            raise KeyError
"""

DOOR = """\
class Door:
    def __init__(self, number): self.number = {number}
    def __enter__(self): return self
    def __exit__(self, *error): return {returns}
"""


@pytest.mark.parametrize(
    ("number", "returns", "passed"), [("number", "None", 2), ("number + 1", "None", 1), ("number + 1", "True", 0)]
)
def test_an_exit_that_returns_true_hides_no_assert_that_failed(
    tmp_path: Path, number: str, returns: str, passed: int
) -> None:
    checkpoint = toy.lay(tmp_path / "home", test=TEST, labs=(Lab("42.1", "Doors", 2),))
    source = DOOR.format(number=number, returns=returns).encode()
    (lab,) = mark(checkpoint, tmp_path / "agent.py", source=source, notebook=False).labs
    assert lab.tests == passed
    assert lab.verdict == ("green" if passed == 2 else "red")
    if returns == "True":
        assert "Came: the test was cut short inside its `with` block" in (lab.message or "")
        assert (lab.where or "").endswith(":6")
