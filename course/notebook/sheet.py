"""A verdict as HTML: a row a lab, and for each that is not green what to do about it. Pure: it runs nothing."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from course.catalog import Checkpoint, Lab
from course.marking.verdict import SYMBOLS, LabVerdict, Verdict, Word
from course.notebook.marker import Outcome

_LABEL = re.compile(r"^(Expected|Came|Stored|Why|Called|It printed|First): ?")
_CODE = re.compile(r"`([^`]+)`")
_TURNS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Characters that turn the direction of what follows them, and so could make a message read as another one."""

_AS_TEXT = ("Expected", "Why", "First", "Next")

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
.course-sheet .hint { border-left: 3px solid var(--jp-border-color1, #8888); padding: 2px 0 2px 10px; margin: 6px 0; }
.course-sheet :focus-visible { outline: 2px solid var(--jp-brand-color1, #1976d2); outline-offset: 2px; }
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


def headline(checkpoint: Checkpoint, verdict: Verdict) -> str:
    """How many of the labs that count are green, in words."""
    every = len(verdict.labs) == len(checkpoint.labs)
    counted = [lab for lab in verdict.labs if not (every and checkpoint.find_lab(lab.lab).optional)]
    green = sum(lab.is_green for lab in counted)
    if len(counted) == 1:
        return f"Lab {counted[0].lab} is {_word(counted[0].verdict)}."
    required = "required " if every and len(counted) < len(verdict.labs) else ""
    return f"Checkpoint {checkpoint.id}: {green} of {len(counted)} {required}labs are green."


def rows(checkpoint: Checkpoint, outcome: Outcome, cells: Mapping[str, int]) -> str:
    """The labs, the first that is not green opened, then which file was marked. `cells` counts those of each lab."""
    verdict = outcome.verdict
    if verdict is None:
        return f"<p>{_text(outcome.problem)}</p>"
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    items = [_item(checkpoint.find_lab(lab.lab), lab, cells, verdict, lab is first) for lab in verdict.labs]
    return f"<ul>{''.join(items)}</ul>{_foot(checkpoint, verdict, outcome.saved)}"


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
        f"{lab.cells}/{_counted(cells.get(lab.lab, 0), 'cell')}</span>"
    )
    if lab.is_green:
        return f'<li><div class="row">{row}</div></li>'
    detail = _detail(lab, Path(verdict.agent.path).parent)
    return f'<li><details{" open" if is_open else ""}><summary class="row">{row}</summary>{detail}</details></li>'


def _detail(lab: LabVerdict, folder: Path) -> str:
    parts = list(_parts(lab))
    text = "".join(f"<p>{_text(text)}</p>" for label, text in parts if not label)
    listed = "".join(_part(label, text) for label, text in parts if label)
    return f'<div class="detail">{text}<dl>{listed}{_where(lab, folder)}{_part("Next", _next(lab))}</dl></div>'


def _parts(lab: LabVerdict) -> Iterator[tuple[str, str]]:
    """The message's labelled parts, with "" for what has no label."""
    label, lines = "", list[str]()
    for line in (lab.message or "").splitlines():
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
    target = html.escape(json.dumps({"path": near, "id": f"#line={int(line) - 1}"}))
    command = f'data-commandlinker-command="rendermime:handle-local-link" data-commandlinker-args="{target}"'
    return f'<dt>Where</dt><dd><button type="button" {command}>{_text(near)}, line {_text(line)}</button></dd>'


def _next(lab: LabVerdict) -> str:
    if lab.verdict == "error":
        return "Report this, it is not your fault."
    do = {
        "not_attempted": f"Write lab {lab.lab} in agent.py",
        "not_run": "Mend what stopped it",
    }.get(lab.verdict, "Mend agent.py")
    return f"{do}, save, and press Mark again, or run `%mark {lab.lab}`."


def _foot(checkpoint: Checkpoint, verdict: Verdict, saved: float | None) -> str:
    path = Path(verdict.agent.path)
    marked = f"Marked in {verdict.seconds:.1f} s: {_text(str(path))}, sha256 {verdict.agent.sha256[:12]}"
    if saved is None:
        marked += ". It has been saved again since, so this verdict is not about what it says now."
    else:
        at = time.strftime("%H:%M:%S", time.localtime(saved))
        marked += f", as it was saved at {at}. What your editor has not saved does not count."
    return f'{_after(checkpoint, verdict)}<p class="foot">{marked}</p>'


def _after(checkpoint: Checkpoint, verdict: Verdict) -> str:
    """What comes next when nothing that was marked is left to do."""
    if any(not lab.is_green for lab in verdict.labs):
        return ""
    if len(verdict.labs) == len(checkpoint.labs):
        text = "All labs are green. In a terminal, `course` shows what comes next."
    else:
        text = "Go on with the next lab, or run `%mark` for all of them."
    return _part("Next", text).join(("<dl>", "</dl>"))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _word(verdict: Word) -> str:
    return verdict.replace("_", " ")


def _text(text: str) -> str:
    """`text` as HTML that shows it and does nothing else."""
    return html.escape(_TURNS.sub(lambda turn: f"\\u{ord(turn[0]):04x}", text))


def _prose(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", _text(text))
