"""nbval's own comparison of a cell's outputs with the stored ones, without its kernel and its pytest run."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from course.marking.comparison import Difference
from course.marking.slow_grammar import without_slow_grammar

with without_slow_grammar():
    from nbformat import from_dict
    from nbval import plugin as nbval

_SKIPPED = (
    *("metadata", "traceback", "prompt_number", "output_type", "name", "execution_count"),
    *("application/vnd.jupyter.widget-view+json", "image/png", "image/jpeg"),
    "stderr",
)
"""nbval's own list, and `stderr`: standard error never decides."""


class _Comparison:
    """Lends nbval's cell what its comparison reads, and keeps the difference instead of a coloured text."""

    parent = SimpleNamespace(skip_compare=_SKIPPED, sanitize_patterns={})
    colors = nbval.nocolors
    compare_outputs = nbval.IPyNbCell.compare_outputs
    sanitize = nbval.IPyNbCell.sanitize
    difference: Difference | None = None

    def format_output_compare(self, key: str, left: object, right: object) -> None:
        self.difference = Difference(key, str(left), str(right))


def compare(stored: Sequence[dict[str, Any]], came: Sequence[dict[str, Any]]) -> Difference | None:
    """None when nbval takes `came` for equal to `stored`, both in nbformat's form; otherwise where they part."""
    comparison = _Comparison()
    if comparison.compare_outputs(_nodes(came), _nodes(stored)):
        return None
    return comparison.difference or Difference("", _text(stored), _text(came))


def _nodes(outputs: Sequence[dict[str, Any]]) -> list[Any]:
    return nbval.coalesce_streams([from_dict(output) for output in outputs])


def _text(outputs: Sequence[dict[str, Any]]) -> str:
    """What a reader sees of the outputs."""
    shown = [
        output.get("text") or output.get("data", {}).get("text/plain") or output.get("evalue") or ""
        for output in outputs
        if output.get("name") != "stderr"
    ]
    return "".join(text if isinstance(text, str) else "".join(text) for text in shown)
