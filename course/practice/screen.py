"""How the watching is shown: a screen drawn anew each time, or one line a marking where there is no terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.console import Console, Group, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

from course.marking.table import detail, near, passed, rows, why, word
from course.marking.verdict import LabVerdict, Verdict
from course.practice import hints
from course.practice.folder import option
from course.practice.hints import Hints
from course.practice.plain import visible
from course.practice.watch import View

LEFT_OUT = "… {count} more lines: make the window higher to see them."


class Screen:
    """Draws on a terminal. `cells` says how many notebook cells count for each lab."""

    def __init__(self, console: Console, cells: Mapping[str, int]) -> None:
        self._console = console
        self._cells = cells

    def draw(self, view: View) -> None:
        self._console.clear()
        if self._console.is_dumb_terminal:  # which cannot clear
            self._console.rule(characters="-")
        self._console.print(self._page(view), crop=False)

    def _page(self, view: View) -> RenderableType:
        """Head, body and keys. A body that is too high for the terminal is cut, so that the head stays in sight."""
        head, foot = _head(view), _foot(view)
        body = self._lines(Group(*self._body(view), Text()))
        room = self._console.height - len(self._lines(head)) - len(self._lines(foot)) - 1
        if self._console.is_terminal and len(body) > room > 1:
            body, left_out = body[: room - 2], len(body) - room + 1
            body += self._lines(Group(Text(LEFT_OUT.format(count=left_out), no_wrap=True, overflow="ellipsis"), Text()))
        return Group(head, Segments([part for line in body for part in (*line, Segment.line())]), foot)

    def _lines(self, what: RenderableType) -> list[list[Segment]]:
        return [list(line) for line in Segment.split_lines(self._console.render(what))]

    def _body(self, view: View) -> Iterator[RenderableType]:
        if view.page == "hints" and view.hints is not None:
            yield hints.render(view.hints, *_steps(view, view.hints), is_short=True)
        elif view.page == "list" and view.verdict is not None:
            yield rows(view.verdict, view.checkpoint, self._cells, self._console.width)
        elif view.broken is not None:
            of = view.checkpoint.find_lab(view.broken.lab)
            yield _visible(detail(view.broken, of, self._cells, whole=True))
        elif view.shown is not None:
            yield _lab(view, view.shown, self._cells)


class Lines:
    """Prints one line for each verdict, or for what prevents one."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._verdict: Verdict | None = None
        self._note = ""

    def draw(self, view: View) -> None:
        note = str(view.gone or view.note)
        is_new = view.verdict is not self._verdict or note != self._note
        if view.is_marking or not is_new:
            return
        self._verdict, self._note = view.verdict, note
        text = note or (_line(view, view.verdict) if view.verdict else "")
        self._console.print(Text(visible(text.replace("\n", " "))), soft_wrap=True)


def _line(view: View, verdict: Verdict) -> str:
    lab = next((lab for lab in verdict.labs if not lab.is_green), None)
    seconds = f"{verdict.seconds:.1f} s"
    if lab is None:
        return f"{view.at}  {_words(verdict.verdict)}: {_count(view, verdict)}, {seconds}"
    said = f"lab {lab.lab} is {_words(lab.verdict)}" if view.broken is None else "agent.py cannot be imported"
    where = f" Where: {near(lab.where)}" if lab.where else ""
    return f"{view.at}  {_words(verdict.verdict)}: {_count(view, verdict)}, {seconds}; {said}: {_in_short(lab)}{where}"


def _in_short(lab: LabVerdict) -> str:
    """The first line of the message, and the one that says what came."""
    first, *rest = why(lab).splitlines() or [""]
    return " ".join([first, *[line for line in rest if line.startswith("Came: ")][:1]])


def _head(view: View) -> Group:
    """Which file, how it stands, and what is going on."""
    text = Text.assemble((f"Checkpoint {view.checkpoint.id}: {view.checkpoint.title}", "bold"), "\n")
    text.append(visible(near(str(view.agent_py))) + ("  (looking for saves now and then)" if view.looks else "") + "\n")
    if view.verdict is not None:
        stands = "agent.py cannot be imported" if view.broken else _count(view, view.verdict)
        text.append(f"{stands}  {view.at}, {view.verdict.seconds:.1f} s")
        text.append("" if view.broken else _changes(view))
    text.append("  marking …" if view.is_marking else "")
    return Group(text, *([Text(), view.gone] if view.gone else []), Text())


def _foot(view: View) -> Group:
    return Group(*([Text(visible(view.note), style="bold")] if view.note else []), _keys(view))


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
    if not lab.is_green:
        return _visible(detail(lab, of, cells))
    text = Text.assemble((f"Lab {lab.lab}: {lab.title}", "bold"), "\n", word(lab.verdict))
    text.append(f"  {passed(lab, of, cells)}")
    if view.next is None:
        return text.append("\nEvery lab is green. Press q, then type  ").append("course", "bold")
    optional = ", which is optional" if view.next.optional else ""
    return text.append(f"\nPress n for lab {view.next.id}: {view.next.title}{optional}.")


def _visible(text: Text) -> Text:
    """The same, with nothing in it that would steer the terminal: every control character is one picture."""
    text.plain = visible(text.plain)
    return text


def _steps(view: View, found: Hints) -> tuple[RenderableType, RenderableType]:
    """What the keys do next while a hint is shown."""
    where = option(view.checkpoint, view.agent_py.parent)
    more = Text(f"Hints left: {found.left}. For the next one, press h.") if found.left else hints.more(found, where)
    if found.is_green:
        return more, Text(f"Lab {found.lab.id} is green already. Press b to go back to it.")
    return more, Text(f"Next: write lab {found.lab.id}, then save.")


def _keys(view: View) -> Text:
    is_page = view.page != "lab"
    keys = [("h", "next hint" if view.page == "hints" else "hint")]
    if view.page == "hints" and view.hints is not None and not view.hints.left:
        keys = []
    if view.shown is not None and view.shown.is_green and view.next is not None:
        keys.append(("n", "next lab"))
    keys += [("b", "back to the lab")] if is_page else []
    keys += [("l", "list of labs")] if view.page != "list" else []
    keys.append(("q", "quit"))
    return Text("   ").join(Text.assemble((key, "bold"), f" {what}") for key, what in keys)


def _words(verdict: str) -> str:
    return verdict.replace("_", " ")
