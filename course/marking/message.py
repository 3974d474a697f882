"""What a learner reads when a lab is not green: what was expected, what came, why it matters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from course.marking.steps import Fault, Frame
from course.marking.values import CAME

MAX_LINES = 12
MAX_WIDTH = 160

_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")
_WHERE_FUNCTION = re.compile(r"\n *\+ +where .*<(?:function|bound method) .*")
"""pytest's line that says which function gave a value: an address, where the assert shows the call already."""

_OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) object at 0x\w+>")
_NONE = "One of your functions gave None: a `return` may be missing, on one of its ways at least."

_DID_NOT_RAISE = re.compile(r"DID NOT RAISE <class '(?:[\w.]*\.)?(\w+)'>")


def clean(text: str, folder: Path) -> str:
    """`text` without escape codes, and the same at every marking: no address, no path of the temporary `folder`."""
    text = _CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n")))
    return _ADDRESS.sub("0x…", text.replace(f"{folder}/", "").replace(str(folder), "."))


def for_fault(expected: str, fault: Fault, printed: str = "", rule: str = "") -> str:
    """The message for a test or cell that was to do `expected` and failed with `fault`.

    `rule` is why it matters where the fault itself does not say so.
    """
    came, why = came_and_why(fault)
    parts = [f"Expected: {expected}.", _block("Came", came)]
    if why or rule:
        parts.append(_block("Why", why or rule))
    if len(fault.mine) > 1:
        parts.append("Called: " + " → ".join(_called(fault.mine)))
    if printed.strip():
        parts.append(_block("It printed", "\n".join(printed.strip().splitlines()[-5:])))
    return "\n".join(parts)


def _called(frames: Sequence[Frame]) -> list[str]:
    """The learner's own calls, the outermost always among them: it is where the story begins."""
    places = [short_place(frame) for frame in frames]
    return places if len(places) <= 4 else [places[0], "…", *places[-3:]]


def came_and_why(fault: Fault) -> tuple[str, str]:
    """What came, and the reason that the test's author wrote beside the assert, "" if none."""
    if fault.kind == "AssertionError":
        why, asserted, came = f"\n{fault.text}".partition("\nassert ")
        if not asserted:
            return fault.text or "an assert without a text failed", ""
        return _asserted(came), why.strip()
    if missing := _DID_NOT_RAISE.search(fault.text):
        return f"no {missing[1]} was raised", ""
    if fault.kind == "TimeoutError":
        return "something it waits for never happened (TimeoutError)", fault.text
    came = f"{fault.kind}: {fault.text}" if fault.text else fault.kind
    return (f"{came}\n{_NONE}" if "'NoneType' object" in fault.text and not fault.mine else came), ""


def _asserted(came: str) -> str:
    """What pytest says of an assert that failed, and what we say of two values that are not equal."""
    if came.startswith(CAME):
        return came.removeprefix(CAME)
    return "assert " + _OBJECT.sub(r"\1(…)", _WHERE_FUNCTION.sub("", came))


def difference(cell: str, kind: str, stored: str, came: str) -> str:
    """The message for a cell that ran, and whose output is not the stored one."""
    is_text = kind in ("", "stdout", "text/plain")
    expected = f"{cell} to show what is stored in the notebook" + ("" if is_text else f" ({kind})")
    first = _first_difference(stored, came)
    return "\n".join([f"Expected: {expected}.", _block("Stored", first[0]), _block("Came", first[1])])


def _first_difference(stored: str, came: str) -> tuple[str, str]:
    """The lines from the first that differs on, with one line before it to find the place by."""
    left, right = stored.splitlines(), came.splitlines()
    same = 0
    while same < min(len(left), len(right)) and left[same] == right[same]:
        same += 1
    start = max(0, same - 1)
    return tuple("\n".join(lines[start:]) or "(nothing)" for lines in (left, right))  # type: ignore[return-value]


def short_place(frame: Frame) -> str:
    name = "" if frame.name.startswith("<") else f" in {frame.name}"
    return f"{Path(frame.path).name}:{frame.line}{name}"


def _block(label: str, text: str) -> str:
    """`label: text`, its further lines indented, and no longer than a screen bears."""
    lines = [line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 1] + "…" for line in text.splitlines()]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"… and {len(lines) - MAX_LINES + 1} more lines"]
    return f"{label}: " + "\n  ".join(lines)
