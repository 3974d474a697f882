"""Wrong solutions that the tests of their own lab must turn red, and right ones that no test may.

They are kept as small replacements on the solution, in `tests/mistakes/mistakes_NN.py`, in two lists:

    MISTAKES = [
        Mistake(
            lab="9.2",
            name="clears the owner again after run_end",
            why="A run_end listener has started run 2 by then, and its record is thrown away.",
            replace=[("await self._publish(end)", "await self._publish(end); self._active = None")],
        ),
    ]
    ALTERNATIVES = [Alternative(name="keeps its listeners in a dict", replace=[...])]
"""

from __future__ import annotations

import re
import runpy
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from course.authoring.problem import AuthoringError, Problem
from course.authoring.views import Source
from course.catalog import Checkpoint

MISTAKES_PER_LAB = 4


@dataclass(frozen=True)
class Mistake:
    """A wrong solution that a learner would write.

    `replace` holds pairs of old and new text. An old text of one line is any piece of a line; one of several
    lines is whole lines, written at any indentation. It must occur exactly once in the solution. The new text
    is indented to fit. `red` names the focused test that must fail, where that matters.
    """

    lab: str
    name: str
    why: str
    replace: Sequence[tuple[str, str]]
    red: str | None = None


@dataclass(frozen=True)
class Alternative:
    """A right solution that differs from ours: replacements like a Mistake's, or a whole file.

    `file` is the name of a file beside the one that lists it; its text takes the place of the solution.
    """

    name: str
    replace: Sequence[tuple[str, str]] = ()
    file: str | None = None


@dataclass(frozen=True)
class Variants:
    """The mistakes and the alternatives of one checkpoint, and the file that lists them."""

    path: Path
    mistakes: tuple[Mistake, ...]
    alternatives: tuple[Alternative, ...]

    def source_of(self, variant: Mistake | Alternative, solution: str) -> str:
        """The text of `agent.py` for one of them. Raises AuthoringError where a replacement does not fit."""
        changed = solution
        if isinstance(variant, Alternative) and variant.file is not None:
            changed = self._read_beside(variant, variant.file)
        for old, new in variant.replace:
            changed, count = _replace(changed, old, new)
            if count != 1:
                raise self.wrong(
                    variant, f"its old text occurs {count} times in the solution, not once: {old.strip()!r}."
                )
        self._must_differ(variant, changed, solution)
        return changed

    def _read_beside(self, variant: Alternative, name: str) -> str:
        try:
            return (self.path.parent / name).read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise self.wrong(variant, f"there is no file {name} beside this one.") from error

    def wrong(self, variant: Mistake | Alternative, text: str) -> AuthoringError:
        return AuthoringError([Problem(self.path, self._line(variant), f"{variant.name}: {text}")])

    def _must_differ(self, variant: Mistake | Alternative, changed: str, solution: str) -> None:
        if changed == solution:
            raise self.wrong(variant, "it changes nothing. Give it a replacement that does.")
        try:
            compile(changed, "agent.py", "exec", dont_inherit=True)
        except SyntaxError as error:
            line = (error.text or "").strip()
            raise self.wrong(variant, f"it is not Python: {error.msg}, in `{line}`.") from error

    def _line(self, variant: Mistake | Alternative) -> int:
        lines = self.path.read_text(encoding="utf-8").split("\n")
        return next((number for number, line in enumerate(lines, 1) if variant.name in line), 0)


def load(checkpoint: Checkpoint) -> Variants:
    """The checkpoint's mistakes and alternatives. Raises AuthoringError where their file cannot be run."""
    path = checkpoint.mistakes
    if not path.is_file():
        text = "is missing. List MISTAKES and ALTERNATIVES in it: see course/authoring/mistakes.py."
        raise AuthoringError([Problem(path, 0, text)])
    try:
        names = runpy.run_path(str(path))
    except Exception as error:
        raise AuthoringError([Problem(path, 0, f"cannot be run: {error!r}.")]) from error
    return Variants(path, tuple(names.get("MISTAKES", ())), tuple(names.get("ALTERNATIVES", ())))


def problems(variants: Variants, source: Source) -> Iterator[Problem]:
    """What is wrong with a checkpoint's variants before any is marked: too few, misnamed, or not fitting."""
    path = variants.path
    marked = {block.lab for block in source.blocks}
    for lab in (lab.id for lab in source.checkpoint.labs if lab.id in marked):
        count = sum(mistake.lab == lab for mistake in variants.mistakes)
        if count < MISTAKES_PER_LAB:
            yield Problem(path, 0, f"lab {lab} has {count} mistakes of at least {MISTAKES_PER_LAB}.")
    if not variants.alternatives:
        yield Problem(path, 0, "has no alternative. Add a different solution that is right.")
    for mistake in variants.mistakes:
        if mistake.lab not in marked:
            yield from variants.wrong(mistake, f"lab {mistake.lab} has no block in the module.").problems
    seen = set()
    for variant in (*variants.mistakes, *variants.alternatives):
        if variant.name in seen:
            yield from variants.wrong(variant, "another has this name. Say what is different.").problems
        seen.add(variant.name)
        try:
            variants.source_of(variant, source.solution)
        except AuthoringError as error:
            yield from error.problems


def _replace(text: str, old: str, new: str) -> tuple[str, int]:
    """The text with `old` replaced wherever it occurs, and how often that was."""
    first, *rest = (re.escape(line) for line in _plain(old).split("\n"))
    pattern = first
    if rest:
        tail = "".join(rf"\n(?P=indent){line}" if line else r"\n" for line in rest)
        pattern = rf"^(?P<indent> *){first}{tail}$"

    def put(match: re.Match[str]) -> str:
        if rest:
            return textwrap.indent(_plain(new), match["indent"])
        line = text[text.rfind("\n", 0, match.start()) + 1 :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        return textwrap.indent(_plain(new), indent).removeprefix(indent)

    return re.subn(pattern, put, text, flags=re.MULTILINE)


def _plain(text: str) -> str:
    """A text of several lines without its common indentation and the line ends around it."""
    return textwrap.dedent(text).strip("\n") if "\n" in text else text
