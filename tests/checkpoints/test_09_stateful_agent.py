"""The contract of checkpoint 09: one Agent, many runs.

A test's name is a promise that your `agent.py` keeps. The text beside an assert says what was expected and why;
pytest shows what came. Models follow a script and tests wait for events, so a wrong order is wrong every time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import anyio.lowlevel
import msgspec
import pytest
from agent import Agent, AgentState, reduce_agent_state, wait_idle

from course.agent import (
    RUN_OWNED,
    AgentEvent,
    AssistantMessage,
    AssistantMessageEvent,
    Chunk,
    CourseAgentError,
    EventStream,
    Limits,
    Message,
    MessageAcceptedEvent,
    ModelRequest,
    QueuedMessage,
    QueuePolicy,
    RunEndEvent,
    RunResult,
    RunStartEvent,
    ScriptedModel,
    Signal,
    Text,
    TextDeltaEvent,
    ToolCall,
    ToolEndEvent,
    ToolRegistry,
    ToolResultMessage,
    ToolSkippedEvent,
    Transcript,
    TurnEndEvent,
    UserMessage,
    call,
    encode_messages,
    say,
    tool,
)

pytestmark = pytest.mark.anyio  # async tests run on asyncio and on trio


class Held:
    """A model's answer that is held back: `asked` is set by the request, and the test sets `release`."""

    def __init__(self, chunks: list[Chunk]) -> None:
        self.chunks = chunks
        self.asked = anyio.Event()
        self.release = anyio.Event()

    async def __call__(self, request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        self.asked.set()
        await self.release.wait()
        for chunk in self.chunks:
            yield chunk


async def breaks(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
    """A model's answer that fails half-way."""
    yield say("Half of")[0]
    raise ConnectionError("the line is dead")


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def said(messages: Iterable[Message]) -> list[str]:
    """The messages in short: "user: Hi", "assistant: calls add", "result c1: 3", "assistant: Three."."""
    return [_in_short(message) for message in messages]


def _in_short(message: Message) -> str:
    if isinstance(message, UserMessage):
        return f"user: {message.text}"
    if isinstance(message, ToolResultMessage):
        return f"{'error' if message.is_error else 'result'} {message.call_id}: {message.text}"
    if message.stop_reason == "error":
        return f"assistant failed: {message.error}"
    return f"assistant: {message.text or 'calls ' + ', '.join(call.name for call in message.calls)}"


def fields(state: AgentState) -> dict[str, object]:
    """A state field by field, its messages in short."""
    return {**msgspec.structs.asdict(state), "messages": said(state.messages)}


def types(events: Iterable[AgentEvent]) -> list[str]:
    """What kind each event is of: "run_start", "text_delta"."""
    return [event.type for event in events]


def waiting(messages: Iterable[QueuedMessage]) -> list[str]:
    """Queued messages in short: "steering: Tests first."."""
    return [f"{each.kind}: {each.message.text}" for each in messages]


ACCEPTED = "it was accepted"


def refusal(ask: Callable[[], object]) -> str:
    """What asking raises, as "AgentBusyError: its text"; ACCEPTED when it raises nothing."""
    try:
        ask()
    except CourseAgentError as error:
        return f"{type(error).__name__}: {error}"
    return ACCEPTED


def spoil(messages: Any) -> None:
    """Try to change messages that were handed out, as a careless caller would."""
    with suppress(AttributeError):
        messages.append(UserMessage("forged"))
    for message in messages:
        for name, forged in (("text", "forged"), ("content", ()), ("is_error", True)):
            with suppress(AttributeError):
                setattr(message, name, forged)
        with suppress(AttributeError, TypeError, IndexError):
            message.details[1]["title"] = "forged"
    with suppress(TypeError, IndexError):
        messages[0] = UserMessage("forged")


@asynccontextmanager
async def in_time(
    never: str = "the run does not settle, and whoever awaits its stream waits with it",
) -> AsyncIterator[None]:
    """A safety net: nothing here takes 2 seconds, so whoever waits that long waits for what never comes."""
    with anyio.move_on_after(2) as limit:
        yield
    if limit.cancelled_caught:
        raise TimeoutError(f"after 2 seconds the test still waits: {never}")


async def a_while() -> None:
    """Let everybody go on who can: whoever was woken gets there, and whoever sleeps, sleeps on."""
    for _ in range(50):
        await anyio.lowlevel.checkpoint()


async def comes(event: anyio.Event) -> bool:
    """Whether the event is set, after a second at the latest."""
    with anyio.move_on_after(1):
        await event.wait()
    return event.is_set()


# Lab 9.1: reduce events to state


@pytest.mark.lab("9.1")
def test_the_events_of_a_run_take_the_state_from_idle_to_running_and_back() -> None:
    """Each event gives a new state: `msgspec.structs.replace(state, name=value)` makes a changed copy."""
    history = Transcript([UserMessage("Hi"), AssistantMessage((Text("Hello."),))])
    asked = history.append(UserMessage("1 + 2, and 3 + 4?"))
    calls = AssistantMessage((ToolCall("c1", "add"), ToolCall("c2", "add")), "tool_use")
    results = [ToolResultMessage("c1", "add", "3"), ToolResultMessage("c2", "add", "7")]
    complete = asked.append(calls, *results)
    idle = AgentState(messages=history, last_status="failed")

    running = reduce_agent_state(idle, RunStartEvent("run-1", 0, asked))
    assert fields(running) == fields(AgentState("running", asked, "run-1", "failed")), (
        "run_start makes its run the active one and shows its input; how the last run ended stays to be read"
    )

    first = reduce_agent_state(running, TextDeltaEvent("run-1", 1, "Add"))
    written = reduce_agent_state(first, TextDeltaEvent("run-1", 2, "ing."))
    assert written.streaming_text == "Adding.", "text deltas add up, so that a screen can show the answer as it grows"

    called = reduce_agent_state(written, AssistantMessageEvent("run-1", 3, calls))
    assert called.streaming_text == "", "the whole message is there now; its pieces would be shown twice"
    assert called.pending_call_ids == ("c1", "c2"), "every call of the message waits for its result"

    one_left = reduce_agent_state(called, ToolEndEvent("run-1", 4, results[1]))
    assert one_left.pending_call_ids == ("c1",), (
        "a result ends the waiting of its own call, whichever of them is done first"
    )
    none_left = reduce_agent_state(one_left, ToolSkippedEvent("run-1", 5, results[0]))
    assert none_left.pending_call_ids == (), "a skipped call has its result too, and waits no more"

    turned = reduce_agent_state(none_left, TurnEndEvent("run-1", 6, complete))
    assert said(turned.messages) == said(asked), (
        "messages move at run_start and run_end alone; a turn is shown by its own events"
    )

    half = reduce_agent_state(turned, TextDeltaEvent("run-1", 7, "Three, and"))
    ended = reduce_agent_state(half, RunEndEvent("run-1", 8, RunResult("cancelled", complete)))
    assert fields(ended) == fields(AgentState("idle", complete, None, "cancelled")), (
        "run_end leaves the run's whole transcript and how it ended, and nothing that belonged to the run"
    )

    seen = (idle, running, called, one_left)
    assert [state.pending_call_ids for state in seen] == [(), (), ("c1", "c2"), ("c1",)], (
        "a state that somebody holds never changes: each event gives a new one"
    )


@pytest.mark.lab("9.1")
def test_a_late_event_of_run_1_changes_nothing_once_run_2_is_active() -> None:
    """Any event but run_start gives back the very state it was given, unless it belongs to the active run."""
    old = Transcript([UserMessage("Run 1")])
    state = reduce_agent_state(AgentState(), RunStartEvent("run-2", 0, Transcript([UserMessage("Run 2")])))
    state = reduce_agent_state(state, TextDeltaEvent("run-2", 1, "Answer 2"))
    late = [
        TextDeltaEvent("run-1", 7, "late"),
        AssistantMessageEvent("run-1", 8, AssistantMessage((ToolCall("c1", "add"),))),
        ToolEndEvent("run-1", 9, ToolResultMessage("c1", "add", "3")),
        RunEndEvent("run-1", 10, RunResult("failed", old)),
    ]
    for event in late:
        after = reduce_agent_state(state, event)
        assert fields(after) == fields(state), f"run-2 is active, and a late {event.type} of run-1 would overwrite it"
        assert after is state, "where nothing changes, the very state comes back: who draws it can see that at a glance"

    ended = reduce_agent_state(state, RunEndEvent("run-2", 2, RunResult("completed", old)))
    after = reduce_agent_state(ended, late[0])
    assert fields(after) == fields(ended), "when no run is active, every event but run_start is late"


# Lab 9.2: two runs, one owner, a synchronous guard


@pytest.mark.lab("9.2")
async def test_two_runs_share_one_transcript_and_a_second_owner_is_refused_at_once() -> None:
    """While a run is active `prompt()` raises AgentBusyError at once; a run that has settled owns nothing."""
    first = Held(call("c1", "add", a=1, b=2))
    model = ScriptedModel([first, say("Three."), call("c2", "add", a=3, b=4), breaks])
    async with in_time(), Agent(model=model, tools=ToolRegistry([add]), queues=RUN_OWNED) as agent:
        stream = agent.prompt("1 + 2?")
        assert agent.is_running, "prompt() claims before it returns, or two callers could both get in"
        came = refusal(lambda: agent.prompt("Me too!"))
        assert "AgentBusyError" in came, "run 1 owns the transcript, so a second prompt() raises before any await"
        assert "steer()" in came, "only the caller knows what the second text is for: the error names steer()"
        assert "follow_up()" in came, "only the caller knows what the second text is for: the error names follow_up()"

        first.release.set()
        result = await stream
        assert (result.status, result.final_text) == ("completed", "Three."), "the refused prompt() disturbs nothing"
        assert not agent.is_running, "a run that has settled owns nothing"
        events = [event async for event in stream]
        assert " ".join(types(events)) == (
            "run_start message_accepted tool_call assistant_message tool_start tool_end turn_end "
            "text_delta assistant_message turn_end run_end"
        ), "the stream tells the whole run, from run_start to exactly one run_end"
        assert [event.sequence for event in events] == list(range(11)), "events are numbered from 0 without gaps"

        failed = await agent.prompt("3 + 4?")
        run_1 = ["user: 1 + 2?", "assistant: calls add", "result c1: 3", "assistant: Three."]
        run_2 = ["user: 3 + 4?", "assistant: calls add", "result c2: 7"]
        assert said(model.requests[2].messages) == [*run_1, "user: 3 + 4?"], "run 2 goes on from what run 1 has left"
        assert failed.status == "failed", "the model broke, and nobody else's ending may hide that"
        kept = [*run_1, *run_2, "assistant failed: the line is dead"]
        assert said(agent.messages) == kept, (
            "a failure keeps the calls and results before it, and the failed answer itself: take over result.messages"
        )
        assert said(failed.messages) == kept, "the result and the agent tell of one transcript"
        assert len(model.requests) == 4, "four requests: nothing is queued for the caller that was refused"


@pytest.mark.lab("9.2")
async def test_a_run_end_listener_may_start_run_2_and_the_end_of_run_1_leaves_it_alone() -> None:
    """A run is claimed before run_start is told, and its owner is cleared before run_end is."""
    second = Held(say("Two."))
    model = ScriptedModel([say("One."), second])
    heard_early: list[AgentEvent] = []
    heard_late: list[AgentEvent] = []
    owned: list[list[str]] = []
    shown: list[tuple[str, str]] = []
    refused: list[str] = []
    came: list[str] = []

    async with in_time(), Agent(model=model, queues=RUN_OWNED) as agent:

        def early(event: AgentEvent) -> None:
            heard_early.append(event)
            if "run" in event.type:
                shown.append((event.type, agent.state.status))
            if event.type == "run_start":
                owned.append(said(agent.messages))
            if event.type == "run_start" and not refused:
                refused.append(refusal(lambda: agent.prompt("Before you!")))
            if event.type == "run_end" and not came:
                came.append(refusal(lambda: runs.append(agent.prompt("Second"))))

        agent.subscribe(early)
        agent.subscribe(heard_late.append)
        runs = [agent.prompt("First")]
        assert "AgentBusyError" in refused[0], "a run is claimed before run_start tells of it"
        await runs[0]
        assert came == [ACCEPTED], "run_end is told when the owner is gone, so its listener may start the next run"
        await second.asked.wait()
        assert "AgentBusyError" in refusal(lambda: agent.prompt("Third")), (
            "run 2 is active: run 1 clears its own record before run_end, and never the record of run 2"
        )
        assert said(agent.messages) == ["user: First", "assistant: One.", "user: Second"], (
            "run 2 owns the transcript: run 1 keeps its result before it tells of run_end, and writes nothing after it"
        )
        second.release.set()
        result = await runs[1]
        assert said(model.requests[1].messages) == ["user: First", "assistant: One.", "user: Second"], (
            "a run's input is fixed inside prompt(), before anybody hears of it"
        )
        assert owned == [["user: First"], ["user: First", "assistant: One.", "user: Second"]], (
            "agent.messages holds a run's input from its claim on, and so when run_start tells of it"
        )
        assert shown == [("run_start", "running"), ("run_end", "idle")] * 2, (
            "agent.state has taken the event in before any listener hears of it, or they would draw what was"
        )
        for heard in (heard_early, heard_late):
            assert [kind for kind in types(heard) if "run" in kind] == ["run_start", "run_end"] * 2, (
                "start1 end1 start2 end2 for every listener: an event waits until the one before has reached all"
            )
            assert len({event.run_id for event in heard}) == 2, "each run has an id of its own"
        assert said(result.messages) == ["user: First", "assistant: One.", "user: Second", "assistant: Two."], (
            "run 2 keeps what run 1 has left"
        )


# Lab 9.3: three exits that share nothing


@pytest.mark.lab("9.3")
async def test_listeners_hear_an_event_after_the_state_and_a_bad_one_hurts_nobody() -> None:
    """What a listener raises is recorded, and the others hear the event; unsubscribing ends one registration."""
    model = ScriptedModel([say("One."), say("Two."), say("Three.")])
    seen: list[tuple[str, str | None]] = []
    once: list[str] = []
    ended_by_another: list[str] = []
    heard: list[AgentEvent] = []
    good = heard.append

    async with in_time(), Agent(model=model, queues=RUN_OWNED) as agent:

        def bad(event: AgentEvent) -> None:
            seen.append((agent.state.status, agent.state.active_run_id))
            if event.type == "text_delta":
                raise RuntimeError("a bug in the listener")

        def leaves(event: AgentEvent) -> None:
            once.append(event.type)
            leave()
            end_another()

        agent.subscribe(bad)
        leave = agent.subscribe(leaves)
        end_another = agent.subscribe(lambda event: ended_by_another.append(event.type))
        end_first, end_second = agent.subscribe(good), agent.subscribe(good)

        stream = agent.prompt("1?")
        result = await stream
        events = [event async for event in stream]
        assert seen[0] == ("running", events[0].run_id), "the state takes run_start in before any listener hears of it"
        assert seen[-1] == ("idle", None), "the state takes run_end in before any listener hears of it"
        assert (result.status, result.error) == ("completed", None), "a listener's bug is not the run's"
        assert once == ["run_start"], "who unsubscribes hears nothing more"
        assert ended_by_another == ["run_start"], (
            "an event is for all who were subscribed when it came; who is unsubscribed meanwhile hears it, and no other"
        )
        assert types(heard) == [kind for kind in types(events) for _ in range(2)], (
            "each registration hears every event, whoever raises or leaves before it"
        )
        recorded = agent.subscriber_errors
        assert [error.event_type for error in recorded] == ["text_delta"], "what a listener raises is recorded"
        assert "a bug in the listener" in recorded[0].error, "the record says what was raised"

        end_first()
        end_first()
        heard.clear()
        stream = agent.prompt("2?")
        await stream
        assert types(heard) == types([event async for event in stream]), (
            "the function was subscribed twice: unsubscribing ends one registration, and a second call ends nothing"
        )
        assert len(recorded) == 1, "records that were handed out do not grow afterwards"
        assert len(agent.subscriber_errors) == 2, "the second error is in the agent's own record"

        end_second()
        heard.clear()
        await agent.prompt("3?")
        assert heard == [], "both registrations ended"


@pytest.mark.lab("9.3")
async def test_what_leaves_the_agent_cannot_be_used_to_change_it() -> None:
    """Whoever holds what an agent handed out can read it, and change nothing in the agent."""
    pages: list[Any] = ["one", {"title": "two"}]

    @tool
    async def read() -> list[Any]:
        """Read the pages."""
        return pages

    @tool
    async def odd() -> object:
        """Return something that is not JSON."""
        return lambda: None

    model = ScriptedModel([[*call("c1", "read"), *call("c2", "odd")], say("Done."), say("Again.")])
    async with in_time(), Agent(model=model, tools=ToolRegistry([read, odd]), queues=RUN_OWNED) as agent:
        unsubscribe = agent.subscribe(lambda event: spoil(getattr(event, "messages", ())))
        stream = agent.prompt("Read.")
        result = await stream
        unsubscribe()
        read_result, odd_result = result.messages[2:4]
        assert isinstance(odd_result, ToolResultMessage)
        assert (odd_result.call_id, odd_result.name, odd_result.is_error) == ("c2", "odd", True), (
            "a result that cannot be kept becomes an error result of the same call: no call stays without one"
        )
        assert (result.status, agent.is_running) == ("completed", False), "the run goes on after it, and ends"

        before = encode_messages(result.messages).decode()
        pages.append("three")
        for exit in (agent.messages, agent.state.messages, result.messages):
            spoil(exit)
        exits = {"messages": agent.messages, "state": agent.state.messages, "result": result.messages}
        for name, exit in exits.items():
            assert encode_messages(exit).decode() == before, (
                f"{name} hands out what can be read by all and changed by nobody"
            )

        await agent.prompt("Again.")
        told = model.requests[2].messages
        assert encode_messages(told[:-1]).decode() == before, (
            "run 2 tells the model what happened, not what somebody made of it"
        )
        assert said(told[-1:]) == ["user: Again."], "the new prompt follows it"
        assert read_result in agent.messages, "what the tool returned is kept as it was when the tool returned it"
        assert agent.subscriber_errors == (), "nobody raised, so nothing is recorded"


# Lab 9.4: cancel this run, not the next


@pytest.mark.lab("9.4")
async def test_a_cancel_before_the_first_request_sends_none_and_spares_run_2() -> None:
    """`cancel()` sets the Signal of the active run and of no other; with no run it gives False and raises nothing."""
    signals: list[Signal] = []

    async def answers(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        signals.append(signal)
        for chunk in say("Here."):
            yield chunk

    model = ScriptedModel([answers])
    accepted: list[bool] = []
    async with in_time(), Agent(model=model, queues=RUN_OWNED) as agent:

        def stop_run_1(event: AgentEvent) -> None:
            if event.type == "run_start" and not accepted:
                accepted.append(agent.cancel("never mind"))

        assert agent.cancel("nothing runs yet") is False, "with no run there is nothing that cancel() could stop"
        agent.subscribe(stop_run_1)
        stream = agent.prompt("First")
        assert accepted == [True], "a run can be cancelled as soon as run_start tells of it"
        assert agent.is_running, "cancel() asks, and ends nothing itself: the run stays active until it has settled"
        assert agent.cancel("again") is False, "the run was asked before: True says that this very call was accepted"
        result = await stream
        assert (result.status, result.reason) == ("cancelled", "never mind"), "the first cancel says why"
        assert len(model.requests) == 0, "cancelled before it asked, so the model is never asked"
        told = types([event async for event in stream])
        assert told.count("run_end") == 1, "the run has one end: cancel() does not end it a second time"
        assert said(agent.messages) == ["user: First"], "what was accepted stays in the transcript"

        second = await agent.prompt("Second")
        assert (second.status, second.reason) == ("completed", None), "the cancel was of run 1 and ended with it"
        assert not signals[0].cancelled, "each run has a fresh Signal; a used one would stop every later run"


@pytest.mark.lab("9.4")
async def test_model_and_tools_share_one_signal_and_every_call_keeps_its_result() -> None:
    """Model and tools look at one Signal, and a call that was asked for keeps its result, also in a cancelled run."""
    signals: list[Signal] = []
    both_run = anyio.Event()

    @tool
    async def search(signal: Signal) -> str:
        """Search until stopped."""
        signals.append(signal)
        if len(signals) == 3:
            both_run.set()
        await signal.wait()
        return f"stopped: {signal.reason}"

    async def calls(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        signals.append(signal)
        for chunk in [*call("c1", "search")[:-1], *call("c2", "search")]:
            yield chunk

    async def deaf(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        agent.cancel("too slow")
        for chunk in say("An answer all the same."):
            yield chunk

    model = ScriptedModel([calls, deaf])
    async with in_time(), Agent(model=model, tools=ToolRegistry([search]), queues=RUN_OWNED) as agent:
        stream = agent.prompt("Search.")
        await both_run.wait()
        agent.cancel("enough")
        result = await stream
        assert (result.status, result.reason) == ("cancelled", "enough"), "an accepted cancel ends the run cancelled"
        assert len(set(map(id, signals))) == 1, (
            "one Signal reaches model and tools, or they do not all hear of the cancel"
        )
        assert said(agent.messages) == [
            "user: Search.",
            "assistant: calls search, search",
            "result c1: stopped: enough",
            "result c2: stopped: enough",
        ], "running tools are waited for and each call has its one result: a model refuses a transcript without"
        assert len(model.requests) == 1, "no request follows a cancel"

        result = await agent.prompt("Again.")
        assert (result.status, result.reason) == ("cancelled", "too slow"), (
            "a model that ignores the signal changes nothing"
        )
        assert said(agent.messages)[4:] == ["user: Again."], "an answer that comes after the cancel is not adopted"


# Lab 9.5: queues are read at boundaries


@pytest.mark.lab("9.5")
async def test_steering_enters_in_order_after_the_whole_round_of_tools() -> None:
    """A message waits in the queue until a turn has all its results; then `_take()` hands it over, oldest first."""
    release, fast_is_done = anyio.Event(), anyio.Event()

    @tool
    async def slow() -> str:
        """Take long."""
        await release.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Be quick."""
        fast_is_done.set()
        return "fast"

    model = ScriptedModel([[*call("c1", "slow"), *call("c2", "fast")], say("Both.")])
    async with in_time(), Agent(model=model, tools=ToolRegistry([slow, fast]), queues=RUN_OWNED) as agent:
        stream = agent.prompt("Check the README.")
        await fast_is_done.wait()
        agent.steer("Tests first.")
        agent.steer("Then the docs.")
        assert said(agent.messages) == ["user: Check the README."], "queued is not said yet: it waits for the boundary"
        release.set()
        result = await stream
        assert said(model.requests[1].messages) == [
            "user: Check the README.",
            "assistant: calls slow, fast",
            "result c1: slow",
            "result c2: fast",
            "user: Tests first.",
            "user: Then the docs.",
        ], "results stand in call order and nothing comes between them; then all steering, oldest first, each its own"
        assert (result.status, result.final_text) == ("completed", "Both."), "steering goes on with the same run"
        doors = [event.kind async for event in stream if isinstance(event, MessageAcceptedEvent)]
        assert doors == ["prompt", "steering", "steering"], "each message that enters the transcript is told of"


@pytest.mark.lab("9.5")
async def test_steering_comes_before_the_run_may_end_and_follow_ups_after_it() -> None:
    """At a turn's end steering is read first, and follow-ups only when the model would stop."""
    calls, first = Held(call("c1", "add", a=1, b=2)), Held(say("Three."))
    model = ScriptedModel([calls, first, say("In words: three."), say("Committed.")])
    async with in_time(), Agent(model=model, tools=ToolRegistry([add]), queues=RUN_OWNED) as agent:
        stream = agent.prompt("1 + 2?")
        await calls.asked.wait()
        agent.follow_up("Then commit.")
        calls.release.set()
        await first.asked.wait()
        assert said(model.requests[1].messages)[-1] == "result c1: 3", (
            "a follow-up waits until the model would stop, and after a tool call it has not stopped"
        )
        agent.steer("In words!")
        first.release.set()
        result = await stream
        assert said(model.requests[2].messages)[-2:] == ["assistant: Three.", "user: In words!"], (
            "steering that came while the model wrote its last answer is read before the run may end, alone"
        )
        assert said(model.requests[3].messages)[-2:] == ["assistant: In words: three.", "user: Then commit."], (
            "the follow-up is read once the model would stop and no steering waits"
        )
        assert (result.final_text, waiting(result.dropped)) == ("Committed.", []), (
            "all was read in one run; nothing is left"
        )


@pytest.mark.lab("9.5")
async def test_a_run_that_is_cancelled_or_fails_reads_no_queue_and_leaves_none() -> None:
    """A run-owned queue is open while its run is: else AgentIdleError is raised, and its end drops what waits."""
    held, broken = Held(call("c1", "add", a=1, b=2)), Held([])
    model = ScriptedModel([held, broken, say("Fresh."), say("Then."), say("Quick.")])
    at_the_end: list[str] = []
    told: list[RunResult] = []
    later: list[EventStream[AgentEvent, RunResult]] = []
    async with in_time(), Agent(model=model, tools=ToolRegistry([add]), queues=RUN_OWNED) as agent:

        def ask(event: AgentEvent) -> None:
            if event.type == "tool_end":
                agent.cancel("stop")
            if isinstance(event, RunEndEvent):
                told.append(event.result)
                at_the_end.append(refusal(lambda: agent.steer("At the end")))

        def goes_on(event: AgentEvent) -> None:
            if event.type == "run_end" and not later:
                later.append(agent.prompt("And then"))
                agent.steer("Quickly.")

        agent.subscribe(ask)
        came = refusal(lambda: agent.steer("Too early"))
        assert "AgentIdleError" in came, "no run is there to read it, and it must not wait for one unnoticed"
        assert "only while a run is active" in came, "the error says when messages can be queued"

        stream = agent.prompt("1 + 2?")
        await held.asked.wait()
        agent.follow_up("A")
        agent.steer("B")
        held.release.set()
        result = await stream
        assert len(model.requests) == 1, (
            "cancel is checked before any queue is read, so no steering goes on with the run"
        )
        assert waiting(result.dropped) == ["follow_up: A", "steering: B"], "what nobody read is listed, oldest first"
        assert waiting(told[0].dropped) == waiting(result.dropped), "run_end and the stream tell the same result"
        assert said(result.messages)[-1] == "result c1: 3", "what nobody read is not in the transcript"

        stream = agent.prompt("Next")
        await broken.asked.wait()
        agent.steer("C")
        broken.release.set()
        result = await stream
        assert (result.status, waiting(result.dropped)) == ("failed", ["steering: C"]), (
            "a failed run reads none either; it lists what waited in it, and nothing that an earlier run has left"
        )

        stream = agent.prompt("Last")
        agent.cancel("stop")
        assert "AgentIdleError" in refusal(lambda: agent.steer("Too late")), "a cancelled run will read nothing more"
        await stream
        agent.subscribe(goes_on)
        result = await agent.prompt("Really the last")
        assert [text for text in said(result.messages) if text.startswith("user")] == [
            "user: 1 + 2?",
            "user: Next",
            "user: Last",
            "user: Really the last",
        ], "nothing that was queued in one run is said in a later one"
        assert waiting(result.dropped) == [], "what a listener of run_end queues belongs to the run that it has started"
        last = await later[0]
        assert said(last.messages)[-4:] == [
            "user: And then",
            "assistant: Then.",
            "user: Quickly.",
            "assistant: Quick.",
        ], "a run drops what waits before run_end is told, and takes nothing from the run that comes after it"
        assert all("AgentIdleError" in came for came in at_the_end), (
            "run_end tells of a run that is over and reads no more"
        )
        assert len(at_the_end) == 5, "each run tells of its end once"


# Lab 9.6: queues that outlive a run


@pytest.mark.lab("9.6")
async def test_a_boundary_takes_one_message_and_steering_goes_before_follow_ups() -> None:
    """With AGENT_OWNED queues a boundary takes one message of a kind, and steering comes first."""
    held = Held(call("c1", "add", a=1, b=2))
    model = ScriptedModel([held, say("1"), say("2"), say("3"), say("4")])
    async with in_time(), Agent(model=model, tools=ToolRegistry([add])) as agent:
        stream = agent.prompt("1 + 2?")
        await held.asked.wait()
        agent.follow_up("C")
        agent.follow_up("D")
        agent.steer("A")
        agent.steer("B")
        held.release.set()
        await stream
        ends = [said(request.messages)[-2:] for request in model.requests[1:]]
        assert ends == [
            ["result c1: 3", "user: A"],
            ["assistant: 1", "user: B"],
            ["assistant: 2", "user: C"],
            ["assistant: 3", "user: D"],
        ], "each boundary takes one message, so that each has an answer of its own: steering, then follow-ups"


@pytest.mark.lab("9.6")
async def test_one_steering_that_was_queued_while_idle_joins_the_next_prompt() -> None:
    """With AGENT_OWNED queues steering may be queued while idle, and one of it joins the next prompt."""
    model = ScriptedModel([say("Bonjour."), say("Hi."), say("Bye.")])
    async with in_time(), Agent(model=model) as agent:
        agent.follow_up("Say goodbye.")
        agent.steer("In French.")
        agent.steer("No, in English.")
        assert not agent.is_running, "queueing starts no run"
        stream = agent.prompt("Hello!")
        await stream
        assert said(model.requests[0].messages) == ["user: Hello!", "user: In French."], (
            "one steering goes right behind the prompt, before the first request"
        )
        events = [event async for event in stream]
        first = events[0]
        assert isinstance(first, RunStartEvent)
        assert said(first.messages) == ["user: Hello!", "user: In French."], "run_start tells the run's whole input"
        entered = [event for event in events if isinstance(event, MessageAcceptedEvent)]
        doors = [event.kind for event in entered]
        assert doors[:2] == ["prompt", "steering"], "a message that joins a prompt is told as what it was queued as"
        assert [said(event.messages) for event in entered[:2]] == [said(first.messages)] * 2, (
            "what a run starts with enters together: the event of each message shows the whole input"
        )
        assert doors[2:] == ["steering", "follow_up"], "the rest waits for its boundary"

    model = ScriptedModel([say("1")])
    async with in_time(), Agent(model=model, queues=QueuePolicy(outlive_run=True, one_at_a_time=False)) as agent:
        agent.steer("A")
        agent.steer("B")
        await agent.prompt("Hi")
        assert said(model.requests[0].messages) == ["user: Hi", "user: A", "user: B"], (
            "how many a boundary takes is said by one_at_a_time; outlive_run says only who owns what waits"
        )


@pytest.mark.lab("9.6")
async def test_what_waits_survives_cancel_failure_and_max_steps_until_it_is_cleared() -> None:
    """What an agent owns waits on, however a run ends, until a boundary takes it or `clear_queues()` hands it back."""
    held = Held(say("Never."))
    model = ScriptedModel([held, breaks, say("Fine.")])
    async with in_time(), Agent(model=model, max_steps=1) as agent:
        stream = agent.prompt("1")
        await held.asked.wait()
        agent.steer("Now!")
        assert "AgentBusyError" in refusal(lambda: agent.prompt("2")), "run 1 is active"
        assert waiting(agent.clear_queues()) == ["steering: Now!"], (
            "a prompt() that is refused takes nothing that waits"
        )
        agent.follow_up("A")
        agent.cancel("stop")
        assert refusal(lambda: agent.follow_up("B")) == ACCEPTED, "what is said after a cancel waits for the next run"
        results = [await stream]
        assert waiting(agent.queued) == ["follow_up: A", "follow_up: B"], (
            "the Agent owns what waits, so it waits still when a run is over"
        )
        results += [await agent.prompt("2"), await agent.prompt("3")]
        assert [waiting(result.dropped) for result in results] == [[], [], []], (
            "nothing is dropped: the Agent owns what waits"
        )
        assert [result.status for result in results] == ["cancelled", "failed", "max_steps"], (
            "out of steps with input waiting is max_steps: the run would have gone on"
        )
        assert waiting(agent.clear_queues()) == ["follow_up: A", "follow_up: B"], (
            "all of it waits still, oldest first, what came after the cancel too; nothing is lost or doubled"
        )
        assert waiting(agent.clear_queues()) == [], "whoever clears the queues has taken the messages with them"


# Lab 9.7: continue from the tail


@pytest.mark.lab("9.7")
@pytest.mark.parametrize("tail", ["question", "tool_result", "failed_answer"])
async def test_continue_asks_again_where_the_last_message_has_no_answer_yet(tail: str) -> None:
    """After a user message, a tool result or a failed answer `continue_()` asks the model again, and adds nothing."""
    asked = UserMessage("1 + 2?")
    called = AssistantMessage((ToolCall("c1", "add", {"a": 1, "b": 2}),), "tool_use")
    histories: dict[str, list[Message]] = {
        "question": [asked],
        "tool_result": [asked, called, ToolResultMessage("c1", "add", "3")],
        "failed_answer": [asked, AssistantMessage((), "error", "the line is dead")],
    }
    history = histories[tail]
    model = ScriptedModel([say("Three."), say("Bye.")])
    async with in_time(), Agent(model=model, messages=history) as agent:
        agent.follow_up("Say goodbye.")
        result = await agent.continue_()
        known = [line for line in said(history) if "failed" not in line]
        assert said(model.requests[0].messages) == known, "the model is asked as it was, and told nothing new"
        after = ["assistant: Three.", "user: Say goodbye.", "assistant: Bye."]
        assert said(result.messages) == [*said(history), *after], "a follow-up waits until the model would stop"


@pytest.mark.lab("9.7")
async def test_continue_reads_steering_first_and_needs_a_follow_up_after_a_finished_answer() -> None:
    """`continue_()` takes queued steering first; after a finished answer a follow-up has to be queued."""
    history = [UserMessage("Hi"), AssistantMessage((Text("Hello."),))]
    model = ScriptedModel([say("1"), say("2"), say("3")])
    async with in_time(), Agent(model=model, messages=history) as agent:
        agent.follow_up("B")
        agent.steer("A")
        await agent.continue_()
        assert said(model.requests[0].messages) == ["user: Hi", "assistant: Hello.", "user: A"], (
            "queued steering is said first, whatever the transcript ends with"
        )
        assert said(model.requests[1].messages)[-1] == "user: B", "the follow-up waits until the model would stop"

        agent.follow_up("C")
        stream = agent.continue_()
        await stream
        assert said(model.requests[2].messages)[-2:] == ["assistant: 2", "user: C"], (
            "after a finished answer a follow-up is what a run can go on with"
        )
        doors = [event.kind async for event in stream if isinstance(event, MessageAcceptedEvent)]
        assert doors == ["follow_up"], "it is told of as the follow-up it was queued as"
        assert waiting(agent.clear_queues()) == [], "a message that was said has left the queue"

    model = ScriptedModel([say("Hello.")])
    async with in_time(), Agent(model=model) as agent:
        agent.steer("Hi")
        assert refusal(agent.continue_) == ACCEPTED, "steering is looked at before the tail, and there may be none"


@pytest.mark.lab("9.7")
async def test_continue_refuses_what_it_cannot_go_on_with_and_changes_nothing() -> None:
    """With nothing to go on with, `continue_()` raises AgentIdleError, and nothing has changed."""
    held = Held(say("Hello."))
    model = ScriptedModel([held])
    async with in_time(), Agent(model=model) as agent:
        agent.follow_up("Later.")
        assert "AgentIdleError" in refusal(agent.continue_), "an empty transcript has nothing to go on from"
        assert waiting(agent.clear_queues()) == ["follow_up: Later."], "a refusal takes nothing out of the queues"

        stream = agent.prompt("Hi")
        await held.asked.wait()
        agent.steer("Wait.")
        assert "AgentBusyError" in refusal(agent.continue_), "continue_() starts a run, and one is active"
        assert waiting(agent.clear_queues()) == ["steering: Wait."], "a refusal takes nothing out of the queues"
        held.release.set()
        await stream
        assert "AgentIdleError" in refusal(agent.continue_), "the last answer is finished, and nothing waits to be said"
        assert (agent.is_running, len(model.requests)) == (False, 1), "a refused continue_() starts nothing"
        assert said(agent.messages) == ["user: Hi", "assistant: Hello."], "a refused continue_() says nothing"


# Lab 9.8: async listeners and cancel races


@pytest.mark.lab("9.8")
async def test_an_async_listener_hears_in_order_and_nobody_waits_for_it() -> None:
    """What an async listener returns is awaited beside the run, one event after the other."""
    gate, other_done, done = anyio.Event(), anyio.Event(), anyio.Event()
    heard: list[AgentEvent] = []
    async with in_time(), Agent(model=ScriptedModel([say("Hello.")])) as agent:

        async def slow(event: AgentEvent) -> None:
            if event.type == "run_start":
                await gate.wait()
            heard.append(event)
            if event.type == "run_end":
                done.set()

        async def other(event: AgentEvent) -> None:
            if event.type == "run_end":
                other_done.set()

        agent.subscribe(slow)
        agent.subscribe(other)
        stream = agent.prompt("Hi")
        result = await stream
        assert result.status == "completed", "the run awaits no listener: a slow one would hold it up"
        assert await comes(other_done), (
            "what each async listener returns is awaited, on its own: a slow one holds up no other"
        )
        assert types(heard) == [], "a listener gets its next event when it is done with the last"
        gate.set()
        assert await comes(done), "all that an async listener returned is awaited, also after the run"
        assert types(heard) == types([event async for event in stream]), "every event is heard, in the run's order"


@pytest.mark.lab("9.8")
async def test_an_async_listener_may_await_its_own_run_and_what_it_raises_is_recorded() -> None:
    """An async listener is awaited in a task of its own, so it may wait for the run it listens to."""
    done = anyio.Event()
    answers: list[str | None] = []
    async with in_time(), Agent(model=ScriptedModel([say("Hello.")])) as agent:

        async def awaits_the_run(event: AgentEvent) -> None:
            if event.type == "run_start":
                answers.append((await stream).final_text)
            if event.type == "run_end":
                done.set()

        async def raises(event: AgentEvent) -> None:
            if event.type == "text_delta":
                raise RuntimeError("a bug in the listener")

        agent.subscribe(raises)
        agent.subscribe(awaits_the_run)
        stream = agent.prompt("Hi")
        await stream
        assert await comes(done), "a listener that awaits the run it hears of waits beside it, and gets to its end"
        assert answers == ["Hello."], "a listener that awaits the run it hears of gets the result, and blocks nobody"
        assert [error.event_type for error in agent.subscriber_errors] == ["text_delta"], (
            "what an async listener raises is recorded beside what others raise, and hurts nobody"
        )


@pytest.mark.lab("9.8")
async def test_cancel_is_true_exactly_when_it_was_accepted() -> None:
    """`cancel()` gives True once a run, and only while the run's outcome is open."""
    answers: dict[str, bool] = {}
    done = anyio.Event()
    held = Held(say("Never."))
    async with in_time(), Agent(model=ScriptedModel([say("Hello."), held])) as agent:

        def decided(event: AgentEvent) -> None:
            if event.type == "run_end":
                answers["in run_end"] = agent.cancel("too late")

        async def later(event: AgentEvent) -> None:
            if event.type == "run_end":
                answers["after run_end"] = agent.cancel("too late")
                done.set()

        answers["before any run"] = agent.cancel("nothing to stop")
        agent.subscribe(decided)
        unsubscribe = agent.subscribe(later)
        result = await agent.prompt("Hi")
        assert await comes(done), "an async listener hears of run_end"
        assert answers == {"before any run": False, "in run_end": False, "after run_end": False}, (
            "True promises a cancelled run; with no run, or once its outcome is decided, nobody can keep that promise"
        )
        assert (result.status, result.reason) == ("completed", None), "a cancel that was refused changes nothing"

        unsubscribe()
        stream = agent.prompt("Again")
        await held.asked.wait()
        accepted = [agent.cancel("first"), agent.cancel("second")]
        assert accepted == [True, False], "one cancel is accepted; whoever comes second has not stopped the run"
        assert (await stream).reason == "first", "the reason is that of the accepted cancel"


@pytest.mark.lab("9.8")
@pytest.mark.parametrize("other", ["completed", "max_steps", "failed"])
async def test_an_accepted_cancel_wins_over_the_ending_that_races_it(other: str) -> None:
    """A run whose cancel was accepted ends cancelled, whatever else its task came to."""

    async def breaks_once_cancelled(request: ModelRequest, signal: Signal) -> AsyncIterator[Chunk]:
        agent.cancel("stop")
        raise ConnectionError("the line is dead")
        yield  # makes this a generator, as a model's stream is

    answers: dict[str, Any] = {
        "completed": say("Hello."),
        "max_steps": call("c1", "add", a=1, b=2),
        "failed": breaks_once_cancelled,
    }
    endings: list[str] = []
    done = anyio.Event()
    model = ScriptedModel([answers[other]])
    async with in_time(), Agent(model=model, tools=ToolRegistry([add]), max_steps=1) as agent:

        def stop(event: AgentEvent) -> None:
            if event.type == "turn_end":
                agent.cancel("stop")

        async def ends(event: AgentEvent) -> None:
            if isinstance(event, RunEndEvent):
                endings.append(event.result.status)
                done.set()

        agent.subscribe(stop)
        agent.subscribe(ends)
        result = await agent.prompt("Hi")
        assert await comes(done), "an async listener hears of run_end"
        assert (result.status, result.reason) == ("cancelled", "stop"), (
            f"the cancel was accepted, so it wins, though the run was about to end {other}"
        )
        assert endings == ["cancelled"], "there is one ending, and run_end tells the same as the result"


# Lab 9.9: limits that refuse early


@pytest.mark.lab("9.9")
async def test_a_full_queue_refuses_the_next_message_and_keeps_what_waits() -> None:
    """A message that finds no room raises AgentLimitError, and what waits is kept."""
    async with in_time(), Agent(model=ScriptedModel([say("Hello.")]), limits=Limits(queued=2)) as agent:
        assert agent.room == 2, "two may wait and none does"
        agent.steer("A")
        agent.follow_up("B")
        assert agent.room == 0, "two may wait and two do"
        assert "AgentLimitError" in refusal(lambda: agent.steer("C")), (
            "a queue without an end hides that nobody reads it"
        )
        assert "AgentLimitError" in refusal(lambda: agent.follow_up("C")), "both kinds of message share the places"
        assert waiting(agent.clear_queues()) == ["steering: A", "follow_up: B"], "a refusal changes nothing"
        assert agent.room == 2, "clear_queues() makes room"
        result = await agent.prompt("Hi")
        assert result.status == "completed", "a refusal does not make the agent unusable"


@pytest.mark.lab("9.9")
async def test_a_message_is_refused_when_it_is_queued_and_not_stranded_later() -> None:
    """Whoever is let in must be answered later: room is kept for every message that waits and for its answer."""
    history = [UserMessage("Hi"), AssistantMessage((Text("Hello."),))]
    held = Held(say("1"))
    model = ScriptedModel([held, say("2"), say("3")])
    async with in_time(), Agent(model=model, messages=history, limits=Limits(owned=8, turn=3)) as agent:
        assert agent.room == 3, "8 may be owned and 2 are: 3 pairs of a message and its answer fit"
        stream = agent.prompt("One")
        await held.asked.wait()
        assert agent.room == 1, "3 are owned and the active turn may add 3: 1 pair fits beside them"
        agent.steer("Two")
        assert "AgentLimitError" in refusal(lambda: agent.steer("Three")), "it would wait for room that never comes"
        held.release.set()
        result = await stream
        assert result.status == "completed", "what was accepted has its room"

        agent.steer("Three")
        assert "AgentLimitError" in refusal(lambda: agent.prompt("Four")), "6 are owned, and the last pair is promised"
        assert (agent.is_running, len(agent.messages)) == (False, 6), "a refused prompt() claims nothing, adds nothing"
        assert waiting(agent.queued) == ["steering: Three"], "a refused prompt() takes nothing that waits"
        result = await agent.continue_()
        assert (result.status, result.error, result.final_text) == ("completed", None, "3"), (
            "the message that waits was promised its place and one for its answer; an answer without calls is one"
        )

        assert "AgentLimitError" in refusal(lambda: agent.prompt("Four")), "a full transcript takes no prompt"
        assert "AgentLimitError" in refusal(lambda: agent.follow_up("Four")), "nor anything that would need one later"
        said_by_users = [line for line in said(agent.messages) if line.startswith("user")]
        assert said_by_users == ["user: Hi", "user: One", "user: Two", "user: Three"], "a full agent can be read"
        assert not agent.is_running, "a full agent is idle"

    unanswered = [*history, UserMessage("One")]
    async with in_time(), Agent(model=ScriptedModel([]), messages=unanswered, limits=Limits(owned=3)) as agent:
        assert "AgentLimitError" in refusal(agent.continue_), "the answer that it asks for would have no place"


@pytest.mark.lab("9.9")
async def test_a_response_whose_calls_do_not_fit_runs_no_tool_and_is_not_adopted() -> None:
    """Before a tool runs, the response, its results and the answer to them must fit beside what waits."""
    ran: list[str] = []

    @tool
    async def note(text: str) -> str:
        """Note something."""
        ran.append(text)
        return "noted"

    two = [*call("c1", "note", text="a"), *call("c2", "note", text="b")]
    three = [*two, *call("c3", "note", text="c")]
    model = ScriptedModel([three, two, say("Noted."), say("Bye.")])
    tools = ToolRegistry([note])
    async with in_time(), Agent(model=model, tools=tools, limits=Limits(owned=7)) as agent:
        assert agent.room == 3, "3 pairs fit into 7"
        agent.follow_up("Say goodbye.")
        stream = agent.prompt("Note these.")
        assert agent.room == 0, "an active turn may add 129, which leaves no room, and room is never below 0"
        result = await stream
        assert (result.status, result.error and result.error.code) == ("failed", "AGENT_MESSAGE_LIMIT"), (
            "1 owned + 1 response + 3 results + 1 answer + 2 for what waits are more than 7"
        )
        assert ran == [], "the check comes before any tool: its effect could not be written down"
        assert said(agent.messages) == ["user: Note these."], "a response without room for its results is not adopted"
        assert not agent.is_running, "the run is over, and the agent can be used"

        result = await agent.continue_()
        assert (result.status, result.final_text) == ("completed", "Bye."), (
            "with 2 results it is exactly 7, and the follow-up finds the room that was kept for it"
        )
        assert (sorted(ran), len(agent.messages)) == (["a", "b"], 7), "what fits is run"


# Lab 9.10 (optional): wait_idle from public parts


class PublicParts:
    """What wait_idle needs of an Agent, and nothing else. Counts how often one looks and how many listen."""

    def __init__(self, agent: Agent) -> None:
        self._parts = agent
        self.looks = 0
        self.listening: set[object] = set()

    def subscribe(self, listener: Callable[[AgentEvent], object]) -> Callable[[], None]:
        registration, unsubscribe = object(), self._parts.subscribe(listener)
        self.listening.add(registration)

        def end() -> None:
            self.listening.discard(registration)
            unsubscribe()

        return end

    @property
    def is_running(self) -> bool:
        self.looks += 1
        return self._parts.is_running

    @property
    def state(self) -> AgentState:
        self.looks += 1
        return self._parts.state


@pytest.mark.lab("9.10")
async def test_wait_idle_returns_for_every_waiter_once_the_run_has_settled() -> None:
    """`wait_idle()` returns at once when nothing runs, and for every waiter once the run has settled."""
    answer, never = Held(say("Hello.")), Held(say("Never."))
    woken: list[tuple[str, bool]] = []
    async with (
        in_time("wait_idle() does not return, or never lets others run"),
        Agent(model=ScriptedModel([answer, never, Held([])])) as agent,
    ):
        parts = PublicParts(agent)

        async def wait(name: str) -> None:
            await wait_idle(cast(Agent, parts))
            woken.append((name, agent.is_running))

        await wait("before any run")
        assert woken == [("before any run", False)], "an idle agent is not waited for"

        for held, end in ((answer, answer.release.set), (never, agent.cancel)):
            woken.clear()
            stream = agent.prompt("Hi")
            async with anyio.create_task_group() as group:
                group.start_soon(wait, "one")
                group.start_soon(wait, "two")
                await held.asked.wait()
                await a_while()
                assert woken == [], "a run is active, so nobody is told that the agent is idle"
                looks = parts.looks
                await a_while()
                assert parts.looks == looks, "it waits for an event: nothing happens, so there is nothing to look at"
                end()
                await stream
                await a_while()
                assert sorted(woken) == [("one", False), ("two", False)], (
                    "the run's end wakes all who wait; one that sleeps between two looks learns of it too late"
                )
            assert len(parts.listening) == 0, "it is done, so its listener is unsubscribed"

        agent.prompt("Hi")
        async with anyio.create_task_group() as group:
            group.start_soon(wait, "gives up")
            await a_while()
            group.cancel_scope.cancel()
        assert len(parts.listening) == 0, (
            "it was cancelled while it waited, and its listener is unsubscribed all the same"
        )


@pytest.mark.lab("9.10")
async def test_wait_idle_looks_again_because_a_listener_may_have_started_run_2() -> None:
    """Who is woken looks again: a listener of run_end may have started the next run."""
    second = Held(say("Two."))
    woken: list[bool] = []
    async with (
        in_time("wait_idle() does not return, or never lets others run"),
        Agent(model=ScriptedModel([say("One."), second])) as agent,
    ):
        parts = PublicParts(agent)

        async def wait() -> None:
            await wait_idle(cast(Agent, parts))
            woken.append(agent.is_running)

        def start_run_2(event: AgentEvent) -> None:
            if event.type == "run_end" and len(runs) == 1:
                runs.append(agent.prompt("Second"))

        agent.subscribe(start_run_2)
        runs = [agent.prompt("First")]
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await second.asked.wait()
            await a_while()
            assert woken == [], "run 1 has ended and run 2 is active: an agent that works is not idle"
            looks = parts.looks
            await a_while()
            assert parts.looks == looks, "it waits for the end of run 2 as it did for that of run 1, and looks no more"
            second.release.set()
        assert woken == [False], "run 2 has settled, so the waiter returns"
