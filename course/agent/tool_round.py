"""One round of tool calls: they run side by side, and each has exactly one result, in the order of the calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import anyio
import anyio.from_thread
import anyio.lowlevel

from course.agent.events import Emit, ToolEndEvent, ToolProgressEvent, ToolSkippedEvent, ToolStartEvent
from course.agent.messages import ToolCall, ToolResultMessage
from course.agent.signal import Signal
from course.agent.tools import ToolSnapshot, error_result


class ToolRound:
    """The calls of one response, and what became of them.

    After `run()` has ended, in whatever way, `results` holds one result a call, in call order.
    """

    def __init__(self, calls: Sequence[ToolCall], tools: ToolSnapshot, *, signal: Signal, emit: Emit) -> None:
        self._calls = tuple(calls)
        self._tools = tools
        self._signal = signal
        self._emit = emit
        self._started: set[str] = set()
        self._results: dict[str, ToolResultMessage] = {}

    @property
    def results(self) -> tuple[ToolResultMessage, ...]:
        return tuple([self._results[call.id] for call in self._calls])

    async def run(self) -> None:
        """Run the calls and wait for all of them. A call that fails disturbs no other.

        When the signal is set, calls that run are waited for (they have the signal; their scope is not cancelled)
        and the rest are skipped. A cancellation from outside ends the running ones, and is passed on with every
        call paired.
        """
        try:
            started = [call for call in self._calls if self._start(call)]
            if len(started) == 1:
                await self._run_call(started[0])  # a lone call needs no task of its own
            elif started:
                async with anyio.create_task_group() as group:
                    for call in started:
                        group.start_soon(self._run_call, call)
        finally:
            for call in self._calls:
                if call.id not in self._results:
                    self._pair(call)

    def _start(self, call: ToolCall) -> bool:
        """Tell that this call starts, unless the run was cancelled by now."""
        if self._signal.cancelled:
            return False
        self._started.add(call.id)
        self._emit(ToolStartEvent, call)
        return True

    async def _run_call(self, call: ToolCall) -> None:
        progress = _Progress(call.id, self._emit)
        try:
            result = await self._tools.run(call, signal=self._signal, progress=progress)
        finally:
            progress.close()
        self._results[call.id] = result
        self._emit(ToolEndEvent, result)

    def _pair(self, call: ToolCall) -> None:
        """Give a call without a result one that says why."""
        if call.id in self._started:
            result = error_result(call, f"{call.name} was interrupted; what it had done by then is not undone.")
            self._results[call.id] = result
            self._emit(ToolEndEvent, result)
        else:
            result = error_result(call, f"{call.name} was skipped: the run was cancelled before it started.")
            self._results[call.id] = result
            self._emit(ToolSkippedEvent, result)


class _Progress:
    """Reports of one running tool, from whatever thread; once the tool has ended, they are ignored."""

    def __init__(self, call_id: str, emit: Emit) -> None:
        self._call_id = call_id
        self._emit: Emit | None = emit
        self._thread = threading.get_ident()
        self._token = anyio.lowlevel.current_token()

    def __call__(self, text: str) -> None:
        if self._emit is None:
            return
        if threading.get_ident() == self._thread:
            self._deliver(text)
        else:
            anyio.from_thread.run_sync(self._deliver, text, token=self._token)

    def close(self) -> None:
        self._emit = None

    def _deliver(self, text: str) -> None:
        if self._emit is not None:
            self._emit(ToolProgressEvent, self._call_id, str(text))
