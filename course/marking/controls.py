"""Negative controls: checks with a wrong expectation, mixed in with the right ones, that only rigged code passes."""

from __future__ import annotations

import secrets
import types
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

_TESTS = {
    "assert": """
        def {name}():
            assert {left} == {right}, "a control"
    """,
    "raises": """
        def {name}():
            with pytest.raises(LookupError):
                len("{left}")
    """,
    "async": """
        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def {name}(anyio_backend):
            assert [{left}, {right}] == [{right}, {left}], "a control"
    """,
}


class ControlTests(msgspec.Struct, frozen=True):
    """A test file whose every test must fail: its text, and the names of its tests in the order of the file.

    The first three go before the labs and the last three after them, one of each kind; one goes between two labs.
    """

    text: str
    names: tuple[str, ...]

    @property
    def before(self) -> tuple[str, ...]:
        return self.names[: len(_TESTS)]

    @property
    def after(self) -> tuple[str, ...]:
        return self.names[-len(_TESTS) :]

    @property
    def between(self) -> tuple[str, ...]:
        return self.names[len(_TESTS) : -len(_TESTS)]


def control_tests(gaps: int, beside: Sequence[str] = ()) -> ControlTests:
    """Controls for a run of labs with `gaps` gaps between them. Names and numbers differ every time.

    They are named like the tests `beside` them, so that no pattern tells one from the other.
    """
    kinds = [*_TESTS, *["assert"] * gaps, *_TESTS]
    names = _similar(beside, len(kinds))
    numbers = [secrets.randbelow(9000) + 1000 for _ in kinds]
    texts = [
        _dedent(_TESTS[kind]).format(name=name, left=number, right=number + 1)
        for kind, name, number in zip(kinds, names, numbers, strict=True)
    ]
    return ControlTests("import pytest\n\n" + "\n\n".join(texts), tuple(names))


def _similar(names: Sequence[str], count: int) -> list[str]:
    """So many other names, of the same words in a new order."""
    choose = secrets.SystemRandom()
    words = sorted({word for name in names for word in name.split("_")[1:]})
    similar: set[str] = set()
    while len(similar) < count:
        some = choose.sample(words, min(len(words), choose.randint(5, 9)))
        similar |= {"_".join(["test", *some, *([] if len(some) > 4 else [secrets.token_hex(6)])])} - {*names}
    return choose.sample(sorted(similar), count)


def _dedent(text: str) -> str:
    return "\n".join(line[8:] for line in text.strip("\n").splitlines())


class ControlCells(msgspec.Struct, frozen=True):
    """Two cells: one that prints `says` (and so never `denies`), and one that must not succeed."""

    prints: str
    raises: str
    says: str
    denies: str


def control_cells() -> ControlCells:
    left, right = secrets.randbelow(9000) + 1000, secrets.randbelow(9000) + 1000
    return ControlCells(
        prints=f"print({left} * {right})",
        raises=f'raise RuntimeError("{left}")',
        says=f"{left * right}\n",
        denies=f"{left * right + 1}\n",
    )


class Unlike:
    """Equal to nothing but itself."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


_ATOMS = frozenset({int, float, complex, str, bytes, bytearray, type(None), bool})
_CONTAINERS = (tuple, list, set, frozenset, dict)
_HONEST = {kind.__eq__ for kind in (object, msgspec.Struct, *_ATOMS, *_CONTAINERS)}
"""They compare what they hold, which is looked at as well."""

_UNLIKELY: dict[type, Any] = {
    int: secrets.randbits(120),
    float: secrets.randbits(60) / 7,
    str: secrets.token_hex(),
    bytes: secrets.token_bytes(),
    tuple: (secrets.token_hex(),),
    list: [secrets.token_hex()],
    dict: {secrets.token_hex(): None},
}


def equal_to_anything(values: list[Any], limit: int = 500) -> object | None:
    """The first object among `values`, or inside them, that says it equals an object it cannot know; None if none does.

    Looks into containers, structs and instances, at `limit` objects at most. Course tests must therefore not use
    `unittest.mock.ANY` and its like.
    """
    probe = Unlike()
    seen: set[int] = set()
    waiting = list(values)
    while waiting and len(seen) < limit:
        value = waiting.pop(0)
        if id(value) in seen or isinstance(value, type | types.ModuleType | types.FunctionType):
            continue
        seen.add(id(value))
        if type(value) in _ATOMS:
            continue
        if any(_says_equal(value, other) for other in (probe, *_namesakes(value))):
            return value
        waiting.extend(_parts(value))
    return None


def _namesakes(value: object) -> Iterator[object]:
    """For a value of a class made from `int` or the like: an int that it cannot be. It may claim to equal every one."""
    for kind, other in _UNLIKELY.items():
        if isinstance(value, kind) and type(value) is not kind:
            yield other


def _says_equal(value: object, other: object) -> bool:
    try:
        if type(value).__eq__ in _HONEST or isinstance(value, Unlike):
            return False
        return bool(value == other)
    except Exception:  # one that cannot compare with a stranger is honest, if clumsy
        return False


def _parts(value: Any) -> Iterator[Any]:
    try:
        if isinstance(value, dict):
            yield from list(value.values())
        elif isinstance(value, _CONTAINERS):
            yield from list(value)
        elif fields := getattr(type(value), "__struct_fields__", ()):
            yield from (getattr(value, field) for field in fields)
        else:
            yield from list(getattr(value, "__dict__", {}).values())
    except Exception:
        return
