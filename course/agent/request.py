"""One model request: it ends completed, failed or cancelled, and the model's stream is closed on every path."""

from __future__ import annotations

import msgspec
from anyio import CancelScope, get_cancelled_exc_class

from course.agent.errors import CourseAgentError, error_text
from course.agent.events import Emit, TextDeltaEvent, ToolCallEvent
from course.agent.messages import AssistantMessage
from course.agent.model import Model, ModelRequest, TextDelta, ToolCallStart
from course.agent.response import ResponseBuilder
from course.agent.signal import Signal
from course.agent.tasks import is_failure


class Completed(msgspec.Struct, frozen=True):
    """The model gave one whole message."""

    message: AssistantMessage


class Failed(msgspec.Struct, frozen=True):
    """The model raised, or its stream made no message. Nothing of it is kept."""

    code: str
    text: str


class Cancelled(msgspec.Struct, frozen=True):
    """The signal was set before the message was whole. Nothing of it is kept."""


Outcome = Completed | Failed | Cancelled


async def run_request(model: Model, request: ModelRequest, *, signal: Signal, emit: Emit) -> Outcome:
    """Ask the model once. Emits `text_delta` and `tool_call` as they stream; never raises what the model raises.

    The outcome is decided from the signal, not from which exception surfaced: a model that swallows the cancel,
    or answers in spite of it, ends cancelled all the same; a cancellation that nobody asked for (of a subtask of
    the model's own) is a failure, as is SystemExit. Only a cancellation from outside and KeyboardInterrupt are
    passed on.
    """
    builder = ResponseBuilder()
    failure: Failed | None = None
    try:
        with signal.scope():
            await _read(model, request, builder, signal=signal, emit=emit)
    except get_cancelled_exc_class() as error:
        if not is_failure(error):
            raise
        failure = Failed("MODEL_FAILED", "the model's stream was cancelled, and not by this run")
    except BaseException as error:
        if not is_failure(error):
            raise
        failure = _failed(error)
    if signal.cancelled:
        return Cancelled()
    return failure or _finish(builder)


async def _read(model: Model, request: ModelRequest, builder: ResponseBuilder, *, signal: Signal, emit: Emit) -> None:
    """Read the model's stream into the builder until it is done or the signal is set, then close the stream."""
    chunks = aiter(model.stream(request, signal=signal))
    try:
        async for chunk in chunks:
            if signal.cancelled:
                break
            builder.add(chunk)
            if isinstance(chunk, TextDelta):
                emit(TextDeltaEvent, chunk.text)
            elif isinstance(chunk, ToolCallStart):
                emit(ToolCallEvent, chunk.call_id, chunk.name)
            elif builder.done:
                break
    finally:
        close = getattr(chunks, "aclose", None)
        if close is not None:
            with CancelScope(shield=True):  # unshielded, a cancel would cut the model's own clean-up short
                await close()


def _finish(builder: ResponseBuilder) -> Outcome:
    try:
        return Completed(builder.finish())
    except CourseAgentError as error:
        return _failed(error)


def _failed(error: BaseException) -> Failed:
    code = error.code if isinstance(error, CourseAgentError) else "MODEL_FAILED"
    return Failed(code, error_text(error))
