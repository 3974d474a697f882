"""A module of `course/agent` seen with some of its labs solved: all of them, none, or the first few."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from course.authoring import markers, shape
from course.authoring.markers import Block
from course.authoring.problem import AuthoringError, Problem
from course.catalog import Checkpoint


@dataclass(frozen=True)
class Source:
    """The only hand-written version of a checkpoint's module, with its markers read and checked."""

    checkpoint: Checkpoint
    text: str
    blocks: tuple[Block, ...]
    yield_keepers: frozenset[Block]
    line_length: int

    def render(self, solved: Collection[str]) -> str:
        """The module without markers: `solved` labs have the solution's lines, the others the starter's.

        Lines outside of blocks are kept as they are. Any set of lab ids gives a module that can be imported.
        """
        lines = self.text.split("\n")
        out: list[str] = []
        at = 0
        for block in self.blocks:
            out += lines[at : block.begin - 1]
            out += self._solution(lines, block) if block.lab in solved else self._starter(lines, block)
            at = block.end
        return "\n".join(out + lines[at:])

    @property
    def solution(self) -> str:
        """The module with every lab solved, and no marker in it."""
        return self.render([lab.id for lab in self.checkpoint.labs])

    @property
    def starter(self) -> str:
        """The module with no lab solved: what a learner is handed."""
        return self.render([])

    def _solution(self, lines: list[str], block: Block) -> list[str]:
        return _trim(lines[block.begin : block.body_end - 1])

    def _starter(self, lines: list[str], block: Block) -> list[str]:
        if block.until is not None:
            return [_label(block), *_trim(markers.neutral_lines(lines, block))]
        keeper = [f"{block.indent}yield  # unreachable: keeps this function a generator"]
        return [*self.raising(block), *(keeper if block in self.yield_keepers else [])]

    def raising(self, block: Block) -> list[str]:
        """The `raise` that stands for a block, wrapped as the formatter wraps it."""
        message = _quoted(_words(block))
        line = f"{block.indent}raise NotImplementedError({message})"
        if len(line) <= self.line_length:
            return [line]
        return [f"{block.indent}raise NotImplementedError(", f"{block.indent}    {message}", f"{block.indent})"]


def read_source(checkpoint: Checkpoint) -> Source:
    """The checkpoint's module, every block of it fit for a starter.

    Raises AuthoringError with all that is wrong with the file, its markers or the starter they would give.
    """
    path = checkpoint.source
    text = _read_text(path)
    tree = _parse(path, text)
    blocks = markers.find_blocks(path, text, [lab.id for lab in checkpoint.labs])
    if problems := list(shape.problems(path, tree, blocks)):
        raise AuthoringError(problems)
    source = Source(checkpoint, text, blocks, shape.yield_keepers(tree, blocks), _line_length(checkpoint.root))
    if problems := _starter_problems(path, source, tree):
        raise AuthoringError(problems)
    return source


def _read_text(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise AuthoringError([Problem(path, 0, "is not there. The catalog names it as a module.")]) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise AuthoringError([Problem(path, line, "is not UTF-8. Save the file as UTF-8.")]) from error
    if "\r" in text:
        line = text.count("\n", 0, text.index("\r")) + 1
        raise AuthoringError([Problem(path, line, "ends in CR LF. Save the file with LF line ends.")])
    return text


def _line_length(root: Path) -> int:
    """The formatter's line length, so that it leaves starters as they are."""
    ruff = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]
    return ruff["line-length"]


def _parse(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise AuthoringError([Problem(path, error.lineno or 0, f"is not Python: {error.msg}.")]) from error


def _starter_problems(path: Path, source: Source, tree: ast.Module) -> list[Problem]:
    """What would be wrong with the starter itself."""
    found = [
        Problem(path, block.begin, f"its starter has a line of {length} columns. Shorten the text.")
        for block in source.blocks
        if (length := max(map(len, [_label(block)] if block.until else source.raising(block)))) > source.line_length
    ]
    try:
        starter = ast.parse(source.starter)
        compile(source.starter, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        return [*found, _syntax_problem(path, source, error)]
    return found + _lost_generators(path, tree, starter) + _lost_names(path, tree, starter)


def _syntax_problem(path: Path, source: Source, error: SyntaxError) -> Problem:
    """The syntax error of a starter, put at the neutral body that is to blame where one is."""
    lines = source.text.split("\n")
    for block in source.blocks:
        neutral = "\n".join(line[len(block.indent) :] for line in markers.neutral_lines(lines, block))
        try:
            ast.parse(neutral)
        except SyntaxError as inner:
            line = (block.until or 0) + (inner.lineno or 1)
            return Problem(path, line, f"this neutral body is not Python: {inner.msg}.")
    text = f"the starter would not be Python: {error.msg}, in `{(error.text or '').strip()}`."
    return Problem(path, 0, f"{text} Let the block hold all of the statements that belong together.")


def _lost_generators(path: Path, tree: ast.Module, starter: ast.Module) -> list[Problem]:
    """Generators that the starter would make ordinary functions."""
    kept = shape.generators(starter)
    left = {name for name, _ in shape.functions(starter)}
    return [
        Problem(
            path,
            function.lineno,
            f"the starter's `{name}` would be no generator any more. Give the neutral body a `yield`, or let "
            f"it raise: delete `{markers.UNTIL}` and what is below it.",
        )
        for name, function in shape.generators(tree).items()
        if name in left and name not in kept
    ]


def _lost_names(path: Path, tree: ast.Module, starter: ast.Module) -> list[Problem]:
    """Public functions and classes whose signature or docstring the starter would lack."""
    kept = shape.public_face(starter)
    return [
        Problem(
            path,
            face.line,
            f"the starter would lose the signature or the docstring of `{name}`. Keep both outside of the "
            f"block, or repeat them below `{markers.UNTIL}`.",
        )
        for name, face in shape.public_face(tree).items()
        if kept.get(name) != face
    ]


def _words(block: Block) -> str:
    """What the starter says where a learner has something to write."""
    return f"Lab {block.lab}: {block.text}"


def _label(block: Block) -> str:
    """The comment above a neutral body, which would not say whose it is."""
    return f"{block.indent}# {_words(block)}"


def _quoted(text: str) -> str:
    """The text as the formatter quotes it: in double quotes unless that needs more escapes."""
    text = text.replace("\\", "\\\\")
    if '"' in text and "'" not in text:
        return f"'{text}'"
    return '"' + text.replace('"', '\\"') + '"'


def _trim(lines: list[str]) -> list[str]:
    """The lines without blank ones at either end."""
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return lines[start:end]
