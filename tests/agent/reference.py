"""What the contract says an Agent does, on plain lists: no tasks, no events, no awaits."""

from __future__ import annotations

from course.agent import Limits, QueuePolicy


class Refused(Exception):
    """What would not be done; `args[0]` is the name of the error that the Agent raises."""


class ReferenceAgent:
    """A transcript as `texts()` writes it, a queue of (kind, text), and where the run stands.

    `phase` is "idle", "model" (a request is open) or "tools" (calls run). `requests` holds what each request showed
    the model, `ends` the status of each run and what it dropped.
    """

    def __init__(self, policy: QueuePolicy, limits: Limits, max_steps: int) -> None:
        self.policy, self.limits, self.max_steps = policy, limits, max_steps
        self.transcript: list[str] = []
        self.queue: list[tuple[str, str]] = []
        self.phase = "idle"
        self.cancelled = False
        self.steps = 0
        self.calls: list[str] = []
        self.open_calls: list[str] = []
        self.requests: list[list[str]] = []
        self.ends: list[tuple[str, list[tuple[str, str]]]] = []

    # What a caller may do

    def prompt(self, text: str) -> None:
        self.refuse_a_second_owner()
        if not self.fits(2):
            raise Refused("AgentLimitError")
        self.start([text, *self.take("steering")])

    def continue_(self) -> None:
        self.refuse_a_second_owner()
        answered = self.transcript[-1:] and self.transcript[-1].startswith("a:")
        inputs = self.take("steering") or (self.take("follow_up") if answered else [])
        if not inputs and (answered or not self.transcript):
            raise Refused("AgentIdleError")
        if not inputs and not self.fits(1):
            raise Refused("AgentLimitError")
        self.start(inputs)

    def enqueue(self, kind: str, text: str) -> None:
        if not self.policy.outlive_run and (self.phase == "idle" or self.cancelled):
            raise Refused("AgentIdleError")
        if not self.room():
            raise Refused("AgentLimitError")
        self.queue.append((kind, text))

    def clear_queues(self) -> list[tuple[str, str]]:
        cleared, self.queue = self.queue, []
        return cleared

    def cancel(self) -> bool:
        if self.phase == "idle" or self.cancelled:
            return False
        self.cancelled = True
        if self.phase == "model":
            self.end("cancelled")
        return True

    # What the model and the tools may do

    def answer(self, text: str) -> None:
        if not self.fits(1):
            return self.end("failed")
        self.transcript.append(f"a:{text}")
        return self.boundary()

    def ask_for(self, calls: list[str]) -> None:
        if not self.fits(1 + len(calls) + 1):
            return self.end("failed")
        self.calls, self.open_calls, self.phase = calls, list(calls), "tools"
        return None

    def fail(self) -> None:
        self.transcript.append("error")
        self.end("failed")

    def finish(self, call: str) -> None:
        self.open_calls.remove(call)
        if not self.open_calls:
            self.transcript += ["+".join(["a:", *self.calls]), *[f"t:{call}" for call in self.calls]]
            self.boundary(calls=True)

    # The rules

    def refuse_a_second_owner(self) -> None:
        if self.phase != "idle":
            raise Refused("AgentBusyError")

    def fits(self, new: int) -> bool:
        return len(self.transcript) + new + 2 * len(self.queue) <= self.limits.owned

    def room(self) -> int:
        """How many more may be queued: tried one by one, as the contract's sum says it."""
        turn = self.limits.turn if self.phase != "idle" else 0
        more = 0
        while (
            len(self.queue) + more < self.limits.queued
            and len(self.transcript) + 2 * (len(self.queue) + more + 1) + turn <= self.limits.owned
        ):
            more += 1
        return more

    def take(self, kind: str) -> list[str]:
        taken = [each for each in self.queue if each[0] == kind]
        if self.policy.one_at_a_time:
            taken = taken[:1]
        self.queue = [each for each in self.queue if each not in taken]
        return [text for _, text in taken]

    def start(self, inputs: list[str]) -> None:
        self.transcript += [f"u:{text}" for text in inputs]
        self.cancelled, self.steps = False, 0
        self.ask()

    def ask(self) -> None:
        self.steps += 1
        self.phase = "model"
        self.requests.append([each for each in self.transcript if each != "error"])

    def boundary(self, *, calls: bool = False) -> None:
        if self.cancelled:
            return self.end("cancelled")
        if self.steps == self.max_steps:
            return self.end("max_steps" if calls or self.queue else "completed")
        taken = self.take("steering") or ([] if calls else self.take("follow_up"))
        self.transcript += [f"u:{text}" for text in taken]
        return self.ask() if calls or taken else self.end("completed")

    def end(self, status: str) -> None:
        self.phase = "idle"
        self.ends.append((status, [] if self.policy.outlive_run else self.clear_queues()))
