"""The marked blocks of a module: which lines a learner writes, for which lab.

    # BEGIN SOLUTION 9.2: own the run, then settle it
    ...the solution: whole statements at the markers' indentation...
    # UNTIL THEN
    # ...what the starter does there, in comments; without it, the starter raises...
    # END SOLUTION

A marker is a comment token on a line of its own; the same words inside a string are text.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from course.authoring.problem import AuthoringError, Problem

BEGIN = re.compile(r"# BEGIN SOLUTION (?P<lab>\d+\.\d+): (?P<text>\S.*)")
UNTIL = "# UNTIL THEN"
END = "# END SOLUTION"
BEGIN_SHAPE = "`# BEGIN SOLUTION 9.2: what the learner writes`"

_MEANT = re.compile(r"#+\s*(?:(?P<which>BEGIN|END)[\s_-]+SOLUTION|UNTIL THEN)\b", re.IGNORECASE)
_AT_STATEMENT = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


@dataclass(frozen=True)
class Block:
    """One marked block. `begin`, `until` and `end` are the line numbers of its markers, counted from 1."""

    lab: str
    text: str
    indent: str
    begin: int
    until: int | None = None
    end: int = 0

    @property
    def body_end(self) -> int:
        """The line of the marker that ends the solution's lines."""
        return self.until or self.end


def find_blocks(path: Path, text: str, labs: Collection[str]) -> tuple[Block, ...]:
    """The marked blocks of a module that parses, from top to bottom. Only `labs` may appear in it.

    Raises AuthoringError with every malformed, nested, unclosed, stray or unknown marker.
    """
    reader = _Reader(path, text.split("\n"), labs)
    for mark in _marks(text):
        reader.take(mark)
    return reader.finish()


@dataclass(frozen=True)
class _Mark:
    """A comment that is a marker or was meant to be one."""

    line: int
    column: int
    text: str
    alone: bool
    at_statement: bool


def has_markers(text: str) -> bool:
    """Whether a module that parses has any comment that is a marker, or was meant to be one."""
    return any(True for _ in _marks(text))


def _marks(text: str) -> Iterator[_Mark]:
    previous = tokenize.ENCODING
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if _is_meant(token.string):
                alone = not token.line[: token.start[1]].strip()
                at_statement = previous in _AT_STATEMENT
                yield _Mark(*token.start, token.string.rstrip(), alone, at_statement)
        elif token.type != tokenize.NL:
            previous = token.type


def _is_meant(comment: str) -> bool:
    """Whether an author meant a marker. Prose such as "until then, ..." is not one: its case tells."""
    meant = _MEANT.match(comment)
    return meant is not None and (meant["which"] is not None or "UNTIL THEN" in meant[0])


@dataclass
class _Reader:
    """Pairs markers into blocks and collects what is wrong with them."""

    path: Path
    lines: list[str]
    labs: Collection[str]
    blocks: list[Block] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    open: Block | None = None

    def take(self, mark: _Mark) -> None:
        if not mark.alone:
            self.wrong(mark.line, f"`{mark.text}` must stand on a line of its own.")
        elif not mark.at_statement:
            self.wrong(mark.line, f"`{mark.text}` splits a statement. Move it to the statement's beginning or end.")
        elif begin := BEGIN.fullmatch(mark.text):
            self.begin(mark, begin["lab"], begin["text"])
        elif mark.text == UNTIL:
            self.until(mark)
        elif mark.text == END:
            self.end(mark)
        else:
            self.wrong(mark.line, f"`{mark.text}` is no marker. Write {_correction(mark.text)}.")

    def begin(self, mark: _Mark, lab: str, text: str) -> None:
        if self.open is not None:
            self.wrong(
                mark.line,
                f"blocks cannot nest, and the one from line {self.open.begin} is still open. "
                f"End it before this line with `{END}`.",
            )
        if lab not in self.labs:
            known = ", ".join(self.labs) or "none"
            self.wrong(mark.line, f"the catalog has no lab {lab} for this module. Its labs are: {known}.")
        self.open = Block(lab, text, self.lines[mark.line - 1][: mark.column], mark.line)

    def until(self, mark: _Mark) -> None:
        if self.open is None:
            self.wrong(mark.line, f"no block is open here. Write {BEGIN_SHAPE} above it, or delete the line.")
        elif self.open.until is not None:
            self.wrong(mark.line, f"the block has its `{UNTIL}` on line {self.open.until} already. Keep one of them.")
        else:
            self.same_indent(mark, self.open)
            self.open = replace(self.open, until=mark.line)

    def end(self, mark: _Mark) -> None:
        if self.open is None:
            self.wrong(mark.line, f"no block is open here. Write {BEGIN_SHAPE} above it, or delete the line.")
            return
        self.same_indent(mark, self.open)
        block = replace(self.open, end=mark.line)
        self.open = None
        self.problems += _neutral_problems(self.path, self.lines, block)
        self.blocks.append(block)

    def same_indent(self, mark: _Mark, block: Block) -> None:
        if self.lines[mark.line - 1][: mark.column] != block.indent:
            self.wrong(mark.line, f"`{mark.text}` must be indented like its BEGIN SOLUTION on line {block.begin}.")

    def finish(self) -> tuple[Block, ...]:
        if self.open is not None:
            self.wrong(self.open.begin, f"the block never ends. Add `{END}` below it, at the same indentation.")
        if self.problems:
            raise AuthoringError(self.problems)
        return tuple(self.blocks)

    def wrong(self, line: int, text: str) -> None:
        self.problems.append(Problem(self.path, line, text))


def _correction(comment: str) -> str:
    which = comment.upper()
    if "BEGIN" in which:
        return BEGIN_SHAPE
    return f"`{END}`" if "END" in which else f"`{UNTIL}`"


def _neutral_problems(path: Path, lines: list[str], block: Block) -> Iterator[Problem]:
    """What is wrong with the commented lines below UNTIL THEN."""
    if block.until is None:
        return
    numbers = range(block.until + 1, block.end)
    if not any(lines[number - 1].strip() for number in numbers):
        yield Problem(path, block.until, f"nothing follows `{UNTIL}`. Write the neutral body in comments.")
    for number in numbers:
        line = lines[number - 1]
        if line.strip() and not re.match(re.escape(block.indent) + r"#( |$)", line):
            yield Problem(
                path,
                number,
                f"below `{UNTIL}` each line is `# code`, at the markers' indentation.",
            )


def neutral_lines(lines: list[str], block: Block) -> list[str]:
    """The lines below UNTIL THEN as code: each without its `# `."""
    if block.until is None:
        return []
    cut = len(block.indent)
    commented = lines[block.until : block.end - 1]
    return [(block.indent + line[cut + 2 :]).rstrip() for line in commented]
