"""The stateful Agent, built another way: an inbox and a switchboard of their own, and a thin Agent on top."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Literal, Self

import anyio
import msgspec

from course.agent.errors import AgentBusyError, AgentClosedError, AgentIdleError, AgentLimitError
from course.agent.events import (
    AgentEvent,
    AssistantMessageEvent,
    Emitter,
    MessageAcceptedEvent,
    QueuedMessage,
    RunEndEvent,
    RunError,
    RunResult,
    RunStartEvent,
    RunStatus,
    TextDeltaEvent,
    ToolEndEvent,
    ToolSkippedEvent,
    TurnEndEvent,
)
from course.agent.listeners import ErrorLog, Listener, SubscriberError, Subscription
from course.agent.loop import run_agent_loop
from course.agent.messages import AssistantMessage, Message, UserMessage
from course.agent.model import FixedModel, Model
from course.agent.policy import AGENT_OWNED, Limits, QueuePolicy
from course.agent.signal import Signal
from course.agent.streams import EventStream
from course.agent.tasks import TaskOwner
from course.agent.tools import ToolRegistry
from course.agent.transcript import Transcript

RunStream = EventStream[AgentEvent, RunResult]
Waiting = Literal["steering", "follow_up"]


class AgentState(msgspec.Struct, frozen=True):
    """What an Agent looks like after the events dispatched so far."""

    status: Literal["idle", "running"] = "idle"
    messages: Transcript = Transcript()
    active_run_id: str | None = None
    last_status: RunStatus | None = None
    streaming_text: str = ""
    pending_call_ids: tuple[str, ...] = ()


def reduce_agent_state(state: AgentState, event: AgentEvent) -> AgentState:
    """The state after this event."""
    changes: dict[str, Any] = {}
    match event:
        case RunStartEvent(run_id=run_id, messages=messages):
            return AgentState("running", messages, run_id, state.last_status)
        case AgentEvent(run_id=run_id) if run_id != state.active_run_id:
            return state
        case TextDeltaEvent(text=text):
            changes["streaming_text"] = "".join([state.streaming_text, text])
        case AssistantMessageEvent(message=message):
            changes["streaming_text"] = ""
            changes["pending_call_ids"] = tuple(call.id for call in message.calls)
        case ToolEndEvent(result=result) | ToolSkippedEvent(result=result):
            place = state.pending_call_ids.index(result.call_id)
            changes["pending_call_ids"] = state.pending_call_ids[:place] + state.pending_call_ids[place + 1 :]
        case RunEndEvent(result=result):
            return AgentState(messages=result.messages, last_status=result.status)
    return msgspec.structs.replace(state, **changes) if changes else state


class Inbox:
    """Two queues that know which of their messages came first."""

    def __init__(self, policy: QueuePolicy) -> None:
        self._policy = policy
        self._numbers = count()
        self._steering: deque[tuple[int, QueuedMessage]] = deque()
        self._follow_ups: deque[tuple[int, QueuedMessage]] = deque()

    def __len__(self) -> int:
        return len(self._steering) + len(self._follow_ups)

    def put(self, kind: Waiting, message: UserMessage) -> None:
        queue = self._steering if kind == "steering" else self._follow_ups
        queue.append((next(self._numbers), QueuedMessage(kind, message)))

    def take(self, kind: Waiting) -> list[QueuedMessage]:
        """What one boundary takes."""
        queue = self._steering if kind == "steering" else self._follow_ups
        many = min(len(queue), 1) if self._policy.one_at_a_time else len(queue)
        return [queue.popleft()[1] for _ in range(many)]

    def all(self) -> tuple[QueuedMessage, ...]:
        return tuple(message for _, message in sorted([*self._steering, *self._follow_ups], key=lambda pair: pair[0]))

    def clear(self) -> tuple[QueuedMessage, ...]:
        cleared = self.all()
        self._steering.clear()
        self._follow_ups.clear()
        return cleared


class Switchboard:
    """Brings each event to the state and to all listeners before it begins with the next."""

    def __init__(self, state: AgentState) -> None:
        self.state = state
        self.errors = ErrorLog()
        self._listeners: dict[int, Subscription] = {}
        self._numbers = count()
        self._backlog: deque[tuple[AgentEvent, RunStream]] | None = None

    def connect(self, subscription: Subscription) -> Callable[[], None]:
        number = next(self._numbers)
        self._listeners[number] = subscription
        del subscription

        def disconnect() -> None:
            self._listeners.pop(number, None)

        return disconnect

    def send(self, event: AgentEvent, stream: RunStream) -> None:
        if self._backlog is not None:
            self._backlog.append((event, stream))
            return
        self._backlog = deque([(event, stream)])
        try:
            while self._backlog:
                self._deliver(*self._backlog.popleft())
        finally:
            self._backlog = None

    def _deliver(self, event: AgentEvent, stream: RunStream) -> None:
        stream.publish(event)
        self.state = reduce_agent_state(self.state, event)
        for subscription in list(self._listeners.values()):
            try:
                returned = subscription.listener(event)
            except Exception as error:
                self.errors.record(event, error)
            else:
                if inspect.isawaitable(returned):
                    subscription.worker.add(event, returned)


class Run:
    """One run: what it may use, and whether its outcome is still open."""

    def __init__(self, number: int, send: Callable[[AgentEvent, RunStream], None]) -> None:
        self.signal = Signal()
        self.stream: RunStream = EventStream()
        self.emit = Emitter(f"the run with number {number}", lambda event: send(event, self.stream))


class Agent:
    """Owns a transcript, and lets one run at a time work on it."""

    def __init__(
        self,
        *,
        model: Model,
        tools: ToolRegistry | None = None,
        system: str = "",
        messages: Iterable[Message] = (),
        max_steps: int = 16,
        queues: QueuePolicy = AGENT_OWNED,
        limits: Limits = Limits(),
    ) -> None:
        if max_steps < 1:
            raise ValueError("max_steps must be at least 1")
        self.messages = Transcript(messages)
        self.messages.check_pairs()
        if len(self.messages) > limits.owned:
            raise AgentLimitError(f"more than {limits.owned} messages; begin with fewer `messages`")
        self._settings: dict[str, Any] = {
            "model": FixedModel(model.stream),
            "tools": (tools or ToolRegistry()).snapshot(),
            "system": system,
            "max_steps": max_steps,
        }
        self._policy, self._limits = queues, limits
        self._inbox = Inbox(queues)
        self._board = Switchboard(AgentState(messages=self.messages))
        self._owner = TaskOwner()
        self._numbers = count(1)
        self._run: Run | None = None
        self._closed = False

    @property
    def state(self) -> AgentState:
        return self._board.state

    @property
    def is_running(self) -> bool:
        return self._run is not None

    @property
    def queued(self) -> tuple[QueuedMessage, ...]:
        return self._inbox.all()

    @property
    def cancel_reason(self) -> str | None:
        return self._run.signal.reason if self._run else None

    @property
    def subscriber_errors(self) -> tuple[SubscriberError, ...]:
        return self._board.errors.last

    @property
    def subscriber_error_count(self) -> int:
        return self._board.errors.count

    @property
    def room(self) -> int:
        room = 0
        while self._has_room(room + 1):
            room += 1
        return room

    def _has_room(self, more: int) -> bool:
        queued = len(self._inbox) + more
        turn = self._limits.turn if self._run else 0
        return queued <= self._limits.queued and len(self.messages) + 2 * queued + turn <= self._limits.owned

    def prompt(self, text: str) -> RunStream:
        self._refuse_second_owner("prompt()")
        first = QueuedMessage("prompt", UserMessage(text))
        self._refuse_without_room(2)
        return self._begin([first, *self._inbox.take("steering")])

    def continue_(self) -> RunStream:
        self._refuse_second_owner("continue_()")
        kinds = {each.kind for each in self._inbox.all()}
        if "steering" in kinds:
            return self._begin(self._inbox.take("steering"))
        if not self.messages:
            raise AgentIdleError("nothing was said yet; call prompt()")
        tail = self.messages[-1]
        if not isinstance(tail, AssistantMessage) or tail.stop_reason == "error":
            self._refuse_without_room(1)
            return self._begin([])
        if "follow_up" in kinds:
            return self._begin(self._inbox.take("follow_up"))
        raise AgentIdleError("the answer is finished; call prompt() or follow_up()")

    def cancel(self, reason: str = "cancelled") -> bool:
        if self._run is None or self._run.signal.cancelled:
            return False
        self._run.signal.cancel(reason)
        return True

    def steer(self, text: str) -> None:
        self._queue("steering", text)

    def follow_up(self, text: str) -> None:
        self._queue("follow_up", text)

    def clear_queues(self) -> tuple[QueuedMessage, ...]:
        return self._inbox.clear()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._board.connect(Subscription(listener, self._owner, self._board.errors))

    def _queue(self, kind: Waiting, text: str) -> None:
        message = UserMessage(text)
        if self._closed:
            raise AgentClosedError("closed; make a new Agent with messages=agent.messages")
        is_open = self._run is not None and not self._run.signal.cancelled
        if not is_open and not self._policy.outlive_run:
            raise AgentIdleError("queue a message only while a run is active, or call prompt()")
        if not self._has_room(1):
            raise AgentLimitError("no room; clear_queues(), or a new Agent with fewer `messages`")
        self._inbox.put(kind, message)

    def _refuse_second_owner(self, caller: str) -> None:
        if self._closed:
            raise AgentClosedError("closed; make a new Agent with messages=agent.messages")
        if self._run is not None:
            raise AgentBusyError(f"{caller}: a run is active; use steer() or follow_up()")
        self._owner.check()

    def _refuse_without_room(self, new: int) -> None:
        if len(self.messages) + new + 2 * len(self._inbox) > self._limits.owned:
            raise AgentLimitError("the transcript is full; clear_queues(), or a new Agent with fewer `messages`")

    def _begin(self, inputs: list[QueuedMessage]) -> RunStream:
        self.messages = self.messages.append(*(each.message for each in inputs))
        run = self._run = Run(next(self._numbers), self._hear)
        start = self.messages
        run.emit(RunStartEvent, start)
        for each in inputs:
            run.emit(MessageAcceptedEvent, each.kind, each.message, start)
        self._owner.start(self._work, run, start)
        return run.stream

    def _hear(self, event: AgentEvent, stream: RunStream) -> None:
        match event:
            case TurnEndEvent(messages=messages) | MessageAcceptedEvent(messages=messages):
                self.messages = messages
        self._board.send(event, stream)

    async def _work(self, run: Run, start: Transcript) -> None:
        ended: RunResult | None = None
        try:
            ended = await run_agent_loop(
                start,
                **self._settings,
                signal=run.signal,
                emit=run.emit,
                take_steering=lambda: [each.message for each in self._inbox.take("steering")],
                take_follow_ups=lambda: [each.message for each in self._inbox.take("follow_up")],
                input_waits=lambda: len(self._inbox) > 0,
                admit=self._admit,
            )
        except AgentLimitError as error:
            ended = RunResult("failed", self.messages, error=RunError(error.code, str(error)))
        except Exception as error:
            ended = RunResult("failed", self.messages, error=RunError("AGENT_STATE_FAILED", str(error)))
        finally:
            if ended is None or run.signal.cancelled:
                messages = ended.messages if ended else self.messages
                ended = RunResult("cancelled", messages, reason=run.signal.reason or "cancelled from outside")
            self._end(run, ended)

    def _end(self, run: Run, result: RunResult) -> None:
        if not self._policy.outlive_run:
            result = msgspec.structs.replace(result, dropped=self._inbox.clear())
        self._run, self.messages = None, result.messages
        run.emit(RunEndEvent, result)
        run.stream.close(result)

    def _admit(self, message: AssistantMessage) -> None:
        self._refuse_without_room(len(message.calls) + 2 if message.calls else 1)

    async def aclose(self) -> None:
        if self._owner.is_around:
            raise RuntimeError("aclose() inside a run of this agent would wait for itself; call cancel()")
        self._closed = True
        if self._run is not None:
            self._run.signal.cancel("the agent was closed")
            await self._run.stream.result()
        await self._owner.cancel_tasks()

    async def __aenter__(self) -> Self:
        if self._closed:
            raise AgentClosedError("closed; make a new Agent with messages=agent.messages")
        await self._owner.open()
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *rest: object) -> None:
        self._closed = True
        try:
            if exc_type is None:
                await self.aclose()
        finally:
            await self._owner.close()


async def wait_idle(agent: Agent) -> None:
    """Return once no run is active."""
    turned = anyio.Event()

    def listen(event: AgentEvent) -> None:
        nonlocal turned
        if isinstance(event, RunEndEvent):
            turned, before = anyio.Event(), turned
            before.set()

    unsubscribe = agent.subscribe(listen)
    try:
        while agent.is_running:
            await turned.wait()
    finally:
        unsubscribe()
