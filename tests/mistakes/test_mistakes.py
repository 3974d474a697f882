"""Every mistake turns its own lab red, every alternative is green, and labs go green one by one: the course proven.

The same proofs by hand, with what came of each: `python -m course.authoring prove`.
"""

from __future__ import annotations

import pytest

from course.authoring import prove
from course.catalog import checkpoints
from course.marking.mark import mark

CASES = [case for checkpoint in checkpoints().values() for case in prove.cases(checkpoint)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_marking_says_what_it_must(case: prove.Case) -> None:
    proof = case.prove(mark)
    assert proof.holds, proof.said
