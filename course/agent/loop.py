"""The stateless agent loop: turns until the model stops, with steering and follow-ups at the boundaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from course.agent.events import (
    AssistantMessageEvent,
    Emit,
    InputKind,
    MessageAcceptedEvent,
    RunError,
    RunResult,
    RunStatus,
    TurnEndEvent,
)
from course.agent.messages import AssistantMessage, Message, UserMessage
from course.agent.model import Model, ModelRequest
from course.agent.request import Cancelled, Failed, run_request
from course.agent.signal import Signal
from course.agent.tasks import cancel_requests, pass_on_cancellation
from course.agent.tool_round import ToolRound
from course.agent.tools import ToolRegistry, ToolSnapshot
from course.agent.transcript import Transcript

TakeInput = Callable[[], Iterable[UserMessage]]


def _nothing() -> tuple[UserMessage, ...]:
    return ()


def _nobody() -> bool:
    return False


def _admit_all(message: AssistantMessage) -> None:
    pass


async def run_agent_loop(
    context: Iterable[Message],
    *,
    model: Model,
    emit: Emit,
    signal: Signal | None = None,
    tools: ToolRegistry | ToolSnapshot | None = None,
    system: str = "",
    max_steps: int = 16,
    take_steering: TakeInput = _nothing,
    take_follow_ups: TakeInput = _nothing,
    input_waits: Callable[[], bool] = _nobody,
    admit: Callable[[AssistantMessage], None] = _admit_all,
) -> RunResult:
    """Run turns on `context` until the model stops, and return how it ended with the whole transcript.

    Owns nothing after it returns. `emit` is called as an Emitter is, in the loop's task, and must not raise.
    `max_steps` limits the model requests (at least 1). The hooks are called between turns and must not block:
    `take_steering` hands over what should be said before the next request, `take_follow_ups` what should be said
    once the model would stop, `input_waits` tells whether either would hand over anything, and `admit` may
    refuse a response before it is adopted, by raising. What a hook raises is passed on.

    The status is "completed", "max_steps", "cancelled" or "failed" (the model's failure, kept in the transcript
    as an assistant message with stop reason "error"). A cancellation from outside is passed on, after every call
    has its result and `turn_end` has told the transcript. Raises TranscriptError when `context` has a call
    without its result, and ValueError for a `max_steps` below 1.
    """
    if max_steps < 1:
        raise ValueError("max_steps must be at least 1: one request is the least a run can make")
    signal = signal if signal is not None else Signal()
    tools = (tools if tools is not None else ToolRegistry()).snapshot()
    transcript = context if isinstance(context, Transcript) else Transcript(context)
    transcript.check_pairs()
    sent = transcript.without_errors()  # what the model sees, kept beside the record
    stop_reason: str | None = None
    requests = cancel_requests()

    def end(status: RunStatus, **fields: object) -> RunResult:
        return RunResult(status, transcript, stop_reason=stop_reason, reason=signal.reason, **fields)  # type: ignore[arg-type]

    step = 0
    while True:
        step += 1
        if signal.cancelled:
            return end("cancelled")

        # One request. Whatever did not become a whole message is not adopted.
        request = ModelRequest(f"request-{step}", system, sent, tools.specs)
        outcome = await run_request(model, request, signal=signal, emit=emit)
        await pass_on_cancellation(requests)
        if isinstance(outcome, Cancelled):
            return end("cancelled")
        if isinstance(outcome, Failed):
            stop_reason = "error"
            transcript = transcript.append(AssistantMessage((), "error", outcome.text))
            return end("failed", error=RunError(outcome.code, outcome.text))

        # Adopt it, and run its calls. From here on each call gets its result, even when we are cancelled.
        message = outcome.message
        calls = message.calls
        admit(message)
        stop_reason = message.stop_reason
        emit(AssistantMessageEvent, message)
        round = ToolRound(calls, tools, signal=signal, emit=emit)
        try:
            await round.run()
        finally:
            transcript, sent = _extend(transcript, sent, (message, *round.results))
            emit(TurnEndEvent, transcript)

        # The boundary: cancel first, then steering, then (if the model would stop) a follow-up.
        await pass_on_cancellation(requests)
        if signal.cancelled:
            return end("cancelled")
        if step == max_steps:
            more = bool(calls) or input_waits()
            return end("max_steps") if more else end("completed", final_text=message.text)
        taken: list[tuple[InputKind, UserMessage]] = [("steering", each) for each in take_steering()]
        if not calls and not taken:
            taken = [("follow_up", each) for each in take_follow_ups()]
        for kind, each in taken:
            transcript, sent = _extend(transcript, sent, (each,))
            emit(MessageAcceptedEvent, kind, each, transcript)
        if not calls and not taken:
            return end("completed", final_text=message.text)


def _extend(transcript: Transcript, sent: Transcript, messages: tuple[Message, ...]) -> tuple[Transcript, Transcript]:
    """Both with these messages at their end; where nothing is left out they stay one and the same."""
    longer = transcript.append(*messages)
    return longer, longer if sent is transcript else sent.append(*messages)
