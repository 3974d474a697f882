"""Two values that should have been equal, told in as few lines as show where they differ."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

SHORT = 90
"""Characters of two values that stand side by side in one line."""

ALIKE = 0.5
"""How much two texts must have in common to be told word by word: 0 is nothing, 1 is all."""

CAME = "came: "
"""What the first line begins with."""

_LEGEND = "(- is missing, + is too much)"


def apart(came: Any, expected: Any) -> list[str]:
    """The lines. Raises what the values raise when they are shown or compared."""
    first, *rest = _lines(came, expected)
    return [CAME + first, *rest]


def without(came: str, part: str) -> list[str]:
    """The lines for a text that should have had `part` in it."""
    return [f"{CAME}{came!r}, without {part!r}"]


def _lines(came: Any, expected: Any) -> list[str]:
    shown = repr(came), repr(expected)
    if sum(map(len, shown)) <= SHORT:
        return [f"{shown[0]} instead of {shown[1]}"]
    if isinstance(came, Mapping) and isinstance(expected, Mapping):
        return list(_keys(came, expected))
    if isinstance(came, str) and isinstance(expected, str):
        return _text(came, expected)
    if isinstance(came, list | tuple) and type(came) is type(expected):
        assert isinstance(expected, list | tuple)
        if len(came) == len(expected):
            return list(_items(came, expected))
        return _diff([*map(repr, came)], [*map(repr, expected)])
    return [shown[0], "instead of", shown[1]]


def _keys(came: Mapping[Any, Any], expected: Mapping[Any, Any]) -> Iterator[str]:
    for key in [*expected, *(key for key in came if key not in expected)]:
        if key not in came:
            yield f"no {key!r}, which should be {expected[key]!r}"
        elif key not in expected:
            yield f"{key!r}, which should not be there: {came[key]!r}"
        elif came[key] != expected[key]:
            yield from _named(str(key), came[key], expected[key])


def _items(came: list[Any] | tuple[Any, ...], expected: list[Any] | tuple[Any, ...]) -> Iterator[str]:
    for place, (left, right) in enumerate(zip(came, expected, strict=True)):
        if left != right:
            yield from _named(f"item {place}", left, right)


def _named(name: str, came: Any, expected: Any) -> list[str]:
    first, *rest = _lines(came, expected)
    return [f"{name}: {first}", *(f"  {line}" for line in rest)]


def _text(came: str, expected: str) -> list[str]:
    """By lines where there are some, else by words: a long text usually lacks one, or has one too many."""
    if "\n" in came + expected:
        return _diff(came.splitlines(), expected.splitlines())
    words = came.split(" "), expected.split(" ")
    if difflib.SequenceMatcher(None, *words).ratio() < ALIKE:
        return [repr(came), "instead of", repr(expected)]
    return _diff(*words)


def _diff(came: list[str], expected: list[str]) -> list[str]:
    """What is missing and what is too much, with a line around it to find the place by."""
    lines = list(difflib.unified_diff(expected, came, n=1, lineterm=""))[2:]
    return [_LEGEND, *("…" if line.startswith("@@") else line for line in lines)]
