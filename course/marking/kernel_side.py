"""What the driver of a real kernel asks of our code inside it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from course import stand_in
from course.catalog import Checkpoint
from course.marking.child import dump_on_signal
from course.marking.fault import describe

STACK_FILE = ".stack"
"""The file in the workspace into which the kernel writes where it is when it is asked to."""


def prepare(checkpoint: str, learner: str) -> None:
    """Before the first cell: put the workspace's `agent.py` in place, under the path of the learner's own file."""
    dump_on_signal(learner, os.open(STACK_FILE, os.O_CREAT | os.O_WRONLY))
    source = Path("agent.py").read_bytes()
    decoded = msgspec.json.decode(checkpoint, type=Checkpoint, dec_hook=lambda path, text: path(text))
    stand_in.install(decoded, Path(learner), source, marking=True)


def last_fault(learner: str) -> str:
    """After a cell failed: what it failed with, as JSON; null when the shell did not keep it."""
    error = getattr(sys, "last_value", None)
    sys.last_value = None  # the next cell's fault is never taken for this one
    return msgspec.json.encode(None if error is None else describe(error, learner)).decode()
