"""Every error this package raises, in one tree."""

from __future__ import annotations


class CourseAgentError(Exception):
    """The root of the tree. `code` names the kind of error for programs; the text is for people."""

    code = "AGENT_ERROR"


class MessageError(CourseAgentError, ValueError):
    """A value that cannot be part of a message: not strict JSON, or not the shape of a message. Names the path."""

    code = "MESSAGE_INVALID"


class TranscriptError(CourseAgentError, ValueError):
    """Messages in which a tool call has no result, or something stands between a call and its result."""

    code = "TRANSCRIPT_UNPAIRED"


class ResponseError(CourseAgentError):
    """A model's stream that does not make one message. `code` says what was wrong with it:

    `RESPONSE_ENDED_EARLY` Done never came. `RESPONSE_AFTER_DONE` something came after it. `RESPONSE_ERROR` its stop
    reason was "error". `RESPONSE_BAD_CHUNK` something was no chunk, or no message can hold it.
    `RESPONSE_DUPLICATE_CALL` a call id came twice. `RESPONSE_UNKNOWN_CALL` arguments came for a call that never
    started. `RESPONSE_BAD_ARGUMENTS` a call's arguments are no JSON object. `RESPONSE_TOO_MANY_CALLS` there were more
    than 128 calls.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class ToolDefinitionError(CourseAgentError, TypeError):
    """A function that cannot become a tool, or a name that a registry holds already."""

    code = "TOOL_DEFINITION"


class ToolArgumentsError(CourseAgentError, ValueError):
    """Arguments that do not fit a tool's schema. Names the path."""

    code = "TOOL_ARGUMENTS"


class ScriptError(CourseAgentError):
    """A ScriptedModel that was asked for more responses than its script holds."""

    code = "SCRIPT_EXHAUSTED"


class AgentBusyError(CourseAgentError):
    """`prompt()` or `continue_()` while a run is active. Nothing was queued and nothing changed."""

    code = "AGENT_BUSY"


class AgentIdleError(CourseAgentError):
    """Something that needs an active run, or work to continue with, and there is none."""

    code = "AGENT_IDLE"


class AgentLimitError(CourseAgentError):
    """A message for which there is no room. It was refused; nothing changed."""

    code = "AGENT_MESSAGE_LIMIT"


class AgentClosedError(CourseAgentError):
    """An Agent that was closed, or left with `async with`."""

    code = "AGENT_CLOSED"


def error_text(error: BaseException) -> str:
    """The error's text, or its type's name where it has none; always text that a message can hold."""
    try:
        text = str(error)
    except Exception:  # a broken __str__ must not hide that something failed
        text = ""
    return (text or type(error).__name__).encode("utf-8", "backslashreplace").decode()
