"""A notebook's cells in an in-process IPython shell on one asyncio loop: a real kernel's behaviour without its start.

What it does as the kernel does: top-level await, tasks that go on between cells, magics, shell commands, rich display,
and dropping what a task prints after the cell that started it. It has no comms and no standard input.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import importlib
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell, InteractiveShellABC

from course import stand_in
from course.marking.child import Reporter
from course.marking.contained import FLOOD, OUTPUT_LIMIT
from course.marking.fault import describe
from course.marking.notebook import NotebookRequest
from course.marking.steps import Fault

_QUIET_ROUNDS = 1000

_KERNEL_ENVIRONMENT = {
    "TERM": "xterm-color",
    "CLICOLOR": "1",
    "FORCE_COLOR": "1",
    "CLICOLOR_FORCE": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
"""What ipykernel sets in its own environment."""


def run(reporter: Reporter) -> None:
    """Get a shell ready, receive the request, run its cells and tell each. Does not return."""
    os.environ.update(_KERNEL_ENVIRONMENT)
    sys.path.insert(0, "")
    outputs = Outputs(lambda: reporter.stopped("crashed", FLOOD))
    shell = new_shell(outputs)
    importlib.import_module("course.notebook.extension")  # it needs more than a marked file may import
    request = reporter.receive()
    asked = request.read(NotebookRequest)
    stand_in.install(asked.checkpoint, Path(request.learner), asked.source, marking=True)
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        runner.run(_run_cells(shell, outputs, asked.cells, request.learner, reporter))


async def _run_cells(
    shell: InteractiveShell, outputs: Outputs, cells: tuple[tuple[str, str], ...], learner: str, reporter: Reporter
) -> None:
    for id, source in cells:
        reporter.begin(id)
        outputs.open()
        try:
            result = await _run_cell(shell, source)
        except (Exception, asyncio.CancelledError) as broken:  # no fault of a cell leaves the shell
            reporter.stopped("crashed", f"It broke the shell that runs the cells ({type(broken).__name__}).")
        fault = _fault(result, learner) or _exit_fault(shell)
        reporter.finish(id, "failed" if fault else "passed", fault, outputs.close())
        if shell.exit_now:
            reporter.stopped("crashed", "It called exit(), which ends the kernel.")
        await quiet()
    reporter.done()


async def _run_cell(shell: InteractiveShell, source: str) -> ExecutionResult:
    """As ipykernel does it: a cell that awaits becomes a task, any other runs where we are."""
    transformed, broken = source, None
    try:
        transformed = shell.transform_cell(source)
    except Exception:
        broken = sys.exc_info()
    if not shell.should_run_async(source, transformed_cell=transformed, preprocessing_exc_tuple=broken):
        return shell.run_cell(source, store_history=True)
    cell = shell.run_cell_async(
        source, store_history=True, transformed_cell=transformed, preprocessing_exc_tuple=broken
    )
    result = await asyncio.ensure_future(cell)
    shell.events.trigger("post_execute")
    shell.events.trigger("post_run_cell", result)
    return result


def _fault(result: ExecutionResult, learner: str) -> Fault | None:
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        return describe(error, learner)
    return None if result.success else Fault("Unrun", "the cell did not run through")


def _exit_fault(shell: InteractiveShell) -> Fault | None:
    return Fault("SystemExit", "exit()") if shell.exit_now else None


class CountingLoop(asyncio.SelectorEventLoop):
    """An event loop that counts what was scheduled, so that it can be seen to go quiet."""

    scheduled = 0

    def call_soon(self, callback: Callable[..., Any], *args: Any, **named: Any) -> asyncio.Handle:  # type: ignore[override]
        self.scheduled += 1
        return super().call_soon(callback, *args, **named)


async def quiet() -> None:
    """Return once a whole round of the loop scheduled nothing but this waiting, or after 1,000 rounds."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, CountingLoop)
    for _ in range(_QUIET_ROUNDS):
        before = loop.scheduled
        await asyncio.sleep(0)
        if loop.scheduled - before <= 1:
            return


class Outputs:
    """What the running cell has put out, in nbformat's form. Whatever belongs to no running cell is dropped.

    A task belongs to the cell that started it, and a thread to whichever cell runs: so it is in a kernel.
    `overflow` is called when a cell puts out more than OUTPUT_LIMIT characters.
    """

    def __init__(self, overflow: Callable[[], object]) -> None:
        self._overflow = overflow
        self._cell = 0
        self._is_open = False
        self._of = contextvars.ContextVar[int]("cell")
        self._outputs: list[dict[str, Any]] = []
        self._size = 0
        self._clear_first = False

    def open(self) -> None:
        self._cell += 1
        self._of.set(self._cell)
        self._outputs, self._size, self._clear_first, self._is_open = [], 0, False, True

    def close(self) -> tuple[dict[str, Any], ...]:
        self._is_open = False
        for output in self._outputs:
            output.pop("transient", None)
        return tuple(self._outputs)

    def add(self, output: dict[str, Any], size: int) -> None:
        if not self._is_open or self._of.get(self._cell) != self._cell:
            return
        self._size += size
        if self._size > OUTPUT_LIMIT:
            self._overflow()
        if self._clear_first:
            self._outputs, self._clear_first = [], False
        last = self._outputs[-1] if self._outputs else {}
        if output["output_type"] == "stream" and last.get("name") == output["name"]:
            last["text"] += output["text"]
        else:
            self._outputs.append(output)

    def clear(self, wait: bool) -> None:
        if wait:
            self._clear_first = True
        else:
            self._outputs = []

    def update(self, display_id: str, data: dict[str, Any]) -> None:
        for output in self._outputs:
            if output.get("transient") == display_id:
                output["data"] = data


class _Stream(io.TextIOBase):
    encoding = "utf-8"

    def __init__(self, name: str, outputs: Outputs) -> None:
        self.name = name
        self._outputs = outputs

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._outputs.add({"output_type": "stream", "name": self.name, "text": text}, len(text))
        return len(text)


class _Hook(DisplayHook):
    outputs: Outputs

    def write_output_prompt(self) -> None: ...

    def write_format_data(self, format_dict: dict[str, Any], md_dict: dict[str, Any] | None = None) -> None:
        if format_dict:
            data = _plain(format_dict)
            count = self.prompt_count
            output = {
                "output_type": "execute_result",
                "execution_count": count,
                "metadata": md_dict or {},
                "data": data,
            }
            self.outputs.add(output, len(repr(data)))

    def finish_displayhook(self) -> None: ...


class _Publisher(DisplayPublisher):
    outputs: Outputs

    def publish(  # type: ignore[override]
        self,
        data: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        *,
        transient: dict[str, Any] | None = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        plain = _plain(data)
        display_id = (transient or {}).get("display_id")
        if update:
            self.outputs.update(str(display_id), plain)
            return
        output = {"output_type": "display_data", "metadata": metadata or {}, "data": plain}
        if display_id is not None:
            output["transient"] = display_id
        self.outputs.add(output, len(repr(plain)))

    def clear_output(self, wait: bool = False) -> None:
        self.outputs.clear(wait)


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """`data` as JSON can carry it: bytes, which are pictures, in base64."""
    return {
        kind: base64.b64encode(value).decode() if isinstance(value, bytes) else value for kind, value in data.items()
    }


class ZMQInteractiveShell(InteractiveShell):
    """Named as the kernel's shell is, because libraries ask for that name to see whether they are in a notebook."""

    outputs: Outputs

    def init_virtualenv(self) -> None: ...

    def enable_gui(self, gui: Any = None) -> None: ...

    def ask_exit(self) -> None:
        self.exit_now = True

    def _showtraceback(self, etype: type[BaseException], evalue: BaseException, stb: list[str]) -> None:
        output = {"output_type": "error", "ename": etype.__name__, "evalue": str(evalue), "traceback": list(stb)}
        self.outputs.add(output, sum(map(len, stb)))

    system = InteractiveShell.system_piped


InteractiveShellABC.register(ZMQInteractiveShell)


def new_shell(outputs: Outputs) -> ZMQInteractiveShell:
    """The process's one shell, its streams and displays leading into `outputs`; no history, no profile."""
    HistoryManager.enabled = False  # pyright: ignore[reportAttributeAccessIssue]
    shell = ZMQInteractiveShell.instance(
        displayhook_class=_Hook,
        display_pub_class=_Publisher,
        xmode="Minimal",  # a traceback is compared with nothing, and the usual kind takes 20 ms to write
    )
    for part in (shell, shell.displayhook, shell.display_pub):
        part.outputs = outputs  # pyright: ignore[reportAttributeAccessIssue]
    sys.stdout, sys.stderr = _Stream("stdout", outputs), _Stream("stderr", outputs)
    return shell
