"""What a marking process tells its parent while it runs: one JSON line for each thing that happens."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

IMPORT = "import"
"""The step in which the learner's file is imported."""

COLLECT = "collect"
"""The step in which the focused tests are collected."""

CUT_SHORT = "CutShort"
"""The kind of fault of a test that passed though a block of it was not gone through to its end."""

END_OF_DUMP = "End of dump"
"""The last line of a stack that a process wrote because it was asked to."""

Outcome = Literal["passed", "failed", "skipped"]


class Frame(msgspec.Struct, frozen=True):
    """One line of a traceback."""

    path: str
    line: int
    name: str


class Fault(msgspec.Struct, frozen=True):
    """An exception, described so that it can leave its process.

    `kind` is the class name and `text` what `str()` gave. `stub` is the whole text of a skeleton's
    NotImplementedError ("Lab 9.2: ...") when one lies anywhere behind it. `frames` runs from the outermost call to
    the place of the fault, innermost last; `mine` are those of them in the learner's file.
    """

    kind: str
    text: str
    stub: str | None = None
    frames: tuple[Frame, ...] = ()
    mine: tuple[Frame, ...] = ()


class Record(msgspec.Struct, frozen=True, tag=True):
    """`token` is the run's secret and `number` counts from 0: a line without them was not written by us."""

    token: str
    number: int


class Plan(Record, frozen=True, tag="plan"):
    """The steps that follow, in order."""

    steps: tuple[str, ...]


class Begin(Record, frozen=True, tag="begin"):
    step: str


class Finish(Record, frozen=True, tag="finish"):
    """How a step ended. `outputs` are a notebook cell's, in nbformat's form."""

    step: str
    outcome: Outcome
    fault: Fault | None = None
    outputs: tuple[dict[str, Any], ...] = ()


def mark_in_output(record: Finish) -> bytes:
    """What is written to standard output right before `record` is, so that the parent knows what came before it."""
    return f"\0{record.token}:{record.number}\0".encode()


class Done(Record, frozen=True, tag="done"):
    """Nothing follows. The process waits to be ended."""


class Stopped(Record, frozen=True, tag="stopped"):
    """The process gives up in the middle of its step, or before the first. `stack` is where the step was."""

    word: Literal["crashed", "timed_out", "error"]
    text: str
    stack: tuple[Frame, ...] = ()


AnyRecord = Plan | Begin | Finish | Done | Stopped

decode = msgspec.json.Decoder(AnyRecord).decode

_encode = msgspec.json.Encoder(enc_hook=repr).encode


def encode(record: Record) -> bytes:
    """`record` as a line of JSON, whatever a learner's output holds: lone surrogates, odd keys, any object."""
    try:
        return _encode(record) + b"\n"
    except Exception:
        return _encode(_plain(msgspec.to_builtins(record, enc_hook=repr))) + b"\n"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {_plain(str(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
