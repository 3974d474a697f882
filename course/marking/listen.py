"""The parent's ear: it hears a marking process out, and decides on what is missing, late, doubled or implausible."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from course.marking.child import NO_PIPE
from course.marking.contained import FLOOD, Contained
from course.marking.steps import AnyRecord, Begin, Done, Fault, Finish, Frame, Plan, Stopped, decode, mark_in_output


class Limits(msgspec.Struct, frozen=True):
    """Seconds: from the start of the process to its first step, for each step, and for everything."""

    start: float = 60
    step: float = 10
    total: float = 120


class Ran(msgspec.Struct, frozen=True):
    """A step that began and ended. `printed` is what the process wrote to its real standard output meanwhile."""

    finish: Finish
    printed: str

    @property
    def passed(self) -> bool:
        return self.finish.outcome == "passed"

    @property
    def fault(self) -> Fault | None:
        return self.finish.fault


class Stop(msgspec.Struct, frozen=True):
    """Why a process said nothing more before it was done. `step` is the one it was in, None between two steps."""

    word: Literal["crashed", "timed_out", "tampered", "error"]
    step: str | None
    text: str
    stack: tuple[Frame, ...] = ()
    errors: str = ""


class Heard(msgspec.Struct, frozen=True):
    """All that a process told: its plan, the steps it went through, and why it stopped, None when it was done."""

    plan: tuple[str, ...]
    ran: dict[str, Ran]
    stop: Stop | None


def listen(
    contained: Contained, limits: Limits, plan: tuple[str, ...] = (), notify: Callable[[str], object] = str
) -> Heard:
    """Hear the process out until it is done, ends, passes a limit or says what it cannot have seen.

    `plan` is the order of the steps where it is known beforehand; a process may announce the rest of it once.
    `notify` is called with each step that has ended.
    """
    return _Listener(contained, limits, plan, notify).hear()


class _Listener:
    def __init__(
        self, contained: Contained, limits: Limits, plan: tuple[str, ...], notify: Callable[[str], object]
    ) -> None:
        self._notify = notify
        self._contained = contained
        self._limits = limits
        self._plan = plan
        self._ran: dict[str, Ran] = {}
        self._step: str | None = None
        self._planned = False
        self._count = 0
        self._printed = 0
        self._over = time.monotonic() + limits.total

    def hear(self) -> Heard:
        stop: Stop | None = None
        is_done = False
        while stop is None and not is_done:
            got = self._contained.receive(self._patience())
            if isinstance(got, bytes):
                stop, is_done = self._take(got)
            else:
                stop = self._stopped(got)
        return Heard(self._plan, self._ran, stop)

    def _patience(self) -> float:
        """Seconds to wait for the next record."""
        step = self._limits.step if self._count else self._limits.start
        return max(0.0, min(step, self._over - time.monotonic()))

    def _take(self, line: bytes) -> tuple[Stop | None, bool]:
        try:
            record = decode(line)
        except msgspec.DecodeError:
            return self._forged("a report that the marking did not write"), False
        if record.token != self._contained.token or record.number != self._count:
            return self._forged("a report out of order, or without the marking's own token"), False
        self._count += 1
        if isinstance(record, Stopped):
            return self._stop(record.word, record.text, record.stack), False
        wrong = self._follow(record)
        if wrong is not None:
            return self._forged(wrong), False
        if not isinstance(record, Done):
            return None, False
        is_whole = self._step is None and len(self._ran) == len(self._plan)
        return None if is_whole else self._stop("crashed", "It ended the whole run."), True

    def _follow(self, record: AnyRecord) -> str | None:
        """Go on to where `record` says the process is; the text says what is wrong when it cannot be there."""
        match record:
            case Plan(steps=steps):
                if self._planned or len(self._ran) < len(self._plan) or len(set(steps)) < len(steps):
                    return "a plan that cannot be"
                self._plan, self._planned = self._plan + steps, True
            case Begin(step=step):
                if self._step is not None or self._plan[len(self._ran) : len(self._ran) + 1] != (step,):
                    return f"{step} began when it was not its turn"
                self._step = step
            case Finish(step=step):
                if self._step != step:
                    return f"{step} ended without having begun"
                self._ran[step] = Ran(record, self._printed_before(record))
                self._step = None
                self._notify(step)
        return None

    def _printed_before(self, record: Finish) -> str:
        """What was printed since the last step ended; "" when the process has lost its standard output."""
        mark = mark_in_output(record)
        printed, found, _ = bytes(self._contained.printed[self._printed :]).partition(mark)
        if not found:
            return ""
        self._printed += len(printed) + len(mark)
        return printed.decode("utf-8", errors="replace")

    def _stopped(self, event: str) -> Stop:
        if event == "flooded":
            return self._stop("crashed", FLOOD)
        if event == "silent":
            stack = self._contained.stack()
            seconds = self._limits.step if time.monotonic() < self._over else self._limits.total
            return self._stop("timed_out", f"It had not ended after {seconds:g} seconds.", stack)
        return self._gone()

    def _gone(self) -> Stop:
        code = self._contained.exit_code
        if code is None or code == NO_PIPE:
            return self._stop("crashed", "It closed the pipe through which the marking hears of it.")
        if self._count == 0:
            return self._stop("error", f"The marking process ended with exit code {code} before it began.")
        if code < 0:
            return self._stop("crashed", f"It ended the whole process: killed by signal {-code}.")
        return self._stop("crashed", f"It ended the whole process with exit code {code}.")

    def _forged(self, what: str) -> Stop:
        return self._stop("tampered", f"The marking received {what}.")

    def _stop(
        self, word: Literal["crashed", "timed_out", "tampered", "error"], text: str, stack: tuple[Frame, ...] = ()
    ) -> Stop:
        errors = self._contained.errors.decode("utf-8", errors="replace")
        return Stop(word, self._step, text, stack, errors[-8000:])
