"""One run with everything in it, and what must hold after it, however it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

import anyio
import anyio.lowlevel
from stage import StrictModel, texts, unpaired

from course.agent import (
    Agent,
    AgentClosedError,
    AgentEvent,
    AgentIdleError,
    AssistantMessage,
    Chunk,
    ModelRequest,
    QueuePolicy,
    RunEndEvent,
    RunResult,
    RunStream,
    Signal,
    ToolEndEvent,
    ToolRegistry,
    ToolSkippedEvent,
    ToolStartEvent,
    call,
    say,
    tool,
)


@tool
async def slow(steps: int, progress) -> str:
    """Take a few steps."""
    for step in range(steps):
        progress(f"step {step}")
        await anyio.lowlevel.checkpoint()
    return "arrived"


@tool
async def broken() -> str:
    """Fail after a step."""
    await anyio.lowlevel.checkpoint()
    raise ValueError("broken")


@tool
async def patient(signal: Signal) -> str:
    """Wait for a cancel, for a while, and clean up."""
    for _ in range(3):
        if signal.cancelled:
            break
        await anyio.lowlevel.checkpoint()
    await anyio.lowlevel.checkpoint()
    return "cancelled" if signal.cancelled else "not cancelled"


def streamed(*chunks: Chunk) -> Callable[[ModelRequest, Signal], AsyncIterator[Chunk]]:
    """A model's answer that comes chunk by chunk, with a clean-up that takes a step."""

    async def stream(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        try:
            for chunk in chunks:
                yield chunk
                await anyio.lowlevel.checkpoint()
        finally:
            await anyio.lowlevel.checkpoint()

    return stream


class Scene:
    """One agent, one run of it, and what was seen of it. `deaf`: without an async listener."""

    def __init__(self, policy: QueuePolicy, *, deaf: bool = False) -> None:
        self.model = StrictModel(
            [
                streamed(*say("Let me see.")[:1], *call("c1", "slow", steps=3)[:-1], *call("c2", "broken")),
                streamed(*call("c3", "patient")),
                streamed(*say("Looking.")[:1], *call("c4", "talkative")[:-1], *call("c5", "patient")),
            ],
            beyond=say("ok"),
        )
        tools = ToolRegistry([slow, broken, patient, self.talkative])
        self.agent = Agent(model=self.model, tools=tools, queues=policy)
        self.said: list[str] = []
        self.heard: list[AgentEvent] = []
        self.heard_late: list[AgentEvent] = []
        self.agent.subscribe(self.heard.append)
        if not deaf:
            self.agent.subscribe(self.listen)

    async def talkative(self) -> str:
        """Steer the run that it belongs to, where that is possible."""
        await anyio.lowlevel.checkpoint()
        with suppress(AgentIdleError, AgentClosedError):
            self.say(self.agent.steer, "from a tool")
        return "said"

    async def listen(self, event: AgentEvent) -> None:
        await anyio.lowlevel.checkpoint()
        self.heard_late.append(event)

    def say(self, how: Callable[[str], object], text: str) -> None:
        how(text)
        self.said.append(text)

    def start(self) -> RunStream:
        """Start the run, and queue all there is to queue."""
        stream = self.agent.prompt("start")
        for text in ("s1", "s2"):
            self.say(self.agent.steer, text)
        for text in ("f1", "f2"):
            self.say(self.agent.follow_up, text)
        return stream

    @property
    def ends(self) -> list[RunResult]:
        return [event.result for event in self.heard if isinstance(event, RunEndEvent)]

    def check(self) -> None:
        """What must hold after every ending."""
        agent = self.agent
        assert len(self.ends) == 1
        assert [event.sequence for event in self.heard] == list(range(len(self.heard)))
        assert (self.heard[0].type, self.heard[-1].type) == ("run_start", "run_end")
        assert (agent.is_running, agent.state.status, agent.state.pending_call_ids) == (False, "idle", ())
        assert self.ends[0].messages == agent.messages == agent.state.messages
        assert unpaired(agent.messages) == ""
        self.check_tools()
        self.check_texts()
        late = iter(self.heard)
        assert all(event in late for event in self.heard_late)  # in order, none twice
        assert agent.subscriber_errors == ()
        assert self.model.refused == []

    def check_tools(self) -> None:
        """Each call that was adopted ended once; what ended had started, and what was skipped had not."""
        started = [event.call.id for event in self.heard if isinstance(event, ToolStartEvent)]
        ended = [event.result.call_id for event in self.heard if isinstance(event, ToolEndEvent)]
        skipped = [event.result.call_id for event in self.heard if isinstance(event, ToolSkippedEvent)]
        answers = [message for message in self.agent.messages if isinstance(message, AssistantMessage)]
        assert Counter(started) == Counter(ended)
        assert Counter(ended + skipped) == Counter(call.id for answer in answers for call in answer.calls)

    def check_texts(self) -> None:
        """Each text is in one place: in the transcript, in the queue, or among what was dropped."""
        found = [text.removeprefix("u:") for text in texts(self.agent.messages) if text.startswith("u:")]
        found += [each.message.text for each in [*self.agent.queued, *self.ends[0].dropped]]
        assert Counter(found) == Counter(["start", *self.said])

    async def check_the_next_prompt(self) -> None:
        """The agent, or a new one with its messages where it was closed, goes on in front of the strict model."""
        self.model.go_beyond()
        try:
            result = await self.agent.prompt("and on")
        except AgentClosedError:
            async with Agent(model=self.model, messages=self.agent.messages) as successor:
                result = await successor.prompt("and on")
        assert result.status == "completed"
        assert self.model.refused == []
