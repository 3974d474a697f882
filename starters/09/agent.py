# Checkpoint 09, One Agent, many runs. This file is yours: write what raises
# NotImplementedError, lab by lab. Mark it with: course checkpoint 09

"""The stateful Agent: one owner of a transcript, many runs."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, Literal, Self

import anyio
import msgspec

from course.agent.errors import AgentBusyError, AgentClosedError, AgentIdleError, AgentLimitError, error_text
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
from course.agent.transcript import Transcript, is_error

RunStream = EventStream[AgentEvent, RunResult]


class AgentState(msgspec.Struct, frozen=True):
    """What an Agent looks like after the events dispatched so far.

    `messages` moves at `run_start` and `run_end`. `streaming_text` is the answer being written, `pending_call_ids`
    the calls of the current turn that have no result yet, `last_status` how the last run ended.
    """

    status: Literal["idle", "running"] = "idle"
    messages: Transcript = Transcript()
    active_run_id: str | None = None
    last_status: RunStatus | None = None
    streaming_text: str = ""
    pending_call_ids: tuple[str, ...] = ()


def reduce_agent_state(state: AgentState, event: AgentEvent) -> AgentState:
    """The state after this event. Pure: it owns nothing and changes nothing it was given.

    `run_start` makes its run the active one. An event of any other run than the active one gives back `state` itself.
    """
    raise NotImplementedError("Lab 9.1: give the state that follows this event")


class ActiveRun:
    """What belongs to one run and ends with it: its id, its own Signal, its stream and its numbered events."""

    def __init__(self, id: str, publish: Callable[[ActiveRun, AgentEvent], None]) -> None:
        self.id = id
        self.signal = Signal()
        self.stream: RunStream = EventStream()
        self.emit = Emitter(id, partial(publish, self))


class Agent:
    """Owns a transcript, and lets one run at a time work on it.

    `prompt()` starts a run and returns its stream; `await stream` gives the RunResult. Use it as
    `async with Agent(model=…) as agent:`, on asyncio or trio, or bare on a running asyncio loop, as in a notebook.
    Its methods belong to the loop's thread.
    """

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
        """Fix the model's method and the tools as they are now; replacing or registering later changes nothing.

        Raises TranscriptError for `messages` with an unpaired call, AgentLimitError for more than
        `limits.owned`, ValueError for `max_steps` below 1 (model requests a run may make).
        """
        if max_steps < 1:
            raise ValueError("max_steps must be at least 1: one request is the least a run can make")
        self._model = FixedModel(model.stream)
        self._tools = (tools if tools is not None else ToolRegistry()).snapshot()
        self._system = system
        self._max_steps = max_steps
        self._policy = queues
        self._limits = limits
        self._messages = Transcript(messages)
        self._messages.check_pairs()
        if len(self._messages) > limits.owned:
            raise self._limit_error(f"{len(self._messages)} messages are more than the {limits.owned} an Agent owns")
        self._state = AgentState(messages=self._messages)
        self._active: ActiveRun | None = None
        self._runs = 0
        self._queue: list[QueuedMessage] = []
        self._subscriptions: list[Subscription] = []
        self._errors = ErrorLog()
        self._events: deque[tuple[ActiveRun, AgentEvent]] = deque()
        self._dispatching = False
        self._owner = TaskOwner()
        self._closed = False

    @property
    def messages(self) -> Transcript:
        """The transcript as it is now: with a run's input from its claim on, and with every turn that is complete."""
        return self._messages

    @property
    def state(self) -> AgentState:
        """The state after the events dispatched so far."""
        return self._state

    @property
    def is_running(self) -> bool:
        """True from the moment `prompt()` has claimed until the run's outcome is decided."""
        return self._active is not None

    @property
    def queued(self) -> tuple[QueuedMessage, ...]:
        """The messages that wait, oldest first."""
        return tuple(self._queue)

    @property
    def cancel_reason(self) -> str | None:
        """Why the active run was asked to stop; None when nobody asked, or nothing runs."""
        return self._active.signal.reason if self._active is not None else None

    @property
    def subscriber_errors(self) -> tuple[SubscriberError, ...]:
        """What listeners raised, oldest first; the last 256. `subscriber_error_count` counts them all."""
        raise NotImplementedError("Lab 9.3: show the recorded errors, and no list that a caller could change")

    @property
    def subscriber_error_count(self) -> int:
        return self._errors.count

    @property
    def room(self) -> int:
        """How many more messages can be queued now, at least 0.

        Each queued message needs room for itself and its answer. While a run is active, the largest turn it
        could still add is kept free as well.
        """
        raise NotImplementedError("Lab 9.9: count the pairs that still fit, and the places in the queue")

    def prompt(self, text: str) -> RunStream:
        """Start a run with this message. It is claimed, or refused, before this returns; nothing is awaited.

        Raises AgentBusyError while a run is active, AgentLimitError when the transcript is full, AgentClosedError
        after `aclose()`, RuntimeError where no event loop could own the run. After any of them nothing has changed.
        """
        self._check_can_start("prompt()")
        message = UserMessage(text)
        self._check_room_for_run(inputs=1)
        return self._start([QueuedMessage("prompt", message), *self._joining_steering()])  # nothing can refuse now

    def continue_(self) -> RunStream:
        """Start a run from the transcript's tail, without a new prompt.

        Queued steering goes first. After a finished answer a queued follow-up is needed; after a user message, a
        tool result or a failed answer the model is asked again. Raises AgentIdleError when there is nothing to
        go on with, and what `prompt()` raises.
        """
        self._check_can_start("continue_()")
        inputs = self._take_for_tail()
        if not inputs:  # what was queued has its room already
            self._check_room_for_run(inputs=0)
        return self._start(inputs)

    def _take_for_tail(self) -> list[QueuedMessage]:
        """Take what a run from the tail says first; nothing where the model is to be asked again.

        Raises AgentIdleError when there is nothing to go on with; then nothing was taken. Called by `continue_()` once
        no other run is active.
        """
        raise NotImplementedError("Lab 9.7: look at what waits and at the tail, and take or refuse")

    def cancel(self, reason: str = "cancelled") -> bool:
        """Ask the active run to stop. True exactly when this call was accepted; then the run ends cancelled.

        False when idle, when the run was asked before, and once its outcome is decided.
        """
        raise NotImplementedError("Lab 9.4: set the active run's own signal")

    def _check_can_start(self, caller: str) -> None:
        """Raise unless a run can be claimed now. Called first by `prompt()` and `continue_()`; `caller` is which."""
        self._check_open()
        raise NotImplementedError("Lab 9.2: a second owner is refused, and told what to call instead")
        self._owner.check()

    def _check_open(self) -> None:
        if self._closed:
            raise AgentClosedError("this agent was closed; make a new Agent with messages=agent.messages")

    def _start(self, inputs: list[QueuedMessage]) -> RunStream:
        """Claim the transcript for a new run with these messages, tell of it, and start its task.

        Told here are `run_start`, with the run's whole input, and a `message_accepted` for each of `inputs`; the loop
        tells everything between them and `run_end`. An event is told by `run.emit(Kind, ...)`, with the fields that
        its class adds to `run_id` and `sequence`.
        """
        self._runs += 1
        run = ActiveRun(f"run-{self._runs}", self._publish)
        context = self._messages.append(*[each.message for each in inputs])
        try:
            raise NotImplementedError("Lab 9.2: claim before anybody hears of the run, then tell of it")
        finally:  # also when a listener is interrupted: what is claimed must run
            self._owner.start(self._run, run, context)
        return run.stream

    async def _run(self, run: ActiveRun, context: Transcript) -> None:
        """The run's task. Whatever happens in it, the run is settled once; only what came from outside goes on."""
        result = None
        try:
            result = await run_agent_loop(
                context,
                model=self._model,
                tools=self._tools,
                system=self._system,
                max_steps=self._max_steps,
                signal=run.signal,
                emit=run.emit,
                take_steering=lambda: [each.message for each in self._take("steering")],
                take_follow_ups=lambda: [each.message for each in self._take("follow_up")],
                input_waits=lambda: bool(self._queue),
                admit=self._admit,
            )
        except Exception as error:
            code = error.code if isinstance(error, AgentLimitError) else "AGENT_STATE_FAILED"
            result = RunResult("failed", self._messages, error=RunError(code, error_text(error)))
        finally:
            if result is None:
                result = RunResult("cancelled", self._messages, reason=run.signal.reason or "cancelled from outside")
            elif run.signal.cancelled and result.status != "cancelled":  # an accepted cancel beats what raced it
                result = RunResult("cancelled", result.messages, reason=run.signal.reason)
            self._settle(run, result)

    def _settle(self, run: ActiveRun, result: RunResult) -> None:
        """End the run: keep its transcript, clear its record, tell `run_end`, close its stream with the result.

        Called once a run, by `_run()`, however the run ended. Awaits nothing.
        """
        result = self._with_dropped(result)
        raise NotImplementedError("Lab 9.2: settle in the one order that lets a listener of run_end start the next run")

    def steer(self, text: str) -> None:
        """Say this at the next boundary, before the model goes on.

        Raises AgentIdleError when run-owned queues are closed (no run, or one that was cancelled), AgentLimitError
        when there is no room, AgentClosedError after `aclose()`. After any of them nothing was queued.
        """
        self._enqueue("steering", text)

    def follow_up(self, text: str) -> None:
        """Say this once the model would stop. Raises like `steer()`."""
        self._enqueue("follow_up", text)

    def clear_queues(self) -> tuple[QueuedMessage, ...]:
        """Take back everything that waits, oldest first."""
        raise NotImplementedError("Lab 9.6: hand the queue over and leave none")

    def _enqueue(self, kind: Literal["steering", "follow_up"], text: str) -> None:
        """Let the message wait, or refuse it and change nothing. Called by `steer()` and `follow_up()`."""
        self._check_open()
        message = UserMessage(text)
        raise NotImplementedError("Lab 9.5: refuse while the queues are closed, and say when they are open")
        self._check_room_to_queue()
        self._queue.append(QueuedMessage(kind, message))

    def _accepts_input(self) -> bool:
        """Whether a message may be queued now, by the queue policy. Called by `_enqueue()`."""
        if self._policy.outlive_run:
            raise NotImplementedError("Lab 9.6: queues that outlive a run never close")
        raise NotImplementedError("Lab 9.5: run-owned queues are open from the claim to the cancel or the end")

    def _take(self, kind: Literal["steering", "follow_up"]) -> list[QueuedMessage]:
        """Take what a boundary may take of this kind, oldest first.

        Called by the loop, once at a boundary for each kind it reads there, and where a run starts.
        """
        # Lab 9.5: take the waiting messages of this kind out of the queue
        taken: list[QueuedMessage] = []
        # Lab 9.6: agent-owned queues give one message a boundary
        pass
        for each in taken:
            self._queue.remove(each)
        return taken

    def _joining_steering(self) -> list[QueuedMessage]:
        """Take the steering that was queued while idle and joins the prompt, right after its message.

        Called by `prompt()`, once nothing can refuse the run any more.
        """
        # Lab 9.6: take what waits
        return []

    def _with_dropped(self, result: RunResult) -> RunResult:
        """The result, with the messages that end with their run listed in it, and taken out of the queue.

        Called by `_settle()` before anything is told: what it returns is what `run_end` and the stream tell.
        """
        # Lab 9.5: empty a run-owned queue into the result
        return result

    def _fits(self, new: int) -> bool:
        """Whether this many new messages fit beside what is owned and what is queued, a pair for each that waits.

        Ask before anything is taken out of the queue: what waits is counted there, and not among `new`.
        """
        return len(self._messages) + new + 2 * len(self._queue) <= self._limits.owned

    def _check_room_for_run(self, inputs: int) -> None:
        """Raise AgentLimitError unless this many new messages and an answer to them fit.

        Called before anything is taken out of the queue: by `prompt()` with 1, by `continue_()` with 0 where it says
        nothing new.
        """
        # Lab 9.9: refuse a run that could not end
        pass

    def _check_room_to_queue(self) -> None:
        """Raise AgentLimitError unless one more message can be queued, and answered later. Called by `_enqueue()`."""
        # Lab 9.9: refuse a message now that could not be read later
        pass

    def _admit(self, message: AssistantMessage) -> None:
        """Called by the loop before a response is adopted; raising AgentLimitError fails the run and runs no tool."""
        # Lab 9.9: the response, its results and the answer to them fit beside what is queued
        pass

    def _limit_error(self, what: str) -> AgentLimitError:
        return AgentLimitError(
            f"{what}; clear_queues() frees what waits, and a new Agent with fewer `messages` is the way on"
        )

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event from now on, in registration order, after the state has taken it in.

        It is called in the loop's thread and must not block. What it raises is recorded and hurts nobody. If it
        returns an awaitable, that is awaited beside the run, one at a time and in order, until the agent is
        closed. The function returned ends this registration and no other; calling it again does nothing.
        """
        registered: Subscription | None = Subscription(listener, self._owner, self._errors)
        self._subscriptions.append(registered)

        def unsubscribe() -> None:
            nonlocal registered  # None once it has ended
            raise NotImplementedError("Lab 9.3: end this registration once, and forget the listener")

        return unsubscribe

    def _publish(self, run: ActiveRun, event: AgentEvent) -> None:
        """Dispatch the event, or let it wait until the one being dispatched has reached every listener."""
        if type(event) is TurnEndEvent or type(event) is MessageAcceptedEvent:
            self._messages = event.messages
        if self._dispatching or self._events:  # the latter when a dispatch was interrupted
            self._events.append((run, event))
        if self._dispatching:
            return
        self._dispatching = True
        try:
            if not self._events:
                self._dispatch(run, event)
            while self._events:
                self._dispatch(*self._events.popleft())
        finally:
            self._dispatching = False

    def _dispatch(self, run: ActiveRun, event: AgentEvent) -> None:
        """Bring one event to the state, then to every listener that is subscribed at this moment, and to the stream.

        A listener that another one unsubscribes meanwhile still hears this event. Readers of the stream are tasks of
        their own and look later. Called by `_publish()`, one event after the other.
        """
        raise NotImplementedError("Lab 9.2: the state first, then the listeners there are now, then the stream")

    def _notify(self, subscription: Subscription, event: AgentEvent) -> None:
        """Call one listener with the event. Called by `_dispatch()`; it should not raise."""
        # Lab 9.3: a listener that raises is recorded, and the next one hears the event
        returned = subscription.listener(event)
        if returned is not None and inspect.isawaitable(returned):
            self._await_in_order(subscription, event, returned)

    def _await_in_order(self, subscription: Subscription, event: AgentEvent, returned: Awaitable[Any]) -> None:
        """Have what an async listener returned awaited beside the run, after everything it returned before."""
        raise NotImplementedError("Lab 9.8: hand it to the one worker of this registration")

    async def aclose(self) -> None:
        """Cancel the active run, wait until it has settled, end the listeners' workers, and start nothing more.

        Inside `async with`, the workers end with the block. Raises RuntimeError when called from a tool, model or
        async listener of this agent, which would wait for itself.
        """
        if self._owner.is_around:
            raise RuntimeError(
                "aclose() inside a run or a listener of this agent would wait for itself; call cancel() here instead"
            )
        self._closed = True
        if self._active is not None:
            self._active.signal.cancel("the agent was closed")
            await self._active.stream.result()
        await self._owner.cancel_tasks()

    async def __aenter__(self) -> Self:
        self._check_open()
        await self._owner.open()
        return self

    async def __aexit__(self, exc_type: type[BaseException] | None, *rest: object) -> None:
        """Leave the block: wait for a cancelled run to settle; after an error, end its task as well."""
        self._closed = True
        try:
            if exc_type is None:
                await self.aclose()
        finally:
            await self._owner.close()


async def wait_idle(agent: Agent) -> None:
    """Return once no run is active: at once when idle. For any number of waiters."""
    raise NotImplementedError("Lab 9.10: wait for run_end with public state and events alone, and look again on waking")
