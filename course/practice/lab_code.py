"""The functions in which a lab's code stands, and the starter's put back in the learner's file."""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from course.catalog import Checkpoint, Lab
from course.errors import CourseError

_BEGIN = re.compile(r"\s*# BEGIN SOLUTION (\d+\.\d+): ")
"""How a block of the finished module begins; course.authoring.markers checks all of it."""


class Span(msgspec.Struct, frozen=True):
    """The lines of a function, decorators included, counted from 1."""

    first: int
    last: int


class PutBack(msgspec.Struct, frozen=True):
    """The learner's text with the starter's functions in it, their names, and the other labs that they hold."""

    text: str
    functions: tuple[str, ...]
    others: tuple[str, ...]


def labs_by_function(checkpoint: Checkpoint) -> Mapping[str, tuple[str, ...]]:
    """The functions of the checkpoint's module that a learner writes in, `Agent.prompt`, and the labs of each.

    Raises CourseError when code of a lab stands in no function.
    """
    text = checkpoint.source.read_text(encoding="utf-8")
    spans = _spans(ast.parse(text))
    found: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if begin := _BEGIN.match(line):
            inside = [name for name, (span, *_) in spans.items() if span.first <= number <= span.last]
            if not inside:
                raise CourseError(f"Lab {begin[1]} stands in no function. Use `course reset {checkpoint.id}` for all.")
            labs = found.setdefault(inside[-1], [])
            labs += [begin[1]] if begin[1] not in labs else []
    return {name: tuple(labs) for name, labs in found.items()}


def functions_of(checkpoint: Checkpoint, lab: Lab) -> tuple[str, ...]:
    """The names of the functions that hold the lab's code, in the module's order."""
    return tuple(name for name, labs in labs_by_function(checkpoint).items() if lab.id in labs)


def spans_in(path: Path, functions: Sequence[str]) -> tuple[Span, ...]:
    """Where these functions stand in one of the course's own files."""
    spans = _spans(ast.parse(path.read_bytes()))
    return tuple(span for name in functions for span in spans.get(name, ()))


def put_back(checkpoint: Checkpoint, lab: Lab, text: str) -> PutBack:
    """`text`, the learner's file, with the starter's version of each function that holds the lab's code.

    Everything else stays as it is. Raises CourseError, and says what to do instead, where the file is not Python or a
    function is not there under its name, or is there twice.
    """
    starter = checkpoint.starter.read_text(encoding="utf-8")
    by_function = labs_by_function(checkpoint)
    functions = _outermost([name for name, labs in by_function.items() if lab.id in labs])
    mine, theirs = _spans(_parse(checkpoint, lab, text)), _spans(ast.parse(starter))
    lines, starter_lines = _lines(text), _lines(starter)
    newline = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    for name in sorted(functions, key=lambda name: -_only(checkpoint, lab, mine, name).first):
        here, there = _only(checkpoint, lab, mine, name), theirs[name][0]
        new = [line.rstrip("\r\n") + newline for line in starter_lines[there.first - 1 : there.last]]
        lines[here.first - 1 : here.last] = new
    changed = "".join(lines)
    _check_fits(checkpoint, lab, changed, starter, functions)
    others = {
        other
        for name, labs in by_function.items()
        if any(f"{name}.".startswith(f"{one}.") for one in functions)
        for other in labs
        if other != lab.id
    }
    return PutBack(changed, functions, tuple(one.id for one in checkpoint.labs if one.id in others))


def _outermost(functions: Sequence[str]) -> tuple[str, ...]:
    """Without those that stand inside another of them."""
    return tuple(name for name in functions if not any(name.startswith(f"{other}.") for other in functions))


def _parse(checkpoint: Checkpoint, lab: Lab, text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise _refusal(checkpoint, lab, f"agent.py is not Python{line}: {error.args[0]}. Mend that first") from error


def _only(checkpoint: Checkpoint, lab: Lab, spans: Mapping[str, list[Span]], name: str) -> Span:
    found = spans.get(name, [])
    if not found:
        raise _refusal(checkpoint, lab, f"agent.py has no {name}, which holds lab {lab.id}. Give it that name again")
    if len(found) > 1:
        lines = " and ".join(str(span.first) for span in found)
        raise _refusal(checkpoint, lab, f"agent.py defines {name} more than once, on lines {lines}. Keep one of them")
    return found[0]


def _check_fits(checkpoint: Checkpoint, lab: Lab, text: str, starter: str, functions: Sequence[str]) -> None:
    """The starter's functions must come out as they are there, which another indentation prevents."""
    try:
        mine, theirs = _nodes(ast.parse(text)), _nodes(ast.parse(starter))
        fits = all(ast.dump(mine[name][0]) == ast.dump(theirs[name][0]) for name in functions)
    except (SyntaxError, KeyError):
        fits = False
    if not fits:
        raise _refusal(checkpoint, lab, "agent.py is indented otherwise than the starter. Indent by four spaces")


def _refusal(checkpoint: Checkpoint, lab: Lab, why: str) -> CourseError:
    return CourseError(
        f"{why}, and try again; nothing was changed. Or put the whole file back, with a backup of yours: "
        f"course reset {checkpoint.id}"
    )


def _nodes(tree: ast.Module) -> dict[str, list[ast.AST]]:
    """Every function by its qualified name, the enclosing ones before those inside them."""
    found: dict[str, list[ast.AST]] = {}
    for name, node in _functions(tree, ""):
        found.setdefault(name, []).append(node)
    return found


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
        named = isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        yield from _functions(child, f"{prefix}{child.name}." if named else prefix)


def _spans(tree: ast.Module) -> dict[str, list[Span]]:
    return {name: [_span(node) for node in nodes] for name, nodes in _nodes(tree).items()}


def _span(node: ast.AST) -> Span:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    assert node.end_lineno is not None
    return Span(min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.end_lineno)


def _lines(text: str) -> list[str]:
    """Lines as Python counts them, each with its end."""
    return io.StringIO(text, newline="").readlines()
