"""How the watching is shown: a screen drawn anew each time, or one line a marking where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console, Group, RenderableType
from rich.text import Text

from course.marking.table import near, rows, word
from course.marking.verdict import LabVerdict, Verdict
from course.practice import hints
from course.practice.plain import visible
from course.practice.watch import View


class Screen:
    """Draws on a terminal. `cells` says how many notebook cells count for each lab."""

    def __init__(self, console: Console, cells: Mapping[str, int]) -> None:
        self._console = console
        self._cells = cells

    def draw(self, view: View) -> None:
        self._console.clear()
        if self._console.is_dumb_terminal:  # which cannot clear
            self._console.rule(characters="-")
        self._console.print(Group(*self._parts(view)))

    def _parts(self, view: View) -> Iterator[RenderableType]:
        yield Text(f"Checkpoint {view.checkpoint.id}: {view.checkpoint.title}", style="bold")
        yield _status(view)
        yield Text()
        if view.page == "hints" and view.hints is not None:
            yield hints.render(view.hints, "press h", "save")
        elif view.page == "list" and view.verdict is not None:
            yield rows(view.verdict, view.checkpoint, self._cells)
        elif view.shown is not None:
            yield _lab(view, view.shown, self._cells)
        yield Text()
        if view.note:
            yield Text(visible(view.note), style="bold")
        yield _keys(view)


class Lines:
    """Prints one line for each verdict, or for what prevents one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._verdict: Verdict | None = None
        self._note = ""

    def draw(self, view: View) -> None:
        is_new = view.verdict is not self._verdict or view.note != self._note
        if view.is_marking or not is_new:
            return
        self._verdict, self._note = view.verdict, view.note
        text = view.note or (_line(view, view.verdict) if view.verdict else "")
        self._console.print(Text(visible(text.replace("\n", " "))), soft_wrap=True)


def _line(view: View, verdict: Verdict) -> str:
    lab = next((lab for lab in verdict.labs if not lab.is_green), None)
    said = f"{view.at}  {_words(verdict.verdict)}: {_count(view, verdict)}"
    if lab is None:
        return f"{said}, {verdict.seconds:.1f} s"
    why = (lab.message or "").partition("\n")[0].removeprefix(f"Lab {lab.lab}: ")
    where = f" {near(lab.where)}" if lab.where else ""
    return f"{said}; lab {lab.lab} is {_words(lab.verdict)}: {why}{where}, {verdict.seconds:.1f} s"


def _status(view: View) -> Text:
    """Which file, how it stands, and what is going on."""
    text = Text(visible(near(str(view.agent_py))) + ("  (looking for saves now and then)" if view.looks else "") + "\n")
    if view.verdict is not None:
        text.append(f"{_count(view, view.verdict)}  {view.at}, {view.verdict.seconds:.1f} s")
        text.append(_changes(view))
    return text.append("  marking …" if view.is_marking else "")


def _count(view: View, verdict: Verdict) -> str:
    required = [lab.lab for lab in verdict.labs if not view.checkpoint.find_lab(lab.lab).optional]
    green = sum(lab.is_green for lab in verdict.labs if lab.lab in required)
    return f"{green} of {len(required)} labs are green"


def _changes(view: View) -> str:
    """What the last save has changed, one lab after the other."""
    before = {lab.lab: lab.verdict for lab in view.before.labs} if view.before else {}
    changed = [
        f"{lab.lab} {_words(before[lab.lab])} → {_words(lab.verdict)}"
        for lab in (view.verdict.labs if view.verdict else ())
        if before.get(lab.lab, lab.verdict) != lab.verdict
    ]
    return "\nChanged: " + ", ".join(changed) if changed else ""


def _lab(view: View, lab: LabVerdict, cells: Mapping[str, int]) -> Text:
    of = view.checkpoint.find_lab(lab.lab)
    passed = f"{lab.tests} of {of.tests} tests and {lab.cells} of {cells.get(lab.lab, 0)} cells passed"
    text = Text.assemble((f"Lab {lab.lab}: {lab.title}", "bold"), "\n", word(lab.verdict), f"  {passed}")
    if not lab.is_green:
        where = f"\nWhere: {near(lab.where)}" if lab.where else ""
        why = (lab.message or "").removeprefix(f"Lab {lab.lab}: ")
        return text.append(visible(f"\n{why}{where}"))
    if view.next is None:
        return text.append("\nEvery lab is green. Press q, then type  ").append("course", "bold")
    optional = ", which is optional" if view.next.optional else ""
    return text.append(f"\nPress n for lab {view.next.id}: {view.next.title}{optional}.")


def _keys(view: View) -> Text:
    keys = [("h", "hint"), ("n", "next lab"), ("l", "list of labs" if view.page != "list" else "back"), ("q", "quit")]
    if view.shown is not None and not view.shown.is_green:
        keys[1] = ("n", "next lab, once this is green")
    return Text("   ").join(Text.assemble((key, "bold"), f" {what}") for key, what in keys)


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")
