"""Whether a test's `with` blocks were gone through to their end.

A context manager of the learner's, such as the Agent's own `__aexit__`, may swallow what is raised in its block: an
assert that failed, or the cancel that a time limit raises. The test would then pass without having checked anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MAY_CUT = frozenset({"raises", "suppress", "move_on_after", "move_on_at", "CancelScope"})
"""Context managers that are there to end a block early: what stands inside them is not counted."""

_With = ast.With | ast.AsyncWith
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Blocks:
    """The blocks that the running test has entered and not left at their end, by their lines, outermost first."""

    def __init__(self) -> None:
        self.open: list[int] = []

    def entered(self, line: int) -> None:
        self.open.append(line)

    def left(self, line: int) -> None:
        self.open.remove(line)


def count(tree: ast.Module, blocks: ast.expr) -> None:
    """Have the tests in `tree` tell a Blocks, which the expression `blocks` gives, of every block they go through."""
    for node in ast.walk(tree):
        if isinstance(node, _Function) and node.name.startswith("test"):
            for block in list(_blocks(node.body)):
                block.body.insert(0, _call(blocks, "entered", block))
                block.body.append(_call(blocks, "left", block))


def _blocks(body: list[ast.stmt]) -> Iterator[_With]:
    """The blocks that must be gone through: those of the function itself, not those of functions inside it."""
    for node in body:
        if isinstance(node, _With) and not any(_may_cut(item.context_expr) for item in node.items):
            yield node
            yield from _blocks(node.body)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.While | ast.If):
            yield from _blocks(node.body)
            yield from _blocks(node.orelse)
        elif isinstance(node, ast.Try):
            yield from _blocks(node.finalbody)


def _may_cut(expression: ast.expr) -> bool:
    called = expression.func if isinstance(expression, ast.Call) else expression
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _MAY_CUT


def _call(blocks: ast.expr, method: str, block: _With) -> ast.stmt:
    call = ast.Call(ast.Attribute(blocks, method, ast.Load()), [ast.Constant(block.lineno)], [])
    return ast.fix_missing_locations(ast.copy_location(ast.Expr(call), block))
