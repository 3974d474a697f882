"""The Agent against plain lists: whatever is done in whatever order, both say the same.

Hypothesis picks what to do next: a caller prompts, steers, cancels …, the model answers, a tool finishes. An event
loop in a thread of its own does it and goes on until nothing in it can run, so that every step ends in one known
place: idle, waiting for the model, or waiting for tools. Then the Agent is compared with `ReferenceAgent`.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
import trio.testing
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from puppets import Puppets
from reference import ReferenceAgent, Refused
from stage import recorded, texts, unpaired

from course.agent import (
    AGENT_OWNED,
    RUN_OWNED,
    Agent,
    AgentEvent,
    CourseAgentError,
    Done,
    Limits,
    QueuePolicy,
    RunEndEvent,
    ToolRegistry,
    call,
    say,
)

NARROW = Limits(queued=3, owned=24, turn=4)  # a few steps reach them
WIDE = Limits(queued=6, owned=1000, turn=4)
MAX_STEPS = 3

SETTINGS = settings(
    max_examples=80,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # the machine is shared
)


def in_phase(phase: str) -> Callable[[AgentMachine], bool]:
    return lambda machine: machine.reference.phase == phase


class AgentMachine(RuleBasedStateMachine):
    """What can be done to an Agent, done to the real one and to the reference."""

    listeners = Bundle("listeners")

    def __init__(self, policy: QueuePolicy, backend: str, in_block: bool) -> None:
        super().__init__()
        self.policy, self.in_block = policy, in_block
        self.exits = ExitStack()
        self.portal = self.exits.enter_context(start_blocking_portal(backend))
        self.puppets = Puppets()
        self.said: list[str] = []  # every text that the agent took
        self.cleared: list[str] = []
        self.heard: list[tuple[list[AgentEvent], int, int | None]] = []  # by whom, from which event to which

    @initialize(limits=st.sampled_from([NARROW, WIDE]))
    def make(self, limits: Limits) -> None:
        self.limits = limits
        self.reference = ReferenceAgent(self.policy, limits, MAX_STEPS)
        self.agent = Agent(
            model=self.puppets,
            tools=ToolRegistry([self.puppets.work]),
            queues=self.policy,
            limits=limits,
            max_steps=MAX_STEPS,
        )
        self.events = recorded(self.agent)
        if self.in_block:
            self.exits.enter_context(self.portal.wrap_async_context_manager(self.agent))
        else:
            self.exits.callback(self.portal.call, self.agent.aclose)

    def do(self, act: Callable[[], Any]) -> Any:
        """Do it in the loop, and return once nothing in the loop can run; its refusal by name, or what it gave."""

        async def do() -> Any:
            try:
                given = act()
            except CourseAgentError as error:
                given = type(error).__name__
            await settled()
            return given

        return self.portal.call(do)

    def say(self, expect: Callable[[str], None], act: Callable[[str], object]) -> None:
        """Say a new text both ways. Both take it, or both refuse it for the same reason."""
        text = f"m{len(self.said)}"
        refusal = expected_refusal(lambda: expect(text))
        given = self.do(lambda: act(text))
        if refusal is None:
            self.said.append(text)
            assert not isinstance(given, str)
        else:
            assert given == refusal

    # The caller

    @rule()
    def prompt(self) -> None:
        self.say(self.reference.prompt, self.agent.prompt)

    @rule()
    def continue_(self) -> None:
        refusal = expected_refusal(self.reference.continue_)
        given = self.do(self.agent.continue_)
        assert given == refusal if refusal else not isinstance(given, str)

    @rule()
    def steer(self) -> None:
        self.say(lambda text: self.reference.enqueue("steering", text), self.agent.steer)

    @rule()
    def follow_up(self) -> None:
        self.say(lambda text: self.reference.enqueue("follow_up", text), self.agent.follow_up)

    @rule()
    def clear_queues(self) -> None:
        expected = self.reference.clear_queues()
        given = self.do(self.agent.clear_queues)
        assert [(each.kind, each.message.text) for each in given] == expected
        self.cleared += [text for _, text in expected]

    @precondition(lambda self: self.reference.phase != "model" or len(self.said) % 3 == 0)  # let requests live a while
    @rule()
    def cancel(self) -> None:
        assert self.do(self.agent.cancel) == self.reference.cancel()

    # The model and the tools

    @precondition(in_phase("model"))
    @rule(answer=st.sampled_from(["text", "text", "fails", 1, 2, 3]))
    def model_does(self, answer: str | int) -> None:
        self.model_answers(answer)

    def model_answers(self, answer: str | int) -> None:
        if answer == "text":
            self.reference.answer("ok")
            chunks = say("ok")
        elif answer == "fails":
            self.reference.fail()
            chunks = None
        else:  # this many calls
            ids = [f"c{len(self.puppets.requests)}.{place}" for place in range(int(answer))]
            self.reference.ask_for(ids)
            chunks = [chunk for id in ids for chunk in call(id, "work", id=id)[:-1]] + [Done("tool_use")]
        self.do(lambda: self.puppets.answer(chunks))

    @precondition(in_phase("tools"))
    @rule(data=st.data())
    def tool_finishes(self, data: st.DataObject) -> None:
        self.finish(data.draw(st.sampled_from(self.reference.open_calls)))

    def finish(self, id: str) -> None:
        self.reference.finish(id)
        self.do(lambda: self.puppets.finish(id))

    @rule(steps=st.integers(1, 6))
    def run_goes_on(self, steps: int) -> None:
        """Several of the above at once, so that runs also come to their end."""
        for _ in range(steps):
            if self.reference.phase == "model":
                self.model_answers("text")
            elif self.reference.phase == "tools":
                self.finish(self.reference.open_calls[-1])

    # The listeners

    @rule(target=listeners, asynchronous=st.booleans())
    def subscribe(self, asynchronous: bool) -> tuple[int, Callable[[], None]]:
        heard: list[AgentEvent] = []

        async def listen(event: AgentEvent) -> None:
            heard.append(event)

        unsubscribe = self.do(lambda: self.agent.subscribe(listen if asynchronous else heard.append))
        self.heard.append((heard, len(self.events), None))
        return len(self.heard) - 1, unsubscribe

    @rule(listener=consumes(listeners), times=st.integers(1, 2))
    def unsubscribe(self, listener: tuple[int, Callable[[], None]], times: int) -> None:
        place, unsubscribe = listener
        for _ in range(times):
            self.do(unsubscribe)
        heard, first, _ = self.heard[place]
        self.heard[place] = (heard, first, len(self.events))

    # What must always agree

    @invariant()
    def both_agree(self) -> None:
        self.transcript_and_queue_are_the_same()
        self.status_is_the_same()
        self.runs_ended_the_same_way_and_each_once()
        self.the_model_saw_the_same_and_nothing_broken()
        self.events_are_numbered_without_gaps_and_runs_do_not_mix()
        self.every_listener_heard_what_happened_while_it_listened()
        self.nothing_said_is_lost_or_doubled()

    def transcript_and_queue_are_the_same(self) -> None:
        assert texts(self.agent.messages) == self.reference.transcript
        assert [(each.kind, each.message.text) for each in self.agent.queued] == self.reference.queue
        assert self.agent.room == self.reference.room()
        assert len(self.agent.messages) <= self.limits.owned
        assert unpaired(self.agent.messages) == ""

    def status_is_the_same(self) -> None:
        running = self.reference.phase != "idle"
        state = self.agent.state
        assert self.agent.is_running == running
        assert (state.status, state.active_run_id is not None) == ("running" if running else "idle", running)
        assert sorted(state.pending_call_ids) == (
            sorted(self.reference.open_calls) if self.reference.phase == "tools" else []
        )
        if not running:
            assert state.messages == self.agent.messages
            assert state.last_status == (self.reference.ends[-1][0] if self.reference.ends else None)

    def runs_ended_the_same_way_and_each_once(self) -> None:
        ends = [event for event in self.events if isinstance(event, RunEndEvent)]
        assert [
            (end.result.status, [(each.kind, each.message.text) for each in end.result.dropped]) for end in ends
        ] == self.reference.ends
        assert [end.run_id for end in ends] == [f"run-{place + 1}" for place in range(len(ends))]

    def the_model_saw_the_same_and_nothing_broken(self) -> None:
        assert [texts(request.messages) for request in self.puppets.requests] == self.reference.requests
        assert self.puppets.complaints == []

    def events_are_numbered_without_gaps_and_runs_do_not_mix(self) -> None:
        place, run = 0, 0
        for event in self.events:
            if event.type == "run_start":
                place, run = 0, run + 1
            assert (event.run_id, event.sequence) == (f"run-{run}", place)
            place += 1

    def every_listener_heard_what_happened_while_it_listened(self) -> None:
        for heard, first, end in self.heard:
            assert heard == self.events[first:end]
        assert self.agent.subscriber_errors == ()

    def nothing_said_is_lost_or_doubled(self) -> None:
        found = [text.removeprefix("u:") for text in texts(self.agent.messages) if text.startswith("u:")]
        found += [each.message.text for each in self.agent.queued]
        found += [text for _, dropped in self.reference.ends for _, text in dropped]
        assert Counter(found + self.cleared) == Counter(self.said)

    def teardown(self) -> None:
        running = self.reference.phase != "idle"
        self.portal.call(self.puppets.finish)  # closing waits for tools
        self.exits.close()
        assert not self.agent.is_running
        assert self.agent.state.status == "idle"
        assert unpaired(self.agent.messages) == ""
        ends = [event for event in self.events if isinstance(event, RunEndEvent)]
        assert len(ends) == len(self.reference.ends) + running


def expected_refusal(act: Callable[[], None]) -> str | None:
    try:
        act()
    except Refused as refused:
        return refused.args[0]
    return None


async def settled() -> None:
    """Return once no task of this loop can go on by itself."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        await trio.testing.wait_all_tasks_blocked()
        return
    # anyio's wait_all_tasks_blocked() sleeps between its looks; what asyncio has ready to run can be seen
    await asyncio.sleep(0)
    while loop._ready:  # type: ignore[attr-defined]
        await asyncio.sleep(0)


@pytest.mark.parametrize("policy", [AGENT_OWNED, RUN_OWNED], ids=["agent-owned", "run-owned"])
@pytest.mark.parametrize(
    ("backend", "in_block"),
    [("asyncio", True), ("asyncio", False), ("trio", True)],
    ids=["asyncio", "asyncio-bare", "trio"],
)
def test_an_agent_does_what_plain_lists_predict(policy: QueuePolicy, backend: str, in_block: bool) -> None:
    machine: Any = partial(AgentMachine, policy, backend, in_block)
    run_state_machine_as_test(machine, settings=SETTINGS)
