"""Proofs: which files are marked, what must come of them, and what is said when it does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from course.authoring import prove
from course.authoring.prove import Kind, Proof
from course.catalog import Checkpoint
from course.errors import CannotMarkError, CourseError
from course.marking.verdict import LabVerdict, Marked, Verdict, Versions, Word

from .small_course import Project

Judge = Callable[[str, dict[str, Any]], LabVerdict]


def check(lab: str, names: dict[str, Any]) -> LabVerdict:
    """A true marking of the small course: what its focused tests would say."""
    try:
        right = names["double"](3) == 6 if lab == "1.1" else [*names["count"](2)] == [0, 1]
    except NotImplementedError as error:
        return LabVerdict(lab, lab, "not_attempted", 0, 0, message=str(error))
    if right:
        return LabVerdict(lab, lab, "green", 2, 1)
    return LabVerdict(lab, lab, "red", 1, 0, message=f"Expected: of {lab}.\nin detail", where="test.py:7")


class Marking:
    """A stand-in for `mark` that runs a file in this process and judges each lab with `judge`."""

    def __init__(self, judge: Judge = check) -> None:
        self.judge = judge
        self.seen: list[tuple[tuple[str, ...], bool]] = []

    def __call__(
        self, checkpoint: Checkpoint, agent_py: Path, *, source: bytes, labs: Sequence[str], notebook: bool
    ) -> Verdict:
        self.seen.append((tuple(labs), notebook))
        names: dict[str, Any] = {}
        exec(source, names)
        labs = labs or [lab.id for lab in checkpoint.labs]
        verdicts = tuple(self.judge(lab, names) for lab in labs)
        return Verdict(checkpoint.id, "red", Marked(str(agent_py), ""), verdicts, Versions("", ""), 0.0)


def always(word: Word) -> Judge:
    return lambda lab, names: LabVerdict(lab, lab, word, 0, 0, message=f"Lab {lab}: said")


def proofs(project: Project, mark: prove.Marker, lab: str | None = None, only: Kind | None = None) -> list[Proof]:
    return list(prove.prove(prove.cases(project.checkpoint, lab, only), mark))


def test_tests_that_mark_what_they_should_are_proven(project: Project) -> None:
    found = proofs(project, Marking())
    assert [proof.said for proof in found if not proof.holds] == []
    assert [proof.case.kind for proof in found] == ["staircase"] * 3 + ["mistakes"] * 8 + ["alternatives"]


def test_the_staircase_has_one_step_a_lab_and_one_for_the_starter(project: Project) -> None:
    found = proofs(project, Marking(), only="staircase")
    assert [(proof.case.name, proof.said) for proof in found] == [
        ("the starter", "green: none"),
        ("labs up to 1.1 solved", "green: 1.1"),
        ("labs up to 1.2 solved", "green: 1.1, 1.2"),
    ]


def test_a_step_that_greens_too_much_or_too_little_fails(project: Project) -> None:
    found = proofs(project, Marking(always("green")), only="staircase")
    assert [proof.holds for proof in found] == [False, False, True]
    assert found[1].said == "lab 1.2 must not be green. It is green: Lab 1.2: said"
    found = proofs(project, Marking(always("red")), only="staircase")
    assert found[2].said == "lab 1.1 must be green. It is red: Lab 1.1: said"


@pytest.mark.parametrize(("word", "message"), [("red", "Lab 1.1: said"), ("not_attempted", "Lab 1.2: said")])
def test_the_starter_must_be_not_attempted_in_its_first_labs_own_words(
    project: Project, word: Word, message: str
) -> None:
    mark = Marking(lambda lab, names: LabVerdict(lab, lab, word, 0, 0, message=message))
    (proof, *_) = proofs(project, mark, only="staircase")
    assert not proof.holds
    assert proof.said == f"lab 1.1 must be not_attempted and name its block. It is {word}: {message}"


def test_a_lab_without_a_verdict_proves_nothing(project: Project) -> None:
    def mark(checkpoint: Checkpoint, agent_py: Path, **options: Any) -> Verdict:
        return Verdict(checkpoint.id, "green", Marked("", ""), (), Versions("", ""), 0.0)

    found = proofs(project, mark)
    assert not any(proof.holds for proof in found)
    assert found[0].said == "lab 1.1 must have a verdict, and has none."


def test_a_mistake_is_marked_in_its_own_lab_by_focused_tests_alone(project: Project) -> None:
    mark = Marking()
    proofs(project, mark, only="mistakes")
    assert sorted(mark.seen) == [(("1.1",), False)] * 4 + [(("1.2",), False)] * 4


def test_a_caught_mistake_says_by_what(project: Project) -> None:
    (proof, *_) = proofs(project, Marking(), only="mistakes")
    assert str(proof.case) == "mistakes 01: 1.1 adds one"
    assert proof.said == "red at test.py:7: Expected: of 1.1."


@pytest.mark.parametrize("word", ["green", "not_attempted", "crashed", "timed_out", "not_run", "error"])
def test_a_mistake_must_be_red_and_nothing_else(project: Project, word: Word) -> None:
    found = proofs(project, Marking(always(word)), only="mistakes")
    assert not any(proof.holds for proof in found)
    assert found[0].said == f"lab 1.1 must be red. It is {word}: Lab 1.1: said"


@pytest.mark.parametrize(("red", "holds"), [("test_of_1.1", True), ("test_of_another", False)])
def test_a_mistake_may_name_the_test_that_must_catch_it(project: Project, red: str, holds: bool) -> None:
    path = project.checkpoint.mistakes
    path.write_text(
        path.read_text() + f"\nimport dataclasses\nMISTAKES[0] = dataclasses.replace(MISTAKES[0], red={red!r})\n"
    )
    (proof, *_) = proofs(project, Marking(), only="mistakes")
    assert proof.holds is holds


def test_an_alternative_must_be_green_in_every_lab(project: Project) -> None:
    mark = Marking()
    (proof,) = proofs(project, mark, only="alternatives")
    assert proof.holds
    assert mark.seen == [((), True)]
    (proof,) = proofs(project, Marking(always("red")), only="alternatives")
    assert proof.said == "lab 1.1 must be green. It is red: Lab 1.1: said"


def test_one_lab_is_proven_by_its_steps_and_its_mistakes(project: Project) -> None:
    found = proofs(project, Marking(), lab="1.1")
    assert [proof.case.name for proof in found][:3] == ["the starter", "labs up to 1.1 solved", "1.1 adds one"]
    assert len(found) == 6
    with pytest.raises(CourseError, match=r"Its labs are 1\.1, 1\.2"):
        prove.cases(project.checkpoint, "1.7")


def test_a_marking_that_could_not_be_done_proves_nothing(project: Project) -> None:
    def mark(checkpoint: Checkpoint, agent_py: Path, **options: Any) -> Verdict:
        raise CannotMarkError("no room on the disk")

    found = proofs(project, mark, only="mistakes")
    assert {proof.said for proof in found} == {"could not be marked. no room on the disk"}
    assert not any(proof.holds for proof in found)
