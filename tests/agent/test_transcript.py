"""The transcript: an immutable view that is cheap to extend, and the rule of pairs (promises 1 and 14)."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage import unpaired

from course.agent import (
    AssistantMessage,
    Message,
    MessageError,
    Text,
    ToolCall,
    ToolResultMessage,
    Transcript,
    TranscriptError,
    UserMessage,
)

HELLO, HI = UserMessage("hello"), AssistantMessage((Text("hi"),))
FAILED = AssistantMessage((), "error", "no line")


def asking(*ids: str) -> AssistantMessage:
    return AssistantMessage(tuple(ToolCall(id, "add") for id in ids), "tool_use")


def result(id: str, name: str = "add") -> ToolResultMessage:
    return ToolResultMessage(id, name, "3")


# 1: an immutable sequence view


def test_a_transcript_is_a_sequence_without_any_method_that_changes_it() -> None:
    transcript: Any = Transcript([HELLO, HI])
    assert issubclass(Transcript, Sequence)
    public = {name for name in dir(transcript) if not name.startswith("_")}
    assert public == {"append", "check_pairs", "count", "index", "without_errors"}
    with pytest.raises(TypeError):
        transcript[0] = HI
    with pytest.raises(TypeError):
        del transcript[0]
    with pytest.raises(AttributeError):
        transcript.note = "x"
    transcript.append(HELLO)
    assert transcript == (HELLO, HI)


def test_a_transcript_reads_like_a_tuple() -> None:
    messages = (HELLO, HI, UserMessage("bye"))
    transcript = Transcript(messages)
    assert (len(transcript), transcript[0], transcript[-1]) == (3, messages[0], messages[-1])
    assert transcript[1:] == messages[1:]
    assert transcript[::-1] == tuple(reversed(transcript)) == messages[::-1]
    assert HI in transcript
    assert transcript.index(HI) == 1
    assert hash(transcript) == hash(messages)
    assert transcript == messages
    assert transcript == list(messages)
    assert transcript != messages[:2]
    assert transcript != "x"
    for index in (3, -4):
        with pytest.raises(IndexError):
            transcript[index]


def test_a_view_never_shows_what_was_appended_after_it_was_taken() -> None:
    short = Transcript([HELLO])
    reading = iter(short)
    long = short.append(HI, HELLO)
    assert list(reading) == list(short) == [HELLO]
    assert short[-1] == HELLO
    assert short[0:9] == (HELLO,)
    with pytest.raises(IndexError):
        short[1]
    assert long == (HELLO, HI, HELLO)


def test_two_that_extend_the_same_view_do_not_meet() -> None:
    start = Transcript([HELLO])
    one, other = start.append(HI), start.append(HELLO)
    assert one.append(HELLO) == (HELLO, HI, HELLO)
    assert other.append(HI) == (HELLO, HELLO, HI)
    assert (start, one, other) == ((HELLO,), (HELLO, HI), (HELLO, HELLO))


@given(st.lists(st.tuples(st.integers(0, 20), st.lists(st.sampled_from([HELLO, HI, FAILED]), max_size=3))))
def test_any_tree_of_views_reads_like_a_tree_of_tuples(steps: list[tuple[int, list[Message]]]) -> None:
    views: list[tuple[Transcript, tuple[Message, ...]]] = [(Transcript(), ())]
    for parent, new in steps:
        view, plain = views[parent % len(views)]
        views.append((view.append(*new), (*plain, *new)))
    for view, plain in views:
        assert view == plain
        assert view.without_errors() == tuple(message for message in plain if message is not FAILED)


def bytes_kept_by_appending(length: int, times: int = 100) -> int:
    """What a hundred transcripts cost, each one message longer than the one before, the first of this length."""
    views = [Transcript(UserMessage(str(number)) for number in range(length))]
    views[0].check_pairs()
    tracemalloc.start()
    try:
        for _ in range(times):
            views.append(views[-1].append(HELLO))
            views[-1].check_pairs()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_taking_and_extending_a_view_costs_the_same_at_4_and_at_4000_messages() -> None:
    at_4, at_4000 = bytes_kept_by_appending(4), bytes_kept_by_appending(4000)
    a_list_that_grows_once = 4000 * 8 * 9 // 8  # copying each time would be a hundred times that
    assert at_4000 < at_4 + a_list_that_grows_once + 2000


@pytest.mark.parametrize(
    "stranger", [None, "hello", Text("hi"), ToolCall("c", "n"), {"role": "user"}, [HELLO]], ids=repr
)
def test_what_is_no_message_is_refused_and_told_how_to_write_one(stranger: Any) -> None:
    with pytest.raises(MessageError, match=r"write UserMessage\("):
        Transcript([HELLO, stranger])
    start = Transcript([HELLO])
    with pytest.raises(MessageError):
        start.append(HI, stranger)
    assert start.append(HELLO) == (HELLO, HELLO)


def test_copies_and_pickles_are_equal_and_grow_apart() -> None:
    original = Transcript([HELLO, asking("c1"), result("c1")])
    for twin in (copy.copy(original), copy.deepcopy(original), pickle.loads(pickle.dumps(original))):
        assert twin == original
        twin.append(HI).check_pairs()
        assert twin.append(HI) != original.append(HELLO)


# 14: each call has exactly one result, and nothing stands between

UNPAIRED = {
    "no result": [asking("c1")],
    "a user message before the result": [asking("c1"), HELLO, result("c1")],
    "an answer before the result": [asking("c1"), HI, result("c1")],
    "one result of two": [asking("c1", "c2"), result("c1")],
    "something between two results": [asking("c1", "c2"), result("c1"), HELLO, result("c2")],
    "results in another order": [asking("c1", "c2"), result("c2"), result("c1")],
    "two results of one call": [asking("c1"), result("c1"), result("c1")],
    "a result of another tool": [asking("c1"), result("c1", "sub")],
    "a result before the call": [result("c1"), asking("c1")],
    "a result alone": [HELLO, result("c1")],
    "a result after a failed answer": [HELLO, FAILED, result("c1")],
    "one id for two calls": [asking("c1", "c1"), result("c1"), result("c1")],
}


@pytest.mark.parametrize("messages", UNPAIRED.values(), ids=UNPAIRED)
def test_a_transcript_that_breaks_a_pair_is_refused(messages: list[Message]) -> None:
    for before in ([], [HELLO], [HELLO, asking("c0"), result("c0")]):
        with pytest.raises(TranscriptError, match=r"message \d+"):
            Transcript([*before, *messages]).check_pairs()
        checked = Transcript(before)
        checked.check_pairs()
        with pytest.raises(TranscriptError):
            checked.append(*messages).check_pairs()


def test_paired_calls_pass_and_an_id_may_come_back_in_a_later_turn() -> None:
    turn = [asking("c1", "c2"), result("c1"), result("c2")]
    Transcript([HELLO, *turn, *turn, FAILED, HI]).check_pairs()
    Transcript().check_pairs()


def test_what_a_longer_view_proved_says_nothing_of_a_shorter_one() -> None:
    cut = Transcript([HELLO, asking("c1")])
    cut.append(result("c1")).check_pairs()
    with pytest.raises(TranscriptError):
        cut.check_pairs()
    with pytest.raises(TranscriptError):
        cut.append(HELLO).check_pairs()


kinds = st.sampled_from([HELLO, HI, FAILED, asking("c1"), asking("c1", "c2"), result("c1"), result("c2")])


@given(st.lists(kinds, max_size=8), st.lists(st.integers(0, 8)), st.integers(0, 8))
def test_the_check_agrees_with_a_plain_one_whatever_was_checked_before(
    messages: list[Message], checks: list[int], cut: int
) -> None:
    views = [Transcript()]
    for message in messages:
        views.append(views[-1].append(message))
    views.append(views[min(cut, len(messages))].append(HELLO))
    for view in [*(views[check % len(views)] for check in checks), *views]:
        try:
            view.check_pairs()
        except TranscriptError:
            assert unpaired(view)
        else:
            assert not unpaired(view)


def test_without_errors_costs_nothing_where_there_are_none() -> None:
    transcript = Transcript([HELLO, HI])
    assert transcript.without_errors() is transcript
    assert transcript.append(FAILED).without_errors() == (HELLO, HI)
