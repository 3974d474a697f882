"""What the focused tests say about each lab. Pure: it runs nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from course.marking.finding import RIGGED, Finding, Place, from_fault, from_stop
from course.marking.focused import FocusedRun, FocusedTest, function_id, parameters
from course.marking.listen import Ran, Stop
from course.marking.steps import COLLECT, IMPORT, Fault


def focused_findings(place: Place, run: FocusedRun, labs: Sequence[str]) -> Mapping[str, Finding]:
    """A finding for each of `labs`, in which they are ordered."""
    everywhere = _about_all(run)
    if everywhere is not None:
        return dict.fromkeys(labs, everywhere)
    at_import = _about_import(place, run, labs[0])
    if at_import is not None:
        rest = f"agent.py could not be imported, so no test ran. See lab {labs[0]}."
        return {lab: at_import if lab == labs[0] else Finding("not_run", 0, rest) for lab in labs}
    return {lab: _about_lab(place, run, lab) for lab in labs}


def _about_all(run: FocusedRun) -> Finding | None:
    """A finding that no lab can escape: reports that cannot be, a control that passed, our own failure."""
    heard = run.heard
    passed = [name for name in run.controls.names if any(_is(name, id) and ran.passed for id, ran in heard.ran.items())]
    unplanned = COLLECT in heard.ran and heard.ran[COLLECT].passed and not _planned(run)
    if passed or unplanned:
        return Finding("tampered", 0, RIGGED)
    if heard.stop and heard.stop.word == "tampered":
        return Finding("tampered", 0, f"{heard.stop.text}\n{RIGGED}")
    if heard.stop and heard.stop.word == "error":
        return Finding("error", 0, f"{heard.stop.text}\n{heard.stop.errors}".strip())
    return None


def _planned(run: FocusedRun) -> bool:
    """True when every control, and nothing but what was asked for, is in the plan; or the run ended before it."""
    ids = {function_id(id) for id in run.heard.plan} - {IMPORT, COLLECT}
    asked = {test.id for test in run.tests} | set(run.controls.names)
    return (not ids and run.heard.stop is not None) or (ids <= asked and set(run.controls.names) <= ids)


def _is(name: str, id: str) -> bool:
    return function_id(id) == name


def _about_import(place: Place, run: FocusedRun, lab: str) -> Finding | None:
    stop = run.heard.stop
    for step, expected in ((IMPORT, "agent.py to be imported"), (COLLECT, "the tests to be collected with agent.py")):
        ran = run.heard.ran.get(step)
        if ran is None:
            missing = Stop("error", step, "The marking process did not come that far.")
            return from_stop(place, expected, stop or missing)
        if not ran.passed:
            return _import_finding(place, lab, expected, ran)
    return None


def _import_finding(place: Place, lab: str, expected: str, ran: Ran) -> Finding:
    fault = ran.fault or Fault("Unknown", "")
    advice = import_advice(place, fault)
    if advice is not None:
        return Finding("red", 0, advice, place.of(fault.mine or fault.frames))
    return from_fault(place, lab, expected, fault, ran.printed)


def import_advice(place: Place, fault: Fault) -> str | None:
    """What to do about the import faults that have one usual cause; None for any other."""
    if fault.kind == "MissingNames":
        return (
            f"Expected: agent.py to define {fault.text}.\nCame: it does not.\n"
            "Why: the tests import these names. The skeleton has them: look at the starter, and do not rename them."
        )
    if fault.kind in ("SyntaxError", "IndentationError", "TabError"):
        return f"Expected: agent.py to be Python.\nCame: {fault.kind}: {fault.text}"
    if fault.kind in ("ImportError", "AttributeError") and (own := _imports_itself(place, fault.text)):
        return (
            f"Expected: agent.py to define {own} itself.\nCame: it imports {own} from {place.checkpoint.import_name}.\n"
            "Why: while you work on this checkpoint, that module is your own agent.py."
        )
    module = fault.text.partition("No module named '")[2].partition("'")[0].partition(".")[0]
    beside = place.learner.parent / f"{module}.py"
    if fault.kind == "ModuleNotFoundError" and module and (beside.exists() or beside.with_suffix("").is_dir()):
        return (
            f"Expected: agent.py to stand alone.\nCame: it imports {module}, which lies beside it.\n"
            "Why: agent.py is the one file of yours that is marked. Move the code into it."
        )
    return None


def _imports_itself(place: Place, text: str) -> str | None:
    """The name that the learner's file tried to import from the module whose place it takes."""
    module = re.escape(place.checkpoint.import_name)
    partly = rf"partially initialized module '{module}'"
    forms = (rf"cannot import name '(\w+)' from (?:{partly}|'course.agent')", rf"{partly} has no attribute '(\w+)'")
    found = next(filter(None, (re.search(form, text) for form in forms)), None)
    return found and found[1]


def _about_lab(place: Place, run: FocusedRun, lab: str) -> Finding:
    tests = run.of(lab)
    passed = [test for test in tests if run.passed(test)]
    if len(passed) == len(tests):
        return Finding("green", len(passed))
    findings = [_about_test(place, run, test) for test in tests if test not in passed]
    first = next((finding for finding in findings if finding.word == "tampered"), findings[0])
    return Finding(first.word, len(passed), first.message, first.where)


def _about_test(place: Place, run: FocusedRun, test: FocusedTest) -> Finding:
    for id in run.heard.plan:
        if function_id(id) != test.id:
            continue
        expected = test.claim + _on(id)
        ran = run.heard.ran.get(id)
        if ran is None:
            return _unrun(place, run, id, expected)
        if not ran.passed:
            return from_fault(place, test.lab, expected, ran.fault, ran.printed, test.rule)
    return Finding("not_run", 0, f"Expected: {test.claim}.\nCame: this test did not run, so it cannot count.")


def _on(id: str) -> str:
    """ " (on trio)" for a test that ran on trio; asyncio is the usual case, and goes without saying."""
    return " (on trio)" if "trio" in parameters(id) else ""


def _unrun(place: Place, run: FocusedRun, id: str, expected: str) -> Finding:
    stop = run.heard.stop
    if stop is not None and stop.step == id:
        return from_stop(place, expected, stop)
    before = next((test for test in run.tests if stop and stop.step and _is(test.id, stop.step)), None)
    if before is not None:
        return Finding(
            "not_run", 0, f"Lab {before.lab} stopped the tests before this one. First: {place.command(before.lab)}"
        )
    return Finding("crashed", 0, f"Expected: {expected}.\nCame: {stop.text if stop else 'it never ran.'}")
