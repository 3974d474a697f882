"""What must run is read from the pristine tests alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import toy

from course.catalog import Lab
from course.errors import CannotMarkError
from course.marking.controls import control_tests
from course.marking.focused import FocusedRun, FocusedTest, find_tests, function_id, needed_names, parameters
from course.marking.listen import Heard, Ran
from course.marking.steps import Finish


def test_tests_come_in_the_order_of_the_labs_with_the_backends_they_must_run_on(tmp_path: Path) -> None:
    checkpoint = toy.lay(tmp_path)
    found = find_tests(checkpoint, checkpoint.labs[:2])
    assert [(test.id, test.lab, test.backends) for test in found] == [
        ("test_adding_gives_the_new_value", "42.1", ()),
        ("test_counters_share_nothing", "42.1", ()),
        ("test_adding_later_adds", "42.2", ("asyncio", "trio")),
        ("test_two_may_add_at_once", "42.2", ("asyncio", "trio")),
    ]


def test_tests_in_a_class_are_found_with_the_mark_of_the_class(tmp_path: Path) -> None:
    text = (
        'import pytest\n@pytest.mark.lab("42.1")\nclass TestAll:\n    def test_a(self): ...\n'
        '    @pytest.mark.lab("42.2")\n    def test_b(self): ...\ndef test_unmarked(): ...\n'
    )
    labs = (Lab("42.1", "", 1), Lab("42.2", "", 1))
    found = find_tests(toy.lay(tmp_path, test=text, labs=labs), labs)
    assert [(test.id, test.lab) for test in found] == [("TestAll::test_a", "42.1"), ("TestAll::test_b", "42.2")]


def test_a_test_file_that_is_no_python_cannot_be_marked(tmp_path: Path) -> None:
    checkpoint = toy.lay(tmp_path, test="def")
    with pytest.raises(CannotMarkError, match="cannot be read"):
        find_tests(checkpoint, checkpoint.labs)


def test_the_names_that_the_learners_file_must_have_are_those_that_are_imported_from_it(tmp_path: Path) -> None:
    text = "from agent import Counter, add\nfrom course.agent import Agent\nfrom .agent import other\nimport agent\n"
    assert needed_names(toy.lay(tmp_path, test=text).test) == ("Counter", "add")


def test_a_claim_is_the_name_of_the_test_as_a_sentence() -> None:
    assert FocusedTest("TestAll::test_one_owner_at_a_time", "9.2", 1).claim == "one owner at a time"


def test_an_id_is_taken_apart() -> None:
    assert (function_id("test_a[trio-3]"), parameters("test_a[trio-3]")) == ("test_a", ["trio", "3"])
    assert (function_id("test_a"), parameters("test_a")) == ("test_a", [""])


TEST = FocusedTest("test_a", "42.1", 1, ("asyncio", "trio"))


@pytest.mark.parametrize(
    ("planned", "passed", "counts"),
    [
        (["test_a[asyncio]", "test_a[trio]"], ["test_a[asyncio]", "test_a[trio]"], True),
        (["test_a[asyncio]", "test_a[trio]"], ["test_a[asyncio]"], False),
        (["test_a[asyncio]"], ["test_a[asyncio]"], False),
        (["test_a[trio]", "test_a[trio-2]"], ["test_a[trio]", "test_a[trio-2]"], False),
        ([], [], False),
    ],
)
def test_a_function_has_passed_when_every_run_of_it_has_and_on_every_backend(
    planned: list[str], passed: list[str], counts: bool
) -> None:
    ran = {id: Ran(Finish("", 0, id, "passed" if id in passed else "failed"), "") for id in planned}
    run = FocusedRun((TEST,), control_tests(0), Heard(tuple(planned), ran, None))
    assert run.passed(TEST) is counts
