"""The focused tests, as the parent sees them: what must run, and what of it ran and passed."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from course.catalog import Checkpoint, Lab
from course.errors import CannotMarkError
from course.marking.contained import Contained
from course.marking.controls import ControlTests, control_tests
from course.marking.listen import Heard, Limits, Ran, listen
from course.marking.steps import COLLECT, IMPORT

BACKENDS = ("asyncio", "trio")


class FocusedTest(msgspec.Struct, frozen=True):
    """One test function of the pristine file: its id in pytest's form, its lab, and the backends it runs on.

    `rule` is its docstring: the rule it stands for, "" where it has none.
    """

    id: str
    lab: str
    line: int
    backends: tuple[str, ...] = ()
    rule: str = ""

    @property
    def claim(self) -> str:
        """Its name read as a sentence."""
        return self.id.rpartition("::")[2].removeprefix("test_").replace("_", " ")


class FocusedRequest(msgspec.Struct, frozen=True):
    """What the child needs: names and places only, never an expectation."""

    checkpoint: Checkpoint
    source: bytes
    needs: tuple[str, ...]
    test: str
    controls: str
    order: tuple[str, ...]
    """Ids of the test functions to run, the controls among them, in order."""


class FocusedRun(msgspec.Struct, frozen=True):
    """What was asked for and what was heard."""

    tests: tuple[FocusedTest, ...]
    controls: ControlTests
    heard: Heard

    @property
    def came_to_tests(self) -> bool:
        """False when the learner's file could not be imported, or the tests not be collected with it."""
        collected = self.heard.ran.get(COLLECT)
        return collected is not None and collected.passed

    def of(self, lab: str) -> tuple[FocusedTest, ...]:
        return tuple(test for test in self.tests if test.lab == lab)

    def runs(self, test: FocusedTest) -> tuple[Ran, ...]:
        """The runs of one test function, one for each parametrisation."""
        return tuple(ran for id, ran in self.heard.ran.items() if function_id(id) == test.id)

    def passed(self, test: FocusedTest) -> bool:
        """True when every parametrisation that was planned ran and passed, on every backend that it must run on."""
        planned = [id for id in self.heard.plan if function_id(id) == test.id]
        ran = [id for id in planned if id in self.heard.ran and self.heard.ran[id].passed]
        on_all = all(any(backend in parameters(id) for id in ran) for backend in test.backends)
        return bool(planned) and ran == planned and on_all


def run_focused(
    tests: Sequence[FocusedTest],
    checkpoint: Checkpoint,
    source: bytes,
    learner: Path,
    folder: Path,
    limits: Limits,
    contained: Contained,
) -> FocusedRun:
    """Run `tests` in `contained`, a fresh process that is ready for them in `folder`, where the overlay lies.

    `source` is the learner's file, and `learner` the path that it is told under.
    """
    labs = list(dict.fromkeys(test.lab for test in tests))
    controls = control_tests(len(labs) - 1, [test.id.rpartition("::")[2] for test in tests])
    controls_file = folder / f"test_{checkpoint.id}_{secrets.token_hex(6)}.py"
    controls_file.write_text(controls.text, encoding="utf-8")
    request = FocusedRequest(
        checkpoint=checkpoint,
        source=source,
        needs=needed_names(checkpoint.test),
        test=checkpoint.test.name,
        controls=controls_file.name,
        order=tuple(_order(labs, tests, controls)),
    )
    contained.ask(request, str(learner))
    return FocusedRun(tuple(tests), controls, listen(contained, limits, (IMPORT, COLLECT)))


def _order(labs: Sequence[str], tests: Sequence[FocusedTest], controls: ControlTests) -> Iterator[str]:
    yield from controls.before
    between = iter(controls.between)
    for number, lab in enumerate(labs):
        if number:
            yield next(between)
        yield from (test.id for test in tests if test.lab == lab)
    yield from controls.after


def find_tests(checkpoint: Checkpoint, labs: Sequence[Lab]) -> tuple[FocusedTest, ...]:
    """The focused tests of `labs` in the pristine file, in the order of the labs.

    Raises CannotMarkError when the file cannot be read or holds fewer tests for a lab than the catalog says.
    """
    tree = _parse(checkpoint.test)
    backends = () if _defines(tree, "anyio_backend") else BACKENDS
    found = list(_tests_in(tree, "", None, backends))
    for lab in labs:
        count = sum(test.lab == lab.id for test in found)
        if count < max(lab.tests, 1):
            raise CannotMarkError(
                f"{checkpoint.test} holds {count} tests for lab {lab.id}, but the catalog says {lab.tests}. "
                "That is a fault of the course, not yours."
            )
    return tuple(test for lab in labs for test in found if test.lab == lab.id)


def needed_names(test: Path) -> tuple[str, ...]:
    """The names that the test file imports from the learner's file."""
    return tuple(
        name.name
        for node in ast.walk(_parse(test))
        if isinstance(node, ast.ImportFrom) and node.module == "agent" and not node.level
        for name in node.names
    )


def function_id(id: str) -> str:
    """`test_a[trio]` -> `test_a`."""
    return id.partition("[")[0]


def parameters(id: str) -> list[str]:
    """`test_a[trio-3]` -> `["trio", "3"]`."""
    return id.partition("[")[2].removesuffix("]").split("-")


def _parse(test: Path) -> ast.Module:
    try:
        return ast.parse(test.read_bytes())
    except (OSError, SyntaxError) as error:
        raise CannotMarkError(f"The course's own test {test} cannot be read: {error}") from error


def _tests_in(
    body: ast.Module | ast.ClassDef, prefix: str, lab: str | None, backends: tuple[str, ...]
) -> Iterator[FocusedTest]:
    for node in body.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _tests_in(node, f"{prefix}{node.name}::", _lab_mark(node) or lab, backends)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            marked = _lab_mark(node) or lab
            if marked is not None:
                on = backends if isinstance(node, ast.AsyncFunctionDef) else ()
                rule = " ".join((ast.get_docstring(node) or "").split())
                yield FocusedTest(prefix + node.name, marked, node.lineno, on, rule)


def _lab_mark(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str | None:
    """The id in `@pytest.mark.lab("9.2")`."""
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="lab"), args=[ast.Constant(value=str(id))]):
                return id
    return None


def _defines(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)
