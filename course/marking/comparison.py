"""Where a cell's outputs part from the stored ones. nbval decides; it is loaded only when there is a doubt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NEVER_COMPARED = ("execution_count", "metadata", "traceback")


@dataclass(frozen=True)
class Difference:
    """Where outputs part: the kind of output, such as "stdout" or "text/plain", what is stored and what came."""

    kind: str
    stored: str
    came: str


def compare(stored: Sequence[dict[str, Any]], came: Sequence[dict[str, Any]]) -> Difference | None:
    """None when nbval takes `came` for equal to `stored`, both in nbformat's form; otherwise where they part.

    Outputs that are the same to the letter are equal to nbval, too, whose import takes a quarter of a second.
    """
    if _compared(stored) == _compared(came):
        return None
    from course.marking import nbval_comparison

    return nbval_comparison.compare(stored, came)


def _compared(outputs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs that count, without what nbval never looks at."""
    return [
        {key: value for key, value in output.items() if key not in _NEVER_COMPARED}
        for output in outputs
        if output.get("name") != "stderr"
    ]
