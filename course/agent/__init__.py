"""A stateful LLM agent that stays alive, as a library: `from course.agent import Agent, ScriptedModel, say`.

Names are looked up when they are used, so that importing a lower module never imports a higher one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course.agent.agent import Agent as Agent
    from course.agent.agent import AgentState as AgentState
    from course.agent.agent import RunStream as RunStream
    from course.agent.agent import reduce_agent_state as reduce_agent_state
    from course.agent.agent import wait_idle as wait_idle
    from course.agent.errors import AgentBusyError as AgentBusyError
    from course.agent.errors import AgentClosedError as AgentClosedError
    from course.agent.errors import AgentIdleError as AgentIdleError
    from course.agent.errors import AgentLimitError as AgentLimitError
    from course.agent.errors import CourseAgentError as CourseAgentError
    from course.agent.errors import MessageError as MessageError
    from course.agent.errors import ResponseError as ResponseError
    from course.agent.errors import ScriptError as ScriptError
    from course.agent.errors import ToolArgumentsError as ToolArgumentsError
    from course.agent.errors import ToolDefinitionError as ToolDefinitionError
    from course.agent.errors import TranscriptError as TranscriptError
    from course.agent.events import AgentEvent as AgentEvent
    from course.agent.events import AssistantMessageEvent as AssistantMessageEvent
    from course.agent.events import Emitter as Emitter
    from course.agent.events import MessageAcceptedEvent as MessageAcceptedEvent
    from course.agent.events import QueuedMessage as QueuedMessage
    from course.agent.events import RunEndEvent as RunEndEvent
    from course.agent.events import RunError as RunError
    from course.agent.events import RunResult as RunResult
    from course.agent.events import RunStartEvent as RunStartEvent
    from course.agent.events import TextDeltaEvent as TextDeltaEvent
    from course.agent.events import ToolCallEvent as ToolCallEvent
    from course.agent.events import ToolEndEvent as ToolEndEvent
    from course.agent.events import ToolProgressEvent as ToolProgressEvent
    from course.agent.events import ToolSkippedEvent as ToolSkippedEvent
    from course.agent.events import ToolStartEvent as ToolStartEvent
    from course.agent.events import TurnEndEvent as TurnEndEvent
    from course.agent.listeners import SubscriberError as SubscriberError
    from course.agent.loop import run_agent_loop as run_agent_loop
    from course.agent.messages import AssistantMessage as AssistantMessage
    from course.agent.messages import Message as Message
    from course.agent.messages import Text as Text
    from course.agent.messages import ToolCall as ToolCall
    from course.agent.messages import ToolResultMessage as ToolResultMessage
    from course.agent.messages import UserMessage as UserMessage
    from course.agent.messages import decode_message as decode_message
    from course.agent.messages import decode_messages as decode_messages
    from course.agent.messages import encode_message as encode_message
    from course.agent.messages import encode_messages as encode_messages
    from course.agent.messages import freeze_json as freeze_json
    from course.agent.model import Chunk as Chunk
    from course.agent.model import Done as Done
    from course.agent.model import Model as Model
    from course.agent.model import ModelRequest as ModelRequest
    from course.agent.model import ScriptedModel as ScriptedModel
    from course.agent.model import TextDelta as TextDelta
    from course.agent.model import ToolCallDelta as ToolCallDelta
    from course.agent.model import ToolCallStart as ToolCallStart
    from course.agent.model import ToolSpec as ToolSpec
    from course.agent.model import call as call
    from course.agent.model import say as say
    from course.agent.policy import AGENT_OWNED as AGENT_OWNED
    from course.agent.policy import RUN_OWNED as RUN_OWNED
    from course.agent.policy import Limits as Limits
    from course.agent.policy import QueuePolicy as QueuePolicy
    from course.agent.request import run_request as run_request
    from course.agent.response import ResponseBuilder as ResponseBuilder
    from course.agent.response import assemble_response as assemble_response
    from course.agent.signal import Signal as Signal
    from course.agent.streams import EventStream as EventStream
    from course.agent.tools import Tool as Tool
    from course.agent.tools import ToolRegistry as ToolRegistry
    from course.agent.tools import tool as tool
    from course.agent.transcript import Transcript as Transcript

_NAMES = {
    "agent": "Agent AgentState RunStream reduce_agent_state wait_idle",
    "errors": "AgentBusyError AgentClosedError AgentIdleError AgentLimitError CourseAgentError MessageError "
    "ResponseError ScriptError ToolArgumentsError ToolDefinitionError TranscriptError",
    "events": "AgentEvent AssistantMessageEvent Emitter MessageAcceptedEvent QueuedMessage RunEndEvent RunError "
    "RunResult RunStartEvent TextDeltaEvent ToolCallEvent ToolEndEvent ToolProgressEvent ToolSkippedEvent "
    "ToolStartEvent TurnEndEvent",
    "listeners": "SubscriberError",
    "loop": "run_agent_loop",
    "messages": "AssistantMessage Message Text ToolCall ToolResultMessage UserMessage decode_message "
    "decode_messages encode_message encode_messages freeze_json",
    "model": "Chunk Done Model ModelRequest ScriptedModel TextDelta ToolCallDelta ToolCallStart ToolSpec call say",
    "policy": "AGENT_OWNED RUN_OWNED Limits QueuePolicy",
    "request": "run_request",
    "response": "ResponseBuilder assemble_response",
    "signal": "Signal",
    "streams": "EventStream",
    "tools": "Tool ToolRegistry tool",
    "transcript": "Transcript",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
