"""Good, wrong, crashing, hanging and cheating `agent.py` files for the toy checkpoint, and how each must be marked."""

from __future__ import annotations

from dataclasses import dataclass

import toy

ADD_LATER = "        return self.add(n)"
SHOW = '        return f"<{self.value}>"'


@dataclass(frozen=True)
class Sample:
    """A file, and the words of labs 42.1 and 42.2 (and of the optional 42.3, which uses what 42.1 and 42.2 left)."""

    source: str | bytes
    words: str

    @property
    def content(self) -> bytes:
        return self.source if isinstance(self.source, bytes) else self.source.encode()


def later(body: str) -> str:
    """The solution with lab 42.2 replaced."""
    return toy.replaced(ADD_LATER, "\n".join(f"        {line}" for line in body.splitlines()))


def show(body: str) -> str:
    """The solution with lab 42.3 replaced."""
    return toy.replaced(SHOW, "\n".join(f"        {line}" for line in body.splitlines()))


def after(code: str) -> str:
    """The solution with `code` behind it."""
    return f"{toy.SOLUTION}\n{code}\n"


def in_kernel(code: str) -> str:
    """The solution with `code` behind it that runs only where there is an IPython shell."""
    body = "\n".join(f"    {line}" for line in code.splitlines())
    return after(f"try:\n    shell = get_ipython()\nexcept NameError:\n    pass\nelse:\n{body}")


RIGHT = {
    "the solution": Sample(toy.SOLUTION, "green green green"),
    "another right one": Sample(
        toy.replaced("self.value += n", "self.value = sum([self.value, n])"), "green green green"
    ),
    "a warning on standard error": Sample(after("import sys\nprint('careful', file=sys.stderr)"), "green green green"),
    "a thread that never ends": Sample(
        after("import threading\nthreading.Thread(target=threading.Event().wait).start()"), "green green green"
    ),
    "a print at the top": Sample(after("print('loaded')"), "green green green"),
    "a folder made at the top": Sample(after("import os\nos.mkdir('state')"), "green green green"),
    "a temporary folder left behind": Sample(after("import tempfile\ntempfile.mkdtemp()"), "green green green"),
    "an exit handler that exits": Sample(after("import atexit, os\natexit.register(os._exit, 3)"), "green green green"),
}

AT_IMPORT = {
    "raises at the top": Sample("raise ValueError('top')\n" + toy.SOLUTION, "red not_run not_run"),
    "a syntax error": Sample(after("def broken(:"), "red not_run not_run"),
    "an empty file": Sample("\n", "red not_run not_run"),
    "conflict markers": Sample(after("<<<<<<< HEAD"), "red not_run not_run"),
    "not UTF-8": Sample(toy.SOLUTION.encode() + "# caf\xe9".encode("cp1252"), "red not_run not_run"),
    "a missing name": Sample(toy.SOLUTION.replace("Counter", "Konter"), "red not_run not_run"),
    "os._exit(0) at the top": Sample("import os\nos._exit(0)\n" + toy.SOLUTION, "crashed not_run not_run"),
    "sys.exit(0) at the top": Sample("import sys\nsys.exit(0)\n" + toy.SOLUTION, "crashed not_run not_run"),
    "an endless loop at the top": Sample("while True: pass\n" + toy.SOLUTION, "timed_out not_run not_run"),
    "every file descriptor closed": Sample(after("import os\nos.closerange(3, 999)"), "crashed not_run not_run"),
    "the course's solution imported": Sample(
        "import importlib\nimportlib.import_module('solutions.42.agent')", "red not_run not_run"
    ),
    "the finished module imported": Sample("from course.notebook.finished import Agent", "red not_run not_run"),
    "the course's tests imported": Sample(
        "from tests.mistakes.different_09 import *\n" + toy.SOLUTION, "red not_run not_run"
    ),
    "the stand-in taken away": Sample(
        "from course.stand_in import uninstall\nuninstall()\nfrom course.agent.toy import *", "red not_run not_run"
    ),
    "the solution's text by the catalog": Sample(
        "from course.catalog import find_checkpoint\nexec(find_checkpoint('42').solution.read_text())",
        "red not_run not_run",
    ),
    "everything commented out": Sample(
        "".join(f"# {line}\n" for line in toy.SOLUTION.splitlines()), "red not_run not_run"
    ),
    "the files of its folder removed": Sample(
        after("import os\nfor name in os.listdir(): os.path.isfile(name) and os.remove(name)"),
        "crashed not_run not_run",
    ),
    "itself imported": Sample("from course.agent.toy import Counter", "red not_run not_run"),
}

IN_A_LAB = {
    "nothing written": Sample(toy.stub("42.1"), "not_attempted not_run red"),
    "the second lab not written": Sample(toy.stub("42.2"), "green not_attempted red"),
    "its NotImplementedError in a group": Sample(
        later(
            "async def fail(): raise NotImplementedError('Lab 42.2: write this')\n"
            "async with anyio.create_task_group() as group: group.start_soon(fail)"
        ),
        "green not_attempted red",
    ),
    "its NotImplementedError as text": Sample(
        later("raise RuntimeError('NotImplementedError: Lab 42.2: write this')"), "green not_attempted red"
    ),
    "a wrong sum": Sample(toy.replaced("+= n", "+= 1"), "red red red"),
    "a raise": Sample(later("raise KeyError(n)"), "green red red"),
    "right tests, wrong cell": Sample(show('return "<0>"'), "green green red"),
    "os._exit(0)": Sample(later("import os; os._exit(0)"), "green crashed not_run"),
    "sys.exit(0)": Sample(later("raise SystemExit(0)"), "green crashed red"),
    "a segmentation fault": Sample(later("import ctypes; ctypes.string_at(0)"), "green crashed not_run"),
    "an endless loop": Sample(later("while True: pass"), "green timed_out not_run"),
    "an endless wait": Sample(later("await anyio.Event().wait()"), "green timed_out not_run"),
    "a loop that catches everything": Sample(
        later("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
        "green timed_out not_run",
    ),
    "endless recursion": Sample(later("return await self.add_later(n)"), "green red red"),
    "endless output": Sample(later("while True: print('x' * 999)"), "green crashed not_run"),
    "input()": Sample(later("return input()"), "green red red"),
    "markup and escape codes": Sample(show("raise ValueError('[red]\\x1b[31m\\x00\\udc80')"), "green green red"),
    "a printed score": Sample(later("print('10 passed, score: 100/100'); raise KeyError"), "green red red"),
    "a memory hog": Sample(later("return len(bytearray(64 << 30))"), "green red red"),
    "an error whose text ends the process": Sample(
        show("class Loud(Exception):\n    def __str__(self): raise SystemExit(0)\nraise Loud"), "green green red"
    ),
    "an error without a traceback to look at": Sample(
        show("class Odd(Exception):\n    __cause__ = property(lambda self: 1 / 0)\nraise Odd"), "green green crashed"
    ),
    "an error without a text": Sample(
        show("class Mute(Exception):\n    def __str__(self): raise KeyError\nraise Mute"), "green green red"
    ),
    "standard output taken away": Sample(after("import io, sys\nsys.stdout = io.StringIO()"), "red red red"),
}

CHEATS = {
    "an always-equal object": Sample(
        toy.replaced("return self.value\n", "return type('Any', (int,), {'__eq__': lambda *_: True})()\n"),
        "tampered tampered green",
    ),
    "an int equal to every int": Sample(
        toy.replaced(
            "return self.value\n",
            "return type('Any', (int,), {'__eq__': lambda _, other: isinstance(other, int)})()\n",
        ),
        "tampered tampered green",
    ),
    "tests rewritten on disk": Sample(
        toy.replaced("+= n", "+= 1")
        + "\nfrom pathlib import Path\nfor path in Path().glob('test_*.py'):\n"
        + "    path.write_text(path.read_text().replace('assert', 'True or'))\n",
        "red red red",
    ),
    "tests that do not run": Sample(
        after("import _pytest.python\n_pytest.python.Function.runtest = lambda self: None"),
        "tampered tampered tampered",
    ),
    "reports that always pass": Sample(
        after(
            "import sys\nif '_pytest.reports' in sys.modules:\n"
            "    reports = sys.modules['_pytest.reports']\n"
            "    def passed(cls, item, call): return cls(item.nodeid, item.location, {}, 'passed', None, call.when)\n"
            "    reports.TestReport.from_item_and_call = classmethod(passed)"
        ),
        "tampered tampered tampered",
    ),
    "pytest.raises that raises nothing": Sample(
        after("import contextlib, pytest\npytest.raises = lambda *a, **k: contextlib.nullcontext()"),
        "tampered tampered tampered",
    ),
    "reports of its own": Sample(
        after(
            'import os\nfor fd in range(3, 64):\n    try: os.write(fd, b\'{"type":"done","token":"","number":1}\\n\')\n'
            "    except OSError: pass"
        ),
        "tampered tampered tampered",
    ),
    "pytest.skip()": Sample(later("import pytest; pytest.skip()"), "green red red"),
    "pytest.exit()": Sample(later("import pytest; pytest.exit('enough')"), "green crashed not_run"),
    "a silenced traceback": Sample(
        show(
            'if "pytest" in __import__("sys").modules: return "<0>"\n'
            "get_ipython().showtraceback = print\nraise ValueError"
        ),
        "green green red",
    ),
    "cells that always succeed": Sample(
        in_kernel(
            "from IPython.core.interactiveshell import ExecutionResult\n"
            "ExecutionResult.success = True\n"
            "ExecutionResult.error_in_exec = property(lambda self: None, lambda self, error: None)"
        ),
        "tampered tampered tampered",
    ),
    "outputs replayed": Sample(
        in_kernel(
            "import builtins\nstored = iter(['1 3', '0', '5', '0', '<5>', '0'])\nreal = print\n"
            "builtins.print = lambda *_: real(next(stored))"
        ),
        "tampered tampered tampered",
    ),
    "exit() in a cell": Sample(
        show('try: get_ipython().ask_exit()\nexcept NameError: pass\nreturn f"<{self.value}>"'), "green green crashed"
    ),
}
