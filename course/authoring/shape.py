"""Where a block may stand: whole statements of one body, and nothing that the starter cannot do without."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from course.authoring.markers import UNTIL, Block
from course.authoring.problem import Problem

Function = ast.FunctionDef | ast.AsyncFunctionDef
Node = ast.stmt | ast.excepthandler | ast.match_case


@dataclass(frozen=True)
class Place:
    """What a block holds: the nodes that begin in it, by body of `owner`, inside `function` if any."""

    bodies: tuple[tuple[Node, ...], ...]
    owner: ast.AST
    function: Function | None


def find_place(tree: ast.Module, block: Block) -> Place:
    """The nodes that begin in the block. `bodies` is empty where it holds no whole statement."""
    owner: ast.AST = tree
    function: Function | None = None
    while True:
        bodies = tuple(
            inside
            for body in _bodies(owner)
            if (inside := tuple(node for node in body if block.begin < _first_line(node) < block.body_end))
        )
        around = [node for node in _children(owner) if _first_line(node) < block.begin <= _last_line(node)]
        if bodies or not around:
            return Place(bodies, owner, function)
        owner = around[-1]
        function = owner if isinstance(owner, Function) else function


def problems(path: Path, tree: ast.Module, blocks: Sequence[Block]) -> Iterator[Problem]:
    """What is wrong with where each block begins and ends."""
    for block in blocks:
        place = find_place(tree, block)
        yield from (Problem(path, line, text) for line, text in _block_problems(block, place))


def _block_problems(block: Block, place: Place) -> Iterator[tuple[int, str]]:
    if not place.bodies:
        yield (
            block.begin,
            "the block holds no whole statement. Put its markers around some.",
        )
        return
    statements = [node for node in place.bodies[0] if isinstance(node, ast.stmt)]
    if len(place.bodies) > 1 or not statements:
        yield (
            block.begin,
            "the block runs from one branch into the next. Give each its own block.",
        )
        return
    for node in statements:
        if node.col_offset != len(block.indent):
            yield (
                node.lineno,
                "this statement is not indented like its block's markers. A block is whole statements at one "
                "indentation.",
            )
        elif _last_line(node) > block.body_end:
            yield (
                block.body_end,
                f"the block ends inside the statement that begins on line {node.lineno}. End it on line "
                f"{_last_line(node) + 1} or later.",
            )
    if _docstring(place.owner) in statements:
        yield block.begin, "starters keep every docstring. Move `# BEGIN SOLUTION` below it."
    if place.function is None and block.until is None:
        yield (
            block.begin,
            "outside of a function the starter cannot raise, or nobody could import it. "
            f"Add `{UNTIL}` and what stands there at first, in comments (a comment will do: `# # ...`).",
        )


def yield_keepers(tree: ast.Module, blocks: Sequence[Block]) -> frozenset[Block]:
    """The raising blocks that need an unreachable `yield`, or their function would stop being a generator."""
    keepers = set()
    for _, function in functions(tree):
        lines = {node.lineno for node in own_yields(function)}
        holding = [block for block in blocks if any(block.begin < line < block.body_end for line in lines)]
        held = {line for line in lines for block in holding if block.begin < line < block.body_end}
        raising = [block for block in holding if block.until is None]
        if lines == held and raising:
            keepers.add(raising[0])
    return frozenset(keepers)


def generators(tree: ast.Module) -> dict[str, Function]:
    """Every generator function by its qualified name."""
    return {name: function for name, function in functions(tree) if any(own_yields(function))}


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function below a node with its qualified name, those inside other functions too."""
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, Function | ast.ClassDef)
        inner = f"{prefix}{child.name}." if named else prefix
        if isinstance(child, Function):
            yield inner.removesuffix("."), child
        yield from functions(child, inner)


def own_yields(function: Function) -> Iterator[ast.Yield | ast.YieldFrom]:
    """The yields that make this very function a generator: none of a function defined inside it."""
    nodes: list[ast.AST] = list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Yield | ast.YieldFrom):
            yield node
        if not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            nodes += ast.iter_child_nodes(node)


@dataclass(frozen=True)
class Face:
    """What others see of a function or class: its decorators, signature and docstring."""

    line: int = field(compare=False)
    text: str


def public_face(tree: ast.Module) -> dict[str, Face]:
    """Each public function and class outside of functions, by qualified name."""
    return dict(_faces(tree, ""))


def _faces(node: ast.AST, prefix: str) -> Iterator[tuple[str, Face]]:
    for child in _children(node):
        if not isinstance(child, Function | ast.ClassDef):
            yield from _faces(child, prefix)
        elif not child.name.startswith("_") or child.name.endswith("__"):
            yield prefix + child.name, Face(child.lineno, _signature(child))
            if isinstance(child, ast.ClassDef):
                yield from _faces(child, f"{prefix}{child.name}.")


def _signature(node: Function | ast.ClassDef) -> str:
    docstring = ast.get_docstring(node, clean=False)
    bare = ast.Expr(ast.Constant(docstring)) if docstring is not None else ast.Pass()
    fields = {name: value for name, value in ast.iter_fields(node) if name != "body"}
    return ast.unparse(ast.fix_missing_locations(type(node)(**fields, body=[bare])))


def _docstring(owner: ast.AST) -> ast.stmt | None:
    if isinstance(owner, Function | ast.ClassDef | ast.Module) and ast.get_docstring(owner) is not None:
        return owner.body[0]
    return None


def _bodies(owner: ast.AST) -> list[list[Node]]:
    """The bodies of a compound statement: what runs, `else`, `finally`, and its handlers or cases."""
    names = ("body", "handlers", "cases", "orelse", "finalbody")
    return [body for name in names if isinstance(body := getattr(owner, name, None), list)]


def _children(owner: ast.AST) -> list[Node]:
    return [node for body in _bodies(owner) for node in body]


def _first_line(node: Node) -> int:
    """Its first line, decorators included."""
    if isinstance(node, ast.match_case):
        return node.pattern.lineno
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _last_line(node: Node) -> int:
    if isinstance(node, ast.match_case):
        return _last_line(node.body[-1])
    return node.end_lineno or node.lineno
