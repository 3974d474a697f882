"""Proof that tests mark what they should: a staircase of greens, mistakes red, alternatives green."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from course.authoring import mistakes
from course.authoring.mistakes import Mistake
from course.authoring.views import Source, read_source
from course.catalog import Checkpoint
from course.errors import CannotMarkError
from course.marking.verdict import LabVerdict, Verdict

Kind = Literal["staircase", "mistakes", "alternatives"]
WORKERS = 2  # markings at a time; each runs processes of its own


class Marker(Protocol):
    """`course.marking.mark.mark`, as far as proofs use it."""

    def __call__(
        self, checkpoint: Checkpoint, agent_py: Path, *, source: bytes, labs: Sequence[str], notebook: bool
    ) -> Verdict: ...


@dataclass(frozen=True)
class Case:
    """One `agent.py` to mark, and what its verdict must be.

    `labs` are those to mark, all where empty. `judge` says whether a verdict is as it must be, and why.
    """

    kind: Kind
    checkpoint: Checkpoint
    name: str
    source: str
    judge: Callable[[Verdict], tuple[bool, str]]
    labs: tuple[str, ...] = ()
    notebook: bool = True

    def __str__(self) -> str:
        return f"{self.kind} {self.checkpoint.id}: {self.name}"

    def prove(self, mark: Marker) -> Proof:
        """Mark it and judge the verdict. A marking that could not be done proves nothing."""
        try:
            verdict = mark(
                self.checkpoint,
                self.checkpoint.solution,
                source=self.source.encode(),
                labs=self.labs,
                notebook=self.notebook,
            )
        except CannotMarkError as error:
            return Proof(self, False, f"could not be marked. {error}")
        return Proof(self, *self.judge(verdict))


@dataclass(frozen=True)
class Proof:
    """A marked case: whether it holds, and what came (or should have come)."""

    case: Case
    holds: bool
    said: str


def cases(checkpoint: Checkpoint, lab: str | None = None, only: Kind | None = None) -> list[Case]:
    """All that is to prove about a checkpoint, or about one lab of it, or of one kind.

    Raises AuthoringError where its module or its mistakes cannot be used.
    """
    source = read_source(checkpoint)
    labs = [lab.id for lab in checkpoint.labs] if lab is None else [checkpoint.find_lab(lab).id]
    found: list[Case] = []
    if only in (None, "staircase"):
        found += _staircase(source, labs)
    if only in (None, "mistakes"):
        found += _mistakes(source, labs)
    if only == "alternatives" or (only is None and lab is None):
        found += _alternatives(source)
    return found


def _staircase(source: Source, labs: Sequence[str]) -> Iterator[Case]:
    """The file with the labs before and up to each of `labs` solved."""
    order = [lab.id for lab in source.checkpoint.labs]
    steps = {order.index(lab) + up for lab in labs for up in (0, 1)}
    for step in sorted(steps):
        name = f"labs up to {order[step - 1]} solved" if step else "the starter"
        judge = partial(_climbed, order[:step], order[step:])
        yield Case("staircase", source.checkpoint, name, source.render(order[:step]), judge)


def _mistakes(source: Source, labs: Sequence[str]) -> Iterator[Case]:
    variants = mistakes.load(source.checkpoint)
    for mistake in variants.mistakes:
        if mistake.lab in labs:
            text = variants.source_of(mistake, source.solution)
            name = f"{mistake.lab} {mistake.name}"
            judge = partial(_caught, mistake)
            yield Case("mistakes", source.checkpoint, name, text, judge, (mistake.lab,), notebook=False)


def _alternatives(source: Source) -> Iterator[Case]:
    variants = mistakes.load(source.checkpoint)
    judge = partial(_climbed, [lab.id for lab in source.checkpoint.labs], [])
    for alternative in variants.alternatives:
        text = variants.source_of(alternative, source.solution)
        yield Case("alternatives", source.checkpoint, alternative.name, text, judge)


def _climbed(solved: Sequence[str], rest: Sequence[str], verdict: Verdict) -> tuple[bool, str]:
    """Green in the solved labs and in no other; a bare starter is not attempted, by its first lab's word."""
    came = {lab.lab: lab for lab in verdict.labs}
    for lab in (*solved, *rest):
        if lab not in came:
            return False, f"lab {lab} must have a verdict, and has none."
        if (came[lab].verdict == "green") != (lab in solved):
            return (
                False,
                f"lab {lab} must {'' if lab in solved else 'not '}be green. It is {_said(came[lab])}",
            )
    if not solved:
        first = came[rest[0]]
        if first.verdict != "not_attempted" or f"Lab {first.lab}:" not in (first.message or ""):
            return False, f"lab {first.lab} must be not_attempted and name its block. It is {_said(first)}"
    return True, f"green: {', '.join(solved) or 'none'}"


def _caught(mistake: Mistake, verdict: Verdict) -> tuple[bool, str]:
    """Red in the mistake's own lab, by the test it names if it names one."""
    lab = next((lab for lab in verdict.labs if lab.lab == mistake.lab), None)
    if lab is None or lab.verdict != "red":
        return False, f"lab {mistake.lab} must be red. It is {'missing.' if lab is None else _said(lab)}"
    if mistake.red is not None and _claim(mistake.red) not in (lab.message or ""):
        return False, f"{mistake.red} must be what turns lab {mistake.lab} red. It is {_said(lab)}"
    return True, _said(lab).split("\n")[0]


def _claim(test: str) -> str:
    """A test's name as a verdict says it: "test_a_run_ends_once" is "a run ends once"."""
    return test.removeprefix("test_").replace("_", " ")


def _said(lab: LabVerdict) -> str:
    place = f" at {lab.where}" if lab.where else ""
    return f"{lab.verdict}{place}: {lab.message or 'no message'}"


def prove(cases: Sequence[Case], mark: Marker) -> Iterator[Proof]:
    """Mark the cases, WORKERS at a time. Proofs come in the order of the cases."""
    with ThreadPoolExecutor(WORKERS) as pool:
        yield from pool.map(lambda case: case.prove(mark), cases)
