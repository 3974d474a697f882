"""nbval judges the outputs; standard error never does."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from course.marking.nbval_comparison import compare


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def result(text: str, count: int = 1, **data: str) -> dict[str, Any]:
    named = {kind.replace("_", "/"): value for kind, value in data.items()}
    output = {"output_type": "execute_result", "execution_count": count, "metadata": {}}
    return {**output, "data": {"text/plain": text, **named}}


@pytest.mark.parametrize(
    ("stored", "came"),
    [
        ([stream("a\nb\n")], [stream("a\n"), stream("b\n")]),
        ([result("1", count=3)], [result("1", count=9)]),
        ([stream("a")], [stream("a"), stream("careful", "stderr")]),
        ([stream("a"), stream("old", "stderr")], [stream("a"), stream("new", "stderr")]),
        ([], []),
    ],
)
def test_equal_outputs_have_no_difference(stored: list[dict[str, Any]], came: list[dict[str, Any]]) -> None:
    assert compare(stored, came) is None


@pytest.mark.parametrize(
    ("stored", "came", "kind"),
    [
        ([stream("a")], [stream("b")], "stdout"),
        ([result("1")], [result("2")], "text/plain"),
        ([result("x", text_html="<b>")], [result("x", text_html="<i>")], "text/html"),
        ([stream("a")], [], ""),
        ([], [stream("a")], ""),
        ([stream("a")], [result("a")], ""),
        ([result("1")], [result("1"), result("1")], ""),
    ],
)
def test_a_difference_says_where_it_lies(stored: list[dict[str, Any]], came: list[dict[str, Any]], kind: str) -> None:
    found = compare(stored, came)
    assert found is not None
    assert found.kind == kind


def test_the_slow_grammar_is_left_out_and_the_import_undone() -> None:
    code = "import sys, course.marking.nbval_comparison; print('lark' in sys.modules, 'rfc3987_syntax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
