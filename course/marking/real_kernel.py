"""A notebook's cells in a real kernel, driven by nbclient: slow, and the reference for the quick way.

The driver is our own process and the kernel its child: what the learner's code writes can reach no pipe of ours.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from course.catalog import PACKAGE
from course.marking.child import Reporter
from course.marking.contained import FLOOD, OUTPUT_LIMIT, dumped_frames
from course.marking.kernel_side import LAST_FAULT, STACK_FILE
from course.marking.notebook import NotebookRequest
from course.marking.slow_grammar import without_slow_grammar
from course.marking.steps import END_OF_DUMP, Fault, Frame

with without_slow_grammar():
    import nbformat
    from jupyter_client.asynchronous.client import AsyncKernelClient
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_core.utils import ensure_async
    from nbclient import NotebookClient
    from nbclient.exceptions import DeadKernelError

_PREPARE = "from course.marking.kernel_side import prepare; prepare({checkpoint!r}, {learner!r})"
_DESCRIBE = f"get_ipython().{LAST_FAULT}({{learner!r}})"


def run(reporter: Reporter) -> None:
    """Receive the request, start a kernel, run the cells in it and tell each. Does not return."""
    request = reporter.receive()
    asked = request.read(NotebookRequest)
    os.environ["PYTHONPATH"] = str(PACKAGE.parent)
    logging.getLogger("traitlets").addHandler(logging.NullHandler())
    asyncio.run(_Driver(asked, request.learner, reporter).drive())


class _Client(NotebookClient):
    """Notices a flood."""

    size = 0
    flooded: Callable[[], NoReturn]

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        self.size += len(repr(msg["content"])) if msg["msg_type"] != "status" else 0
        if self.size > OUTPUT_LIMIT:
            self.flooded()
        return super().process_message(msg, cell, cell_index)


class _Driver:
    def __init__(self, asked: NotebookRequest, learner: str, reporter: Reporter) -> None:
        self._asked = asked
        self._learner = learner
        self._reporter = reporter
        cells = [nbformat.v4.new_code_cell(source) for _, source in asked.cells]
        self._notebook = nbformat.v4.new_notebook(cells=cells)
        self._reply: dict[str, Any] | None = None
        self._client = _Client(
            self._notebook,
            km=_kernel_manager(),
            timeout=None,
            allow_errors=True,
            record_timing=False,
            store_widget_state=False,
            on_cell_executed=self._executed,
        )

        self._client.flooded = lambda: reporter.stopped("crashed", FLOOD)

    async def drive(self) -> None:
        async with self._client.async_setup_kernel(cwd=str(Path.cwd())):
            await self._prepare()
            for index, (id, _) in enumerate(self._asked.cells):
                self._reporter.begin(id)
                try:
                    await self._run_cell(index, id)
                except DeadKernelError:
                    self._reporter.stopped("crashed", "It ended the kernel's process.")
        self._reporter.done()

    async def _prepare(self) -> None:
        checkpoint = msgspec.json.encode(self._asked.checkpoint, enc_hook=str).decode()
        reply = await self._quietly(_PREPARE.format(checkpoint=checkpoint, learner=self._learner), {})
        if reply["status"] != "ok":
            self._reporter.stopped("error", f"The kernel could not be prepared: {reply.get('evalue')}")

    async def _run_cell(self, index: int, id: str) -> None:
        self._client.size = 0
        cell = self._notebook.cells[index]
        running = asyncio.ensure_future(self._client.async_execute_cell(cell, index))
        await asyncio.wait([running], timeout=self._asked.seconds)
        if not running.done():
            text = f"It had not ended after {self._asked.seconds:g} seconds."
            self._reporter.stopped("timed_out", text, await self._stack())
        await running
        reply = self._reply
        assert reply is not None
        fault = None if reply["status"] == "ok" else await self._fault(_from_reply(reply))
        is_leaving = any(payload["source"] == "ask_exit" for payload in reply.get("payload", []))
        if is_leaving:
            fault = fault or Fault("SystemExit", "exit()")
        outputs = tuple(msgspec.convert(cell.outputs, list[dict[str, Any]]))
        self._reporter.finish(id, "failed" if fault else "passed", fault, outputs)
        if is_leaving:
            self._reporter.stopped("crashed", "It called exit(), which ends the kernel.")

    async def _executed(self, cell: Any, cell_index: int, execute_reply: dict[str, Any] | None) -> None:
        self._reply = execute_reply and execute_reply["content"]

    async def _fault(self, otherwise: Fault) -> Fault:
        """The last error as the kernel knows it, or `otherwise` when the kernel does not answer."""
        with contextlib.suppress(Exception):
            reply = await self._quietly("", {"fault": _DESCRIBE.format(learner=self._learner)})
            text = ast.literal_eval(reply["user_expressions"]["fault"]["data"]["text/plain"])
            return msgspec.json.decode(text, type=Fault | None) or otherwise
        return otherwise

    async def _stack(self) -> tuple[Frame, ...]:
        """Where the kernel is, as far as it answers within half a second."""
        manager = self._client.km
        assert manager is not None
        await ensure_async(manager.signal_kernel(signal.SIGUSR1))
        dump = ""
        for _ in range(50):
            dump = Path(STACK_FILE).read_text(encoding="utf-8", errors="replace")
            if END_OF_DUMP in dump:
                break
            await asyncio.sleep(0.01)
        return dumped_frames(dump)

    async def _quietly(self, code: str, expressions: dict[str, str]) -> dict[str, Any]:
        client = self._client.kc
        assert isinstance(client, AsyncKernelClient)
        message = await client.execute_interactive(
            code,
            silent=True,
            store_history=False,
            user_expressions=expressions,
            allow_stdin=False,
            timeout=10,
            output_hook=lambda message: None,
        )
        return message["content"]


def _from_reply(reply: dict[str, Any]) -> Fault:
    return Fault(kind=reply.get("ename", "Unrun"), text=reply.get("evalue", "the cell did not run through"))


def _kernel_manager() -> AsyncKernelManager:
    """A kernel of this very environment, whatever kernelspecs are installed; its sockets lie in this folder."""
    # Relative: both sides share this folder, and a socket's path may have about 100 characters.
    manager = AsyncKernelManager(transport="ipc", ip=".kernel")
    manager._kernel_spec = KernelSpec(
        argv=[sys.executable, "-B", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        display_name="Python",
        language="python",
    )
    return manager
