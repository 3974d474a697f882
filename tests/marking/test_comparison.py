"""What is not shown to nbval, nbval would have taken for equal."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from course.marking import nbval_comparison
from course.marking.comparison import compare

texts = st.text(alphabet="ab\n\r\b ", max_size=6)
streams = st.builds(
    lambda name, text: {"output_type": "stream", "name": name, "text": text},
    st.sampled_from(["stdout", "stderr"]),
    texts,
)
results = st.builds(
    lambda count, data: {"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data},
    st.integers(1, 3),
    st.dictionaries(st.sampled_from(["text/plain", "text/html", "image/png"]), texts, min_size=1),
)
errors = st.builds(
    lambda kind, text: {"output_type": "error", "ename": kind, "evalue": text, "traceback": [text]},
    st.sampled_from(["ValueError", "KeyError"]),
    texts,
)
outputs = st.lists(streams | results | errors, max_size=3)


@given(outputs, outputs)
def test_it_finds_what_nbval_finds(stored: list[dict[str, Any]], came: list[dict[str, Any]]) -> None:
    assert compare(stored, came) == nbval_comparison.compare(stored, came)


@given(outputs, st.integers(1, 9), texts)
def test_neither_counts_nor_standard_error_decide(stored: list[dict[str, Any]], count: int, said: str) -> None:
    came = [{**output, "execution_count": count} if "execution_count" in output else output for output in stored]
    came.append({"output_type": "stream", "name": "stderr", "text": said})
    assert compare(stored, came) is None
    assert nbval_comparison.compare(stored, came) is None


@pytest.mark.parametrize(("came", "loads"), [("a", False), ("b", True)])
def test_nbval_is_loaded_only_for_what_differs(came: str, loads: bool) -> None:
    code = (
        "import sys; from course.marking.comparison import compare\n"
        "out = lambda text: [{'output_type': 'stream', 'name': 'stdout', 'text': text}]\n"
        f"print(compare(out('a'), out({came!r})) is None, 'nbval' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(not loads), str(loads)]
