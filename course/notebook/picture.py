"""The picture of a timeline: moments in, one SVG document out."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import quote
from xml.etree import ElementTree

from course.notebook.chart import Bar, Chart, Run, Said
from course.notebook.moments import Moment

# All lengths are in pixels. A lane's height is a row's; "you" and the tools may need several rows.
GUTTER = 88  # the actors' names
STEP = 64  # from one moment to the next
TOP = 30
SAID_ROW = 30
SAID_GAP = 6  # below the last row, so that every arrow can be seen
AGENT_ROW = 46
BAR_ROW = 26
CHARACTER = 6.8  # an average one in a wide font

# Colours follow JupyterLab's theme where the picture stands in its page, and the reader's scheme elsewhere.
# Each meaning has a shape or a word as well: dashed is broken, dotted waits.
STYLE = """
.agent-timeline { font: 12px system-ui, sans-serif; background: var(--paper);
  --ink: var(--jp-content-font-color1, #1f2328); --faint: var(--jp-border-color2, #d0d7de);
  --paper: var(--jp-layout-color0, #ffffff);
  --model: #2f6fde; --tool: #0f8a6d; --wait: #b35c00; --stop: #c92a2a; }
@media (prefers-color-scheme: dark) { .agent-timeline {
  --ink: var(--jp-content-font-color1, #e6edf3); --faint: var(--jp-border-color2, #4a525b);
  --paper: var(--jp-layout-color0, #111111);
  --model: #5b93f5; --tool: #2bb58f; --wait: #f0953a; --stop: #f0696b; } }
.agent-timeline .paper { fill: var(--paper); }
.agent-timeline text { fill: var(--ink); stroke: var(--paper); stroke-width: 3px; paint-order: stroke;
  stroke-linejoin: round; }
.agent-timeline .name { font-weight: 600; }
.agent-timeline .grid { stroke: var(--faint); stroke-width: 1; }
.agent-timeline .bar { stroke-width: 1.5; fill-opacity: 0.22; }
.agent-timeline .fate { font-size: 10.5px; }
.agent-timeline .on-bar { stroke: none; }
.agent-timeline .run { fill: var(--ink); fill-opacity: 0.07; stroke: var(--ink); }
.agent-timeline .turn { stroke: var(--ink); stroke-width: 1; stroke-opacity: 0.6; }
.agent-timeline .model { fill: var(--model); stroke: var(--model); }
.agent-timeline .tool { fill: var(--tool); stroke: var(--tool); }
.agent-timeline .broken, .agent-timeline .skipped { fill: var(--stop); stroke: var(--stop); stroke-dasharray: 5 3; }
.agent-timeline .open { stroke-dasharray: 2 3; }
.agent-timeline .said { stroke: var(--ink); fill: var(--ink); stroke-width: 1.5; }
.agent-timeline .wait { stroke: var(--wait); fill: var(--wait); stroke-width: 2; stroke-dasharray: 2 3; }
.agent-timeline .stop { stroke: var(--stop); fill: var(--stop); stroke-width: 1.5; }
.agent-timeline .solid { stroke-dasharray: none; }
"""

# In JupyterLab's page the theme decides, and not the reader's scheme. An image cannot see the theme's colours.
# A theme's colours number 0 are those that stand out from its paper at 3 to 1 or more.
PAGE_STYLE = """
[data-jp-theme-light="false"] img.agent-timeline { color-scheme: dark; }
[data-jp-theme-light="true"] img.agent-timeline { color-scheme: light; }
svg.agent-timeline { max-width: 100%; height: auto; }
[data-jp-theme-light] svg.agent-timeline { --model: var(--jp-brand-color0, #2f6fde);
  --tool: var(--jp-accent-color0, #0f8a6d); --wait: var(--jp-warn-color0, #b35c00);
  --stop: var(--jp-error-color0, #c92a2a); }
"""

_LEAST_SCALE = 0.7
"""A picture is made smaller to fit its place, and no smaller than this: then it scrolls."""


def draw(moments: Sequence[Moment], begin: int = 0, end: int | None = None, room: int = 0) -> str:
    """The picture as an SVG document: time runs left to right, one lane an actor. Same moments, same text.

    It shows the moments from `begin` to before `end`; what lasts longer is cut. It has the lanes and the height of all
    `moments`, and is as wide as the first `room` of them from `begin` on need, so that it stands still as `end` moves.
    """
    return ElementTree.tostring(_Picture(moments, begin, end, room).draw(), encoding="unicode")


def inline(svg: str) -> str:
    """A drawn picture as a part of an HTML page, as wide as its place as far as it can be read then."""
    return f'<div style="min-width: {_least_width(svg)}px"><style>{PAGE_STYLE}</style>{svg}</div>'


def framed(moments: Sequence[Moment]) -> str:
    """The picture as an HTML image that says in words what it shows. It loads nothing and needs no trust."""
    svg = draw(moments)
    fit = f"max-width: 100%; min-width: {_least_width(svg)}px; height: auto"
    source = html.escape("data:image/svg+xml," + quote(svg, safe=" '/:;=,()!*@?"))
    alt = html.escape(f"{summary(moments)} {description(moments)}")
    image = f'<img class="agent-timeline" style="{fit}" alt="{alt}" src="{source}">'
    return f'<style>{PAGE_STYLE}</style><div style="overflow-x: auto">{image}</div>'


def _least_width(svg: str) -> int:
    return round(_LEAST_SCALE * int(ElementTree.fromstring(svg).get("width", "0")))


def summary(moments: Sequence[Moment]) -> str:
    """What to see, in one sentence."""
    runs = len(Chart(moments).runs)
    return f"Timeline of {_counted(runs, 'run')} in {_counted(len(moments), 'moment')}."


def description(moments: Sequence[Moment], begin: int = 0) -> str:
    """Every moment from `begin` on, in words."""
    told = enumerate(moments[begin:], begin)
    return " ".join(f"t{number}, {moment.actor}: {moment.words}." for number, moment in told)


class _Picture:
    """One drawing under way: a chart, where its lanes and rows lie, and the SVG so far."""

    def __init__(self, moments: Sequence[Moment], begin: int, end: int | None, room: int) -> None:
        self.moments = moments[:end]
        self.begin = begin
        self.chart = Chart(self.moments, begin)
        self.said_rows = _said_rows(self.chart.said)
        every = self.chart if end is None else Chart(moments)
        self.bars = {lane: [bar for bar in self.chart.bars if bar.lane == lane] for lane in every.lanes}
        self.bar_rows = {lane: _bar_rows(bars) for lane, bars in self.bars.items()}
        self.top: dict[str, int] = {}  # of each lane
        self.bottom = TOP
        self._add_lane("you", SAID_ROW * _count(_said_rows(every.said)) + SAID_GAP)
        self._add_lane("agent", AGENT_ROW)
        for lane in every.lanes:
            self._add_lane(lane, BAR_ROW * _count(_bar_rows([bar for bar in every.bars if bar.lane == lane])))
        self.width = max(_width(self.chart), _width(Chart(moments[: begin + room], begin)) if room else 0)
        self.root = ElementTree.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        self.root.set("class", "agent-timeline")

    def draw(self) -> ElementTree.Element:
        height = self.bottom + 6
        for name, value in {"width": self.width, "height": height, "viewBox": f"0 0 {self.width} {height}"}.items():
            self.root.set(name, str(value))
        self._text("title", summary(self.moments))
        self._text("desc", description(self.moments, self.begin))
        self._text("style", STYLE)
        self._shape("rect", "paper", x=0, y=0, width=self.width, height=height)
        self._draw_grid()
        for run in self.chart.runs:
            self._draw_run(run)
        for lane, bars in self.bars.items():
            for bar, row in zip(bars, self.bar_rows[lane], strict=True):
                self._draw_bar(bar, self.top[lane] + row * BAR_ROW)
        for said, row in zip(self.chart.said, self.said_rows, strict=True):
            self._draw_said(said, self.top["agent"] - SAID_GAP - (row + 1) * SAID_ROW)
        return self.root

    def _draw_grid(self) -> None:
        for number in range(len(self.moments) - self.begin):
            self._label(_x(number), 16, f"t{self.begin + number}", anchor="middle")
            self._line("grid", _x(number), 22, _x(number), self.bottom)
        for lane, top in self.top.items():
            self._line("grid", 0, top, self.width, top)
            self._label(8, top + 18, _short(lane, GUTTER - 16), "name")

    def _draw_run(self, run: Run) -> None:
        """A box from start to end with its name, a part for each turn, and behind it how the run ended."""
        y, left, right = self.top["agent"] + 4, _x(run.start), _x(run.end)
        self._box("run" if run.status else "run open", left, y, right, AGENT_ROW - 8)
        self._label(left + 6, y + 14, _short(run.name, right - left), "on-bar")
        for turn in run.turns:
            start, end = _x(turn.start), _x(turn.end)
            self._label(start + 6, y + 32, _short(f"turn {turn.number}", end - start), "on-bar")
            if turn.end != run.end:
                self._line("turn", end, y, end, y + AGENT_ROW - 8)
        self._label(right + 4, y + 23, run.status or "runs on", "fate")

    def _draw_bar(self, bar: Bar, y: int) -> None:
        """From start to end, with what came of it; a mark for each report of progress."""
        left, right = _x(bar.start), _x(bar.end)
        kind = "model" if bar.lane == "model" else "tool"
        look = bar.look if bar.look != "whole" else ""
        self._box(f"bar {kind} {look}".rstrip(), left, y + 4, right, 18)
        for tick in bar.ticks:
            self._line(f"{kind} solid", _x(tick), y + 4, _x(tick), y + 9)
        if bar.look == "skipped":
            self._label(left + 8, y + 17, bar.label, "fate")
        else:
            self._label(left + 5, y + 17, _short(bar.label, right - left - 6), "on-bar")

    def _draw_said(self, said: Said, y: int) -> None:
        """The words where they were said, a dotted line while they wait, and an arrow where they enter."""
        left, right, middle = _x(said.start), _x(said.end), y + 22
        kind = {"prompt": "said", "cancel": "stop"}.get(said.kind, "wait")
        if said.start != said.end:
            self._line(kind, left, middle, right, middle)
        self._shape("circle", f"{kind} solid", cx=left, cy=middle, r=4)
        if said.fate == "entered":
            tip = self.top["agent"] + 4
            self._line(f"{kind} solid", right, middle, right, tip - 6)
            self._shape("path", f"{kind} solid", d=f"M{right - 4} {tip - 7}H{right + 4}L{right} {tip}Z")
        else:
            if said.fate != "waits":
                self._shape("path", f"{kind} solid", d=f"M{right - 4} {middle - 4}l8 8m0 -8l-8 8")
            self._label(right + 8, middle + 4, said.fate, "fate")
        self._label(left - 4, y + 13, said.label)

    def _add_lane(self, name: str, height: int) -> None:
        self.top[name] = self.bottom
        self.bottom += height

    def _shape(self, tag: str, look: str, **attributes: object) -> None:
        element = ElementTree.SubElement(self.root, tag, {name: str(value) for name, value in attributes.items()})
        element.set("class", look)

    def _box(self, look: str, left: int, y: int, right: int, height: int) -> None:
        """A box that hides the grid behind it."""
        for each in ("paper", look):
            self._shape("rect", each, x=left, y=y, width=max(right - left, 4), height=height, rx=3)

    def _line(self, look: str, x1: int, y1: int, x2: int, y2: int) -> None:
        self._shape("line", look, x1=x1, y1=y1, x2=x2, y2=y2)

    def _label(self, x: int, y: int, words: str, look: str = "", anchor: str = "start") -> None:
        if words:
            element = ElementTree.SubElement(self.root, "text", x=str(x), y=str(y))
            element.text = words
            if look:
                element.set("class", look)
            if anchor != "start":
                element.set("text-anchor", anchor)

    def _text(self, tag: str, words: str) -> None:
        ElementTree.SubElement(self.root, tag).text = words


def _x(moment: int) -> int:
    return GUTTER + 14 + moment * STEP


def _pixels(words: str) -> int:
    return round(len(words) * CHARACTER)


def _short(words: str, pixels: int) -> str:
    """As much of the words as fits."""
    fits = int(pixels / CHARACTER)
    words = "".join([char if char.isprintable() else " " for char in words])
    if len(words) <= fits:
        return words
    return f"{words[: fits - 1].rstrip()}…" if fits >= 4 else ""


def _width(chart: Chart) -> int:
    """Wide enough for the last words of every lane."""
    ends = [_x(chart.last) + 74]
    ends += [_x(said.start) + _pixels(said.label) for said in chart.said]
    ends += [_x(said.end) + 74 for said in chart.said if said.fate != "entered"]
    return max(ends) + 6


def _said_rows(said: Sequence[Said]) -> list[int]:
    return _rows([_said_extent(each) for each in said])


def _bar_rows(bars: Sequence[Bar]) -> list[int]:
    return _rows([(bar.start, bar.end) for bar in bars])


def _said_extent(said: Said) -> tuple[float, float]:
    """From where to where its words and its line reach, in moments."""
    words = said.start + _pixels(said.label) / STEP
    fate = 0 if said.fate == "entered" else 1.3
    return said.start, max(words, said.end + fate)


def _rows(extents: Sequence[tuple[float, float]]) -> list[int]:
    """A row for each, the lowest one in which nothing is in its way. They may touch."""
    rows: list[list[tuple[float, float]]] = []
    places = []
    for start, end in extents:
        free = (n for n, row in enumerate(rows) if all(end <= left or right <= start for left, right in row))
        place = next(free, len(rows))
        if place == len(rows):
            rows.append([])
        rows[place].append((start, max(end, start + 0.01)))
        places.append(place)
    return places


def _count(rows: Sequence[int]) -> int:
    """How many rows these are; a lane has one even when nothing is on it."""
    return max(rows, default=0) + 1


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"
