"""One round of tool calls: they run side by side, and each has exactly one result, in the order of the calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

import anyio
import anyio.from_thread
import anyio.lowlevel
from anyio import RunFinishedError
from anyio.abc import TaskGroup

from course.agent.events import AgentEvent, Emit, ToolEndEvent, ToolProgressEvent, ToolSkippedEvent, ToolStartEvent
from course.agent.messages import ToolCall, ToolResultMessage
from course.agent.signal import Signal
from course.agent.tasks import cancelled_from_outside
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

        Calls start in their order, each when the one before has begun. When the signal is set, calls that run are
        waited for (they have the signal; their scope is not cancelled) and the rest are skipped. A cancellation
        from outside ends the running ones, and is passed on with every call paired.
        """
        try:
            # A lone call needs no task of its own, but for a thread: a bare asyncio cancel would leave that behind.
            if len(self._calls) == 1 and not self._tools.in_thread(self._calls[0].name):
                await self._run_call(self._calls[0])
            elif self._calls:
                async with anyio.create_task_group() as group:
                    group.start_soon(self._run_from, 0, group)
        finally:
            for call in self._calls:
                if call.id not in self._results:
                    self._pair(call)

    async def _run_from(self, place: int, group: TaskGroup) -> None:
        """Run the call at this place. The next one's task runs once this one waits, so that a cancel can stop it."""
        if place + 1 < len(self._calls):
            group.start_soon(self._run_from, place + 1, group)
        if not cancelled_from_outside():
            await self._run_call(self._calls[place])

    async def _run_call(self, call: ToolCall) -> None:
        if self._signal.cancelled:
            return  # never started, and paired by run()
        self._started.add(call.id)
        self._emit(ToolStartEvent, call)
        progress = _Progress(call.id, self._emit)
        try:
            result = await self._tools.run(call, signal=self._signal, progress=progress)
        finally:
            progress.close()
        self._settle(ToolEndEvent, result)

    def _pair(self, call: ToolCall) -> None:
        """Give a call without a result one that says why."""
        if call.id in self._started:
            text = f"{call.name} was interrupted; what it had done by then is not undone."
            self._settle(ToolEndEvent, error_result(call, text))
        else:
            text = f"{call.name} was skipped: the run was cancelled before it started."
            self._settle(ToolSkippedEvent, error_result(call, text))

    def _settle(self, kind: type[AgentEvent], result: ToolResultMessage) -> None:
        self._results[result.call_id] = result
        self._emit(kind, result)


class _Progress:
    """Reports of one running tool, from whatever thread; once the tool has ended, they are ignored."""

    def __init__(self, call_id: str, emit: Emit) -> None:
        self._call_id = call_id
        self._emit: Emit | None = emit
        self._thread = threading.get_ident()
        self._token = anyio.lowlevel.current_token()

    def __call__(self, text: str) -> None:
        text = str(text)
        if threading.get_ident() == self._thread:
            self._deliver(text)
        elif self._emit is not None:
            with suppress(RunFinishedError):  # the loop has gone, and nobody is left to tell
                anyio.from_thread.run_sync(self._deliver, text, token=self._token)

    def close(self) -> None:
        self._emit = None

    def _deliver(self, text: str) -> None:
        if self._emit is not None:
            self._emit(ToolProgressEvent, self._call_id, text)
