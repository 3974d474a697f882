"""The words of a verdict, the whole of them, its JSON and its exit code."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from course.marking.verdict import SYMBOLS, LabVerdict, Marked, Verdict, Versions, Word, exit_code, overall


def labs(*words: Word) -> list[LabVerdict]:
    return [LabVerdict(f"9.{number}", "A title", word, 2, 1) for number, word in enumerate(words, 1)]


def verdict(*words: Word) -> Verdict:
    judged = labs(*words)
    return Verdict("09", overall(judged), Marked("/a/agent.py", "ab" * 32), tuple(judged), Versions("1", "3.11"), 1.25)


@pytest.mark.parametrize(
    ("words", "whole"),
    [
        (["green", "green"], "green"),
        (["green", "red", "not_attempted"], "red"),
        (["not_attempted", "not_run"], "not_attempted"),
        (["red", "tampered"], "tampered"),
        (["tampered", "error"], "error"),
        ([], "error"),
    ],
)
def test_the_first_that_is_not_green_says_it_and_rigging_and_our_own_faults_are_said_first(
    words: list[Word], whole: Word
) -> None:
    assert overall(labs(*words)) == whole


@pytest.mark.parametrize("word", get_args(Word))
def test_only_green_ends_with_0_and_only_error_with_3(word: Word) -> None:
    assert exit_code(verdict(word)) == {"green": 0, "error": 3}.get(word, 1)


def test_the_json_is_as_documented() -> None:
    assert json.loads(verdict("green").json()) == {
        "checkpoint": "09",
        "verdict": "green",
        "agent": {"path": "/a/agent.py", "sha256": "ab" * 32},
        "labs": [
            {
                "lab": "9.1",
                "title": "A title",
                "verdict": "green",
                "tests": 2,
                "cells": 1,
                "message": None,
                "where": None,
            }
        ],
        "versions": {"course": "1", "python": "3.11"},
        "seconds": 1.25,
    }


def test_every_word_has_a_symbol() -> None:
    assert set(SYMBOLS) == set(get_args(Word))
