"""The focused tests, inside their own process: pytest with one plugin of ours, telling each test as it happens."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import os
import re
import sys
from collections.abc import Generator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest
import trio
from _pytest.assertion import rewrite
from anyio import pytest_plugin

from course import stand_in
from course.marking.blocks import Blocks, count
from course.marking.child import Reporter
from course.marking.controls import equal_to_anything
from course.marking.fault import describe
from course.marking.focused import BACKENDS, FocusedRequest, function_id, parameters
from course.marking.steps import COLLECT, CUT_SHORT, IMPORT, Fault, Frame, Outcome
from course.marking.values import apart, without

_OPTIONS = (
    "--noconftest",
    "--capture=no",
    "--import-mode=importlib",
    "--override-ini=enable_assertion_pass_hook=true",
    "--override-ini=verbosity_assertions=2",
    f"-c{os.devnull}",
    *("-pno:" + name for name in ("cacheprovider", "terminal", "doctest", "junitxml", "pastebin", "legacypath")),
)
"""Nothing of the learner's folder or machine reaches pytest: no conftest, no configuration, no plugin but ours."""


_STEP = "@py_"
"""How the variables begin in which pytest's rewriting keeps what an assert's expression came through."""


def run(reporter: Reporter) -> None:
    """Get pytest ready, receive the request, import the learner's file, collect, run and tell. Does not return."""
    plugin = _Plugin(reporter)
    code = pytest.main([*_OPTIONS, f"--rootdir={Path.cwd()}"], plugins=[plugin, pytest_plugin])
    if code == pytest.ExitCode.USAGE_ERROR:
        reporter.stopped("error", "pytest refused its command line.")
    reporter.done()


class _Plugin:
    _asked: FocusedRequest
    _learner: str

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._outcome: Outcome = "passed"
        self._fault: Fault | None = None
        self._blocks = Blocks()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.option.tbstyle = "no"  # we describe faults ourselves, and formatting one can fail
        config.addinivalue_line("markers", "lab(id): the lab of a checkpoint that a focused test belongs to")

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Receive the request; import the learner's file before the tests do, so that its faults are its own."""
        rewritten = _Rewritten(session.config, self._blocks)
        rewritten.take(*Path.cwd().glob("test_*.py"))
        request = self._reporter.receive()
        self._learner, self._asked = request.learner, request.read(FocusedRequest)
        paths = [Path.cwd() / name for name in (self._asked.test, self._asked.controls)]
        rewritten.take(*paths)
        session.config.args[:] = map(str, paths)
        self._reporter.begin(IMPORT)
        stand_in.install(self._asked.checkpoint, Path(self._learner), self._asked.source, marking=True)
        try:
            fault = self._missing(importlib.import_module("agent"))
        except BaseException as error:
            fault = describe(error, self._learner)
        self._reporter.finish(IMPORT, "failed" if fault else "passed", fault)
        if fault:
            self._reporter.done()
        self._reporter.begin(COLLECT)
        if not all(path.is_file() for path in paths):
            self._reporter.stopped("crashed", "It removed the files of the folder that it is marked in.")

    def _missing(self, module: ModuleType) -> Fault | None:
        missing = [name for name in self._asked.needs if not hasattr(module, name)]
        return Fault("MissingNames", ", ".join(missing)) if missing else None

    def pytest_internalerror(self, excrepr: object) -> None:
        """The learner's code is loaded by now: something it did or raised is more than pytest can bear."""
        self._reporter.stopped("crashed", f"It broke the run of the tests: {str(excrepr).splitlines()[-1]}")

    def pytest_exception_interact(self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]) -> None:
        if isinstance(node, pytest.Collector) and call.excinfo is not None:
            error = call.excinfo.value
            self._reporter.finish(COLLECT, "failed", describe(error.__cause__ or error, self._learner))
            self._reporter.done()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep what was asked for, in its order; a function's asyncio run comes before its trio run."""
        place = {id: number for number, id in enumerate(self._asked.order)}
        items[:] = [item for item in items if function_id(_id(item)) in place]
        items.sort(key=lambda item: (place[function_id(_id(item))], _backend_place(item)))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._reporter.finish(COLLECT, "passed")
        self._reporter.plan(tuple(_id(item) for item in session.items))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._outcome, self._fault = "passed", None
        self._blocks.open.clear()
        _shuffle_alike()
        self._reporter.begin(_id(item))
        result = yield
        self._reporter.finish(_id(item), self._outcome, self._fault)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.outcome != "passed" and self._outcome == "passed":
            self._outcome = report.outcome
            self._fault = describe(call.excinfo.value, self._learner) if call.excinfo else None
        elif report.when == "call" and self._blocks.open and self._outcome == "passed":
            here = Frame(str(item.path), self._blocks.open[0], item.name)
            self._outcome, self._fault = "failed", Fault(CUT_SHORT, "", frames=(here,))
        return report

    def pytest_assertrepr_compare(self, op: str, left: object, right: object) -> list[str] | None:
        """The explanation of `came == expected` and of `part in came`, as the tests are written; None leaves it."""
        try:
            if op == "in" and isinstance(left, str) and isinstance(right, str):
                return without(right, left)
            return apart(left, right) if op == "==" else None
        except BaseException:
            return None

    def pytest_assertion_pass(self, orig: str) -> None:
        """After an assert that held: what it compared must not be equal to just anything."""
        frame = _asserting_frame()
        found = frame.f_locals if frame else {}
        compared = [value for name, value in found.items() if name.startswith(_STEP) or name in _names(orig)]
        rigged = equal_to_anything(compared)
        if rigged is not None and self._outcome == "passed":
            self._outcome = "failed"
            self._fault = Fault("EqualToAnything", type(rigged).__name__)


class _Rewritten:
    """Test files as pytest rewrites them, from the bytes that they had before the learner's code could touch them.

    Rewriting takes a tenth of a second: done before there is anything to mark, nobody waits for it.
    """

    def __init__(self, config: pytest.Config, blocks: Blocks) -> None:
        self._config = config
        self._files: dict[Path, tuple[bytes, Any]] = {}
        self._rewrite = rewrite._rewrite_test
        rewrite_asserts = rewrite.rewrite_asserts

        def rewrite_all(tree: ast.Module, *rest: Any) -> None:
            rewrite_asserts(tree, *rest)
            count(tree, ast.Attribute(ast.Name("@pytest_ar", ast.Load()), "blocks", ast.Load()))

        rewrite.rewrite_asserts = rewrite_all
        rewrite.blocks = blocks  # pyright: ignore[reportAttributeAccessIssue]
        rewrite._rewrite_test = lambda path, config: self._files[path][1]

    def take(self, *paths: Path) -> None:
        """Read and rewrite these files, unless that was done with the very bytes they have now."""
        for path in paths:
            content = path.read_bytes()
            if self._files.get(path, (b"",))[0] != content:
                with contextlib.suppress(SyntaxError):  # told when it is collected
                    self._files[path] = content, self._rewrite(path, self._config)


@functools.cache
def _names(expression: str) -> frozenset[str]:
    """The names in an assert's expression, whatever they name."""
    return frozenset(re.findall(r"[^\W\d]\w*", expression))


def _shuffle_alike() -> None:
    """Trio shuffles its tasks on purpose; marked again, a file must get the same verdict."""
    shuffler = getattr(trio._core._run, "_r", None)
    if shuffler is not None:
        shuffler.seed(0)


def _id(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[2]


def _backend_place(item: pytest.Item) -> int:
    return next((place for place, backend in enumerate(BACKENDS) if backend in parameters(_id(item))), 0)


def _asserting_frame() -> FrameType | None:
    """The frame of the test whose assert just held: the caller of pytest's own helper."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_call_assertion_pass":
        frame = frame.f_back
    return frame.f_back if frame else None
