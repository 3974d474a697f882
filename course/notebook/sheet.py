"""A verdict as HTML: a row a lab, and for each that is not green what to do about it. Pure: it runs nothing."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from course.catalog import Checkpoint, Lab
from course.marking.verdict import SYMBOLS, LabVerdict, Verdict, Word
from course.notebook.marker import Outcome

_LABEL = re.compile(r"^(Expected|Came|Stored|Why|Called|It printed): ?")
_NEEDED = re.compile(r"\s*\b(?:First: course checkpoint \S+ --lab|See lab) (\d+\.\d+)\.?$", re.MULTILINE)
"""How a message ends that names the lab to go to first."""

_CODE = re.compile(r"`([^`]+)`")
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of what follows them, and so could make a message read as another one."""

_AS_TEXT = ("Expected", "Why", "Next")

_LINK = "rendermime:handle-local-link"
_IN_TURN = "apputils:run-all-enabled"
_FRAME = "filebrowser:refresh"
"""A command of JupyterLab's that does no harm and waits for the next frame, with which an editor has scrolled."""

_LINES_BELOW = 12
"""How much of a file to have in view below the line that a link goes to."""

CSS = """
<style>
.course-sheet { color: var(--jp-content-font-color1, inherit); line-height: 1.5; overflow-wrap: anywhere;
  font-family: var(--jp-content-font-family, sans-serif); font-size: var(--jp-content-font-size1, 14px);
  container-type: inline-size; padding: 2px 0; white-space: normal; }
.course-sheet p, .course-sheet ul { margin: 0; padding: 0; }
.course-sheet p.head { font-weight: 600; padding-bottom: 4px; }
.course-sheet ul { list-style: none; }
.course-sheet .row { display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 10px; padding: 3px 0 3px 18px;
  border-top: 1px solid var(--jp-border-color2, #8886); position: relative; }
.course-sheet summary { cursor: pointer; }
.course-sheet summary.row::before { content: "▸"; position: absolute; left: 2px; }
.course-sheet details[open] > summary.row::before { content: "▾"; }
.course-sheet .badge { color: #fff; border-radius: 3px; padding: 0 6px; white-space: nowrap; font-size: 0.93em;
  min-width: 9.4em; box-sizing: border-box; }
.course-sheet .green { background: #1a7f37; }
.course-sheet .red, .course-sheet .crashed { background: #b42318; }
.course-sheet .not_attempted, .course-sheet .not_run { background: #57606a; }
.course-sheet .timed_out { background: #8a5a00; }
.course-sheet .tampered, .course-sheet .error { background: #7a3fd0; }
.course-sheet .lab { font-weight: 600; min-width: 2.4em; }
.course-sheet .title { flex: 1 1 12em; }
.course-sheet .count { white-space: nowrap; color: var(--jp-content-font-color2, inherit); }
.course-sheet .detail { padding: 2px 0 10px 18px; }
.course-sheet .detail p { padding-bottom: 4px; }
.course-sheet dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 4px 12px; margin: 0; }
.course-sheet dl > dt { font-weight: 600; float: none; width: auto; }
.course-sheet dl > dd { white-space: pre-wrap; unicode-bidi: isolate; float: none; width: auto; margin: 0; }
.course-sheet dd.code, .course-sheet code { font-family: var(--jp-code-font-family, monospace); font-size: 0.93em; }
.course-sheet dd code { white-space: nowrap; }
.course-sheet code { background: var(--jp-layout-color2, #8883); border-radius: 3px;
  padding: 0 3px; color: inherit; }
.course-sheet button { font: inherit; color: inherit; background: none; border: 0; padding: 0; cursor: pointer;
  text-decoration: underline; text-align: left; }
.course-sheet .foot { color: var(--jp-content-font-color2, inherit); padding: 6px 0 2px;
  border-top: 1px solid var(--jp-border-color2, #8886); }
.course-sheet p.saved { padding-bottom: 4px; }
.course-sheet progress { width: 100%; height: 6px; margin-bottom: 4px; }
.course-sheet .old { filter: grayscale(1); }
.course-sheet .hint { border-left: 3px solid var(--jp-border-color1, #8888); padding: 2px 0 2px 10px; margin: 6px 0; }
.course-sheet :focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 2px; }
.course-sheet .gone { display: none; }
.jupyter-widgets-disconnected > .widget-html-content .course-sheet .gone { display: block; font-weight: 600; }
.course-panel .jupyter-widgets-disconnected::before, .course-panel.jupyter-widgets-disconnected::before,
.course-panel .jupyter-button.jupyter-widgets-disconnected { display: none; }
@container (max-width: 30em) {
  .course-sheet dl { display: block; }
  .course-sheet dl > dd { margin-bottom: 6px; }
}
</style>
"""


def framed(body: str) -> str:
    """`body` in the frame that the styles are for."""
    return f'<div class="course-sheet">{body}</div>'


def says(text: str) -> str:
    """One line that a screen reader announces when it appears."""
    return f'<p class="head" role="status">{_text(text)}</p>'


def gone(command: str) -> str:
    """What to do once the kernel behind this is gone; seen only then, in the place of the buttons."""
    return f'<p class="gone">{_prose(f"The kernel has changed. Run the set-up cell, then `{command}` again.")}</p>'


def works() -> str:
    """A bar for something that takes as long as it takes."""
    return '<progress aria-label="Marking"></progress>'


def old(rows: str) -> str:
    """`rows` as something that was found before."""
    return f'<div class="old"><p>Found before that:</p>{rows}</div>' if rows else ""


def headline(checkpoint: Checkpoint, verdict: Verdict) -> str:
    """How many of the labs that count are green, in words."""
    every = len(verdict.labs) == len(checkpoint.labs)
    counted = [lab for lab in verdict.labs if not (every and checkpoint.find_lab(lab.lab).optional)]
    green = sum(lab.is_green for lab in counted)
    if len(counted) == 1:
        return f"Lab {counted[0].lab} is {_word(counted[0].verdict)}."
    required = "required " if every and len(counted) < len(verdict.labs) else ""
    return f"Checkpoint {checkpoint.id}: {green} of {len(counted)} {required}labs are green."


def rows(checkpoint: Checkpoint, outcome: Outcome, cells: Mapping[str, int], left: Lab | None = None) -> str:
    """The labs, the first that is not green opened, then which file was marked.

    `cells` counts those of each lab; `left` is the lab to go on with when all of these are green.
    """
    verdict = outcome.verdict
    if verdict is None:
        return f"<p>{_text(outcome.problem)}</p>"
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    items = [_item(checkpoint.find_lab(lab.lab), lab, cells, verdict, lab is first) for lab in verdict.labs]
    after = "" if first else _part("Next", _after(left)).join(("<dl>", "</dl>"))
    return f"{_saved(outcome.saved)}<ul>{''.join(items)}</ul>{after}{_foot(verdict)}"


def hint(lab: Lab, level: int) -> str:
    """One hint; `level` counts from 1."""
    head = f"<b>Hint {level} of {len(lab.hints)} for lab {_text(lab.id)}</b>"
    return f'<p class="hint" role="status">{head}<br>{_prose(lab.hints[level - 1])}</p>'


def _item(of: Lab, lab: LabVerdict, cells: Mapping[str, int], verdict: Verdict, is_open: bool) -> str:
    row = (
        f'<span class="badge {lab.verdict}">{SYMBOLS[lab.verdict]} {_word(lab.verdict)}</span>'
        f'<span class="lab">{_text(lab.lab)}</span>'
        f'<span class="title">{_text(lab.title)}{" (optional)" if of.optional else ""}</span>'
        f'<span class="count">{lab.tests}/{_counted(of.tests, "test")} · '
        f"{_cells(of, lab, cells.get(lab.lab, 0))}</span>"
    )
    if lab.is_green:
        return f'<li><div class="row">{row}</div></li>'
    detail = _detail(lab, Path(verdict.agent.path).parent)
    return f'<li><details{" open" if is_open else ""}><summary class="row">{row}</summary>{detail}</details></li>'


def _cells(of: Lab, lab: LabVerdict, count: int) -> str:
    """How many cells passed; they are looked at once the lab's tests pass."""
    return f"{lab.cells if lab.tests == of.tests else '–'}/{_counted(count, 'cell')}"


def _detail(lab: LabVerdict, folder: Path) -> str:
    parts = list(_parts(_NEEDED.sub("", lab.message or "") if _needed(lab) else lab.message or ""))
    text = "".join(f"<p>{_text(text)}</p>" for label, text in parts if not label)
    listed = "".join(_part(label, text) for label, text in parts if label)
    return f'<div class="detail">{text}<dl>{listed}{_where(lab, folder)}{_part("Next", _next(lab))}</dl></div>'


def _parts(message: str) -> Iterator[tuple[str, str]]:
    """The message's labelled parts, with "" for what has no label."""
    label, lines = "", list[str]()
    for line in message.splitlines():
        starts = _LABEL.match(line)
        if starts:
            yield from [(label, "\n".join(lines))] if lines else []
            label, lines = starts[1], [line[starts.end() :]]
        else:
            lines.append(line.removeprefix("  ") if label else line)
    yield from [(label, "\n".join(lines))] if lines else []


def _part(label: str, text: str) -> str:
    kind = "text" if label in _AS_TEXT else "code"
    return f'<dt>{label}</dt><dd class="{kind}">{_prose(text) if label == "Next" else _text(text)}</dd>'


def _where(lab: LabVerdict, folder: Path) -> str:
    """The place to look at; in JupyterLab a click shows it in the editor."""
    if lab.where is None:
        return ""
    path, _, line = lab.where.rpartition(":")
    try:
        near = Path(path).relative_to(folder).as_posix()
    except ValueError:
        return f'<dt>Where</dt><dd class="code">{_text(lab.where)}</dd>'
    target = html.escape(json.dumps(_in_turn(_way_to(near, int(line)))))
    command = f'data-commandlinker-command="{_IN_TURN}" data-commandlinker-args="{target}"'
    return f'<dt>Where</dt><dd><button type="button" {command}>{_text(near)}, line {_text(line)}</button></dd>'


def _way_to(path: str, line: int) -> list[dict[str, str]]:
    """Where JupyterLab is to go for that line: some lines too far, and back.

    It scrolls no further than it must, so that the line would be the last in view. Another file than `agent.py` is
    opened after that was looked at: it comes where one looked last, and so does not cover the notebook.
    """
    places = [{"path": path, "id": f"#line={number}"} for number in (line - 1 + _LINES_BELOW, line - 1)]
    return places if path == "agent.py" else [{"path": "agent.py"}, {"path": path}, *places]


def _in_turn(places: Sequence[dict[str, str]]) -> dict[str, Any]:
    """The arguments to go to one after the other. JupyterLab hands the same ones to all commands that it is given."""
    first, *rest = places
    if not rest:
        return {"commands": [_LINK], "args": first}
    return {"commands": [_LINK, _FRAME, _IN_TURN], "args": {**first, **_in_turn(rest)}}


def _next(lab: LabVerdict) -> str:
    if lab.verdict == "error":
        return "Report this, it is not your fault."
    needed = _needed(lab)
    if needed:
        do = "Write" if "not written" in (lab.message or "") else "Mend"
        return f"{do} lab {needed} first, save, and run `%mark {needed}`."
    do = {
        "not_attempted": f"Write lab {lab.lab} in agent.py",
        "not_run": "Mend what stopped it",
    }.get(lab.verdict, "Mend agent.py")
    return f"{do}, save, and press Mark again, or run `%mark {lab.lab}`."


def _needed(lab: LabVerdict) -> str | None:
    """The lab to go to first, None when there is none. Only a message of ours names one, and no learner's output."""
    found = _NEEDED.search(lab.message or "") if lab.verdict == "not_run" else None
    return found and found[1]


def _after(left: Lab | None) -> str:
    """What comes next when nothing that was marked is left to do."""
    if left is None:
        return "All labs are green. In a terminal, `course` shows what comes next."
    if left.optional:
        return f"All required labs are green. Lab {left.id}, {left.title}, is optional: `%mark {left.id}`."
    return f"Go on with lab {left.id}, {left.title}, then run `%mark {left.id}`."


def _saved(at: float | None) -> str:
    if at is None:  # the line above says it
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(at))
    return f'<p class="saved">Marked as saved at {clock}; what is not saved does not count.</p>'


def _foot(verdict: Verdict) -> str:
    """Which file was marked. Its hash is for whoever looks for it."""
    path, sha256 = Path(verdict.agent.path), f"sha256 {verdict.agent.sha256[:12]}"
    return f'<p class="foot" title="{sha256}">Marked in {verdict.seconds:.1f} s: {_text(str(path))}</p>'


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _word(verdict: Word) -> str:
    return verdict.replace("_", " ")


def _text(text: str) -> str:
    """`text` as HTML that shows it and does nothing else."""
    return html.escape(_TURNS.sub(lambda turn: f"\\u{ord(turn[0]):04x}", text))


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", _text(text))
