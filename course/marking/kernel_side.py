"""What the driver of a real kernel asks of our code inside it."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import msgspec
from IPython.core.getipython import get_ipython

from course import stand_in
from course.catalog import Checkpoint
from course.marking.child import dump_on_signal
from course.marking.fault import describe

LAST_FAULT = "last_fault"
"""The attribute of the shell that `last_fault` is called by."""

STACK_FILE = ".stack"
"""The file in the workspace into which the kernel writes where it is when it is asked to."""


def prepare(checkpoint: str, learner: str) -> None:
    """Before the first cell: put the workspace's `agent.py` in place, under the path of the learner's own file.

    From then on nothing here can be imported; what describes a fault is left with the shell.
    """
    dump_on_signal(learner, os.open(STACK_FILE, os.O_CREAT | os.O_WRONLY))
    source = Path("agent.py").read_bytes()
    decoded = msgspec.json.decode(checkpoint, type=Checkpoint, dec_hook=lambda path, text: path(text))
    shell = get_ipython()
    assert shell is not None
    setattr(shell, LAST_FAULT, last_fault)
    importlib.import_module("course.notebook.extension")  # it needs more than a marked file may import
    stand_in.install(decoded, Path(learner), source, marking=True)


def last_fault(learner: str) -> str:
    """After a cell failed: what it failed with, as JSON; null when the shell did not keep it."""
    error = getattr(sys, "last_value", None)
    sys.last_value = None  # the next cell's fault is never taken for this one
    return msgspec.json.encode(None if error is None else describe(error, learner)).decode()
