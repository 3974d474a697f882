"""What a marking found out, lab by lab, and its JSON form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Word = Literal["green", "red", "not_attempted", "crashed", "timed_out", "not_run", "tampered", "error"]
"""How a lab stands. Only `green` means: everything that counts for it was executed and passed.

red: something failed. not_attempted: its own NotImplementedError. crashed: the learner's code ended the process.
timed_out: a limit passed. not_run: an earlier fault stopped it. tampered: a check that must fail passed.
error: our fault or the machine's.
"""

SYMBOLS: dict[Word, str] = {
    "green": "✔",
    "red": "✘",
    "not_attempted": "○",
    "crashed": "✘",
    "timed_out": "⧖",
    "not_run": "–",
    "tampered": "!",
    "error": "?",
}


class LabVerdict(msgspec.Struct, frozen=True):
    """One lab's verdict.

    `tests` and `cells` count the focused test functions and notebook cells of the lab that ran and passed. `message`
    is plain text for the learner, one or more lines, None when green. `where` is `path:line` of the place to look at.
    """

    lab: str
    title: str
    verdict: Word
    tests: int
    cells: int
    message: str | None = None
    where: str | None = None

    @property
    def is_green(self) -> bool:
        return self.verdict == "green"


class Marked(msgspec.Struct, frozen=True):
    """The file that was marked: its absolute path and the sha256 of the very bytes that ran."""

    path: str
    sha256: str


class Versions(msgspec.Struct, frozen=True):
    course: str
    python: str


class Verdict(msgspec.Struct, frozen=True):
    """One marking of one `agent.py`. Marked again it is the same byte for byte, `seconds` aside."""

    checkpoint: str
    verdict: Word
    agent: Marked
    labs: tuple[LabVerdict, ...]
    versions: Versions
    seconds: float

    @property
    def is_green(self) -> bool:
        return self.verdict == "green"

    def json(self) -> str:
        """One JSON object on one line: what `course checkpoint --json` prints."""
        return msgspec.json.encode(self).decode()


def overall(labs: Sequence[LabVerdict]) -> Word:
    """The word for all of `labs`, which are those required: the first that is not green says it.

    A tampered lab or an error of ours is said first, wherever it stands; no lab at all is an error.
    """
    words: list[Word] = [lab.verdict for lab in labs]
    if "error" in words:
        return "error"
    if "tampered" in words:
        return "tampered"
    for word in words:
        if word != "green":
            return word
    return "green" if words else "error"


def exit_code(verdict: Verdict) -> int:
    """The documented exit code: 0 all green, 1 something is not, 3 could not be marked."""
    return {"green": 0, "error": 3}.get(verdict.verdict, 1)
