"""What the parent believes of a process, and what it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal, cast

import msgspec
import pytest

from course.marking.contained import Contained
from course.marking.listen import Heard, Limits, listen
from course.marking.steps import Begin, Done, Finish, Frame, Outcome, Plan, Record, Stopped, encode, mark_in_output

TOKEN = "secret"


class Script:
    """Stands for a process that says what it is told to, and is then gone with `exit_code`."""

    token = TOKEN

    def __init__(self, events: Iterable[bytes | str], exit_code: int | None = 0) -> None:
        self._events = list(events)
        self.exit_code = exit_code
        self.patience: list[float] = []
        self.printed = bytearray()
        self.errors = bytearray(b"last words")

    def receive(self, seconds: float) -> bytes | str:
        self.patience.append(seconds)
        event = self._events.pop(0) if self._events else "gone"
        if isinstance(event, bytes) and b'"finish"' in event:
            number = len(self.patience) - 1
            self.printed += f"printed {number}".encode() + mark_in_output(Finish(TOKEN, number, "", "passed")) + b"more"
        return event

    def stack(self) -> tuple[Frame, ...]:
        return (Frame("agent.py", 7, "wait"),)


def hear(*events: bytes | str, steps: tuple[str, ...] = ("a", "b"), exit_code: int | None = 0) -> Heard:
    return listen(cast(Contained, Script(events, exit_code)), Limits(), steps)


Maker = Callable[[int], Record]


def begin(step: str) -> Maker:
    return lambda number: Begin(TOKEN, number, step)


def finish(step: str, outcome: Outcome = "passed") -> Maker:
    return lambda number: Finish(TOKEN, number, step, outcome)


def plan(*steps: str) -> Maker:
    return lambda number: Plan(TOKEN, number, steps)


def done(number: int) -> Record:
    return Done(TOKEN, number)


def ran(step: str, outcome: Outcome = "passed") -> list[Maker]:
    return [begin(step), finish(step, outcome)]


def said(*makers: Maker) -> list[bytes]:
    """The records as lines, numbered."""
    return [encode(maker(number)) for number, maker in enumerate(makers)]


def test_a_run_to_its_end_is_heard_whole() -> None:
    heard = hear(*said(*ran("a"), *ran("b", "failed"), done))
    assert heard.stop is None
    assert [(id, step.finish.outcome) for id, step in heard.ran.items()] == [("a", "passed"), ("b", "failed")]


def test_a_plan_may_add_steps_once_all_before_it_have_ended() -> None:
    heard = hear(*said(*ran("a"), plan("b", "c"), *ran("b"), *ran("c"), done), steps=("a",))
    assert heard.stop is None
    assert heard.plan == ("a", "b", "c")


def test_what_was_printed_belongs_to_the_step_it_was_printed_in() -> None:
    heard = hear(*said(*ran("a"), *ran("b"), done))
    assert [step.printed for step in heard.ran.values()] == ["printed 1", "moreprinted 3"]


@pytest.mark.parametrize(
    ("what", "records"),
    [
        ("a step ends twice", [*ran("a"), finish("a"), done]),
        ("a step ends that never began", [finish("a"), done]),
        ("a step begins before its turn", [*ran("b"), done]),
        ("a step begins twice", [*ran("a"), *ran("a"), done]),
        ("a step begins inside another", [begin("a"), begin("b"), done]),
        ("a step that nobody asked for", [*ran("a"), *ran("b"), *ran("c"), done]),
        ("two plans", [*ran("a"), *ran("b"), plan("c"), plan("d"), done]),
        ("a plan that names a step twice", [*ran("a"), *ran("b"), plan("c", "c"), done]),
        ("a plan too early", [*ran("a"), plan("c"), done]),
    ],
)
def test_what_cannot_be_is_tampered(what: str, records: list[Maker]) -> None:
    heard = hear(*said(*records))
    assert heard.stop is not None, what
    assert heard.stop.word == "tampered"


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"{}",
        encode(Done("another token", 0)),
        encode(Done(TOKEN, 5)),
        msgspec.json.encode({"type": "done", "token": TOKEN}),
    ],
)
def test_a_line_that_we_did_not_write_is_tampered(line: bytes) -> None:
    heard = hear(line, *said(*ran("a"), *ran("b"), done))
    assert heard.stop is not None
    assert heard.stop.word == "tampered"
    assert heard.ran == {}


def test_an_end_before_the_plan_is_through_is_a_crash() -> None:
    heard = hear(*said(*ran("a"), done))
    assert heard.stop is not None
    assert (heard.stop.word, heard.stop.step) == ("crashed", None)


def test_an_end_in_the_middle_of_a_step_is_a_crash_in_it() -> None:
    heard = hear(*said(*ran("a"), begin("b"), done))
    assert heard.stop is not None
    assert (heard.stop.word, heard.stop.step) == ("crashed", "b")


@pytest.mark.parametrize(
    ("exit_code", "text"),
    [(0, "exit code 0"), (3, "exit code 3"), (-9, "killed by signal 9"), (None, "closed the pipe")],
)
def test_a_process_that_is_gone_crashed_in_its_step(exit_code: int | None, text: str) -> None:
    heard = hear(*said(begin("a")), exit_code=exit_code)
    assert heard.stop is not None
    assert (heard.stop.word, heard.stop.step) == ("crashed", "a")
    assert text in heard.stop.text
    assert heard.stop.errors == "last words"


def test_a_process_that_ended_before_it_began_is_our_own_fault() -> None:
    heard = hear(exit_code=1)
    assert heard.stop is not None
    assert heard.stop.word == "error"


def test_silence_is_a_time_out_with_the_stack() -> None:
    heard = hear(*said(begin("a")), "silent")
    assert heard.stop is not None
    assert (heard.stop.word, heard.stop.step) == ("timed_out", "a")
    assert heard.stop.stack == (Frame("agent.py", 7, "wait"),)


def test_a_flood_is_a_crash() -> None:
    heard = hear(*said(begin("a")), "flooded")
    assert heard.stop is not None
    assert heard.stop.word == "crashed"


@pytest.mark.parametrize("word", ["crashed", "timed_out", "error"])
def test_a_process_may_say_why_it_stops(word: Literal["crashed", "timed_out", "error"]) -> None:
    heard = hear(*said(begin("a"), lambda number: Stopped(TOKEN, number, word, "so")))
    assert heard.stop is not None
    assert (heard.stop.word, heard.stop.step, heard.stop.text) == (word, "a", "so")


def test_the_limit_for_a_step_begins_with_the_first_record() -> None:
    script = Script(said(begin("a")))
    listen(cast(Contained, script), Limits(start=50, step=5, total=100), ("a",))
    assert [round(seconds) for seconds in script.patience] == [50, 5]


def test_the_total_bounds_every_wait() -> None:
    script = Script([])
    listen(cast(Contained, script), Limits(start=50, step=5, total=1), ("a",))
    assert script.patience[0] <= 1
