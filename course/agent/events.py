"""What a run tells of itself: one vocabulary of frozen events, and the result it ends with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import msgspec

from course.agent.messages import AssistantMessage, ToolCall, ToolResultMessage, UserMessage
from course.agent.transcript import Transcript

RunStatus = Literal["completed", "max_steps", "cancelled", "failed"]
InputKind = Literal["prompt", "steering", "follow_up"]


class RunError(msgspec.Struct, frozen=True):
    """Why a run failed. `code` is for programs: `MODEL_FAILED` for what a model raised, or the code of a
    CourseAgentError (a ResponseError, ScriptError or AgentLimitError), or `AGENT_STATE_FAILED` for a fault inside the
    agent. `text` is for people."""

    code: str
    text: str


class QueuedMessage(msgspec.Struct, frozen=True):
    """A message that waits for a boundary, and which kind of waiting it does."""

    kind: InputKind
    message: UserMessage


class RunResult(msgspec.Struct, frozen=True):
    """How a run ended.

    `final_text` is the last answer of a completed run, else None. `stop_reason` is the last answer's, where there
    was one. `messages` is the whole transcript. `error` is set when `status` is "failed". `reason` is the
    cancel's. `dropped` lists queued messages that ended with the run (only with RUN_OWNED queues).
    """

    status: RunStatus
    messages: Transcript
    final_text: str | None = None
    stop_reason: str | None = None
    error: RunError | None = None
    reason: str | None = None
    dropped: tuple[QueuedMessage, ...] = ()


class AgentEvent(msgspec.Struct, frozen=True, tag_field="type"):
    """What all events have: the run they belong to, and their place in it, from 0 without gaps."""

    type: ClassVar[str]
    run_id: str
    sequence: int


class RunStartEvent(AgentEvent, frozen=True, tag="run_start"):
    """A run was accepted. `messages` is its input: the transcript that the first request will see."""

    type: ClassVar[str] = "run_start"
    messages: Transcript


class MessageAcceptedEvent(AgentEvent, frozen=True, tag="message_accepted"):
    """A user message entered the transcript, which is now `messages`. `kind` says by which door.

    The messages that a run starts with enter together: `messages` is the run's whole input in the event of each.
    """

    type: ClassVar[str] = "message_accepted"
    kind: InputKind
    message: UserMessage
    messages: Transcript


class TextDeltaEvent(AgentEvent, frozen=True, tag="text_delta"):
    """The model streamed a piece of text."""

    type: ClassVar[str] = "text_delta"
    text: str


class ToolCallEvent(AgentEvent, frozen=True, tag="tool_call"):
    """The model began to write a tool call. Its arguments are not complete, and nothing runs yet."""

    type: ClassVar[str] = "tool_call"
    call_id: str
    name: str


class AssistantMessageEvent(AgentEvent, frozen=True, tag="assistant_message"):
    """The response is whole and was adopted. Its calls, if it has any, run next."""

    type: ClassVar[str] = "assistant_message"
    message: AssistantMessage


class ToolStartEvent(AgentEvent, frozen=True, tag="tool_start"):
    """A tool starts to run."""

    type: ClassVar[str] = "tool_start"
    call: ToolCall


class ToolProgressEvent(AgentEvent, frozen=True, tag="tool_progress"):
    """A running tool reported something."""

    type: ClassVar[str] = "tool_progress"
    call_id: str
    text: str


class ToolEndEvent(AgentEvent, frozen=True, tag="tool_end"):
    """A tool that started has its result. Ends come in the order of finishing, results in the order of calls."""

    type: ClassVar[str] = "tool_end"
    result: ToolResultMessage


class ToolSkippedEvent(AgentEvent, frozen=True, tag="tool_skipped"):
    """A call that never started, because the run was cancelled first. Its result says so."""

    type: ClassVar[str] = "tool_skipped"
    result: ToolResultMessage


class TurnEndEvent(AgentEvent, frozen=True, tag="turn_end"):
    """A turn is complete: one assistant message and the results of all its calls. `messages` is the transcript."""

    type: ClassVar[str] = "turn_end"
    messages: Transcript


class RunEndEvent(AgentEvent, frozen=True, tag="run_end"):
    """The run is over; this is its last event and its only `run_end`."""

    type: ClassVar[str] = "run_end"
    result: RunResult


class Emitter:
    """Makes the events of one run, numbers them, and hands each to `publish` before it returns.

    `emit(TextDeltaEvent, "Hi")` publishes `TextDeltaEvent(run_id, sequence, "Hi")`.
    """

    __slots__ = ("_publish", "_run_id", "_sequence")

    def __init__(self, run_id: str, publish: Callable[[AgentEvent], None]) -> None:
        self._run_id = run_id
        self._publish = publish
        self._sequence = 0

    def __call__(self, kind: type[AgentEvent], *fields: Any) -> None:
        event = kind(self._run_id, self._sequence, *fields)
        self._sequence += 1
        self._publish(event)


Emit = Callable[..., None]  # what the loop is given: an Emitter, or anything called like one
