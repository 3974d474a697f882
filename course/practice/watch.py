"""Marks on every save, and shows what came of it; on a terminal, single keys ask for more."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Literal, Protocol

import msgspec
from msgspec.structs import replace

from course.catalog import Checkpoint, Lab
from course.errors import CourseError
from course.marking.table import Step, without_import
from course.marking.verdict import LabVerdict, Verdict
from course.practice import hints, progress
from course.practice.folder import into
from course.practice.hints import Hints
from course.practice.keys import Keys
from course.practice.marker import Marker
from course.practice.saves import Saves
from course.workspace import checkpoint_in

NEXT = "Lab {lab} is not green yet. n goes on once it is."
GONE = "agent.py is not there. It is marked when it is back. To lay the starter, type"
ONCE_MORE = " To see it, press h again."

WAKE_EVERY = 0.5
"""Seconds after which a signal that came at the wrong moment is heard of."""


class View(msgspec.Struct, frozen=True):
    """All that there is to show.

    `verdict` is the last one and `before` the one before it of a file that could be imported, `lab` the one to look
    at, `page` what of it. `note` is one line for the learner. `gone` is what to do while agent.py is not there. `looks`
    says that there are no file events, and `at` when the verdict came.
    """

    checkpoint: Checkpoint
    agent_py: Path
    is_marking: bool = True
    verdict: Verdict | None = None
    before: Verdict | None = None
    at: str = ""
    lab: str = ""
    page: Literal["lab", "list", "hints"] = "lab"
    hints: Hints | None = None
    note: str = ""
    gone: Step | None = None
    looks: bool = False

    def of(self, lab: str) -> LabVerdict | None:
        """The verdict on a lab."""
        found = self.verdict.labs if self.verdict else ()
        return next((one for one in found if one.lab == lab), None)

    @property
    def broken(self) -> LabVerdict | None:
        """Why agent.py cannot be imported at all; None when it can."""
        return without_import(self.verdict) if self.verdict else None

    @property
    def shown(self) -> LabVerdict | None:
        """The lab to look at: `lab`, unless one that comes before it is not green, as every lab is in a broken file."""
        if self.broken is not None and self.lab:
            return self.of(self.lab)
        ids = [lab.id for lab in in_order(self.checkpoint)]
        until = ids[: ids.index(self.lab) + 1] if self.lab else ids
        verdicts = [found for id in until if (found := self.of(id))]
        return next((one for one in verdicts if not one.is_green), verdicts[-1] if verdicts else None)

    @property
    def next(self) -> Lab | None:
        """The first lab that is not green, optional ones last; None when all are."""
        return next((lab for lab in in_order(self.checkpoint) if not _is_green(self.of(lab.id))), None)


def _is_green(lab: LabVerdict | None) -> bool:
    return lab is not None and lab.is_green


def in_order(checkpoint: Checkpoint) -> list[Lab]:
    """The labs as they are gone through: optional ones last."""
    return sorted(checkpoint.labs, key=lambda lab: lab.optional)


class Show(Protocol):
    """Where the view goes: a screen, or lines of text."""

    def draw(self, view: View) -> None: ...


class Watch:
    """What the events do to the view. It draws after each; nothing here waits."""

    def __init__(self, checkpoint: Checkpoint, folder: Path, show: Show, *, lab: str = "", looks: bool = False) -> None:
        self.view = View(checkpoint, folder / "agent.py", lab=lab, looks=looks)
        self._folder = folder
        self._keeps = checkpoint_in(folder) == checkpoint
        self._show = show

    def saved(self) -> None:
        self._draw(is_marking=True, note="", gone=None)

    def gone(self) -> None:
        self._draw(is_marking=False, gone=Step(GONE, into(self.view.checkpoint, self._folder)))

    def redraw(self) -> None:
        self._draw()

    def marked(self, verdict: Verdict) -> None:
        """A new verdict: it is kept as progress, and any hint makes room for it."""
        note = ""
        try:
            if self._keeps:  # as `course checkpoint` does: in a practice folder alone
                progress.record(self.view.checkpoint, self._folder, verdict)
        except OSError as error:
            note = f"Your progress could not be kept: {error.strerror or error}."
        page = "list" if self.view.page == "list" else "lab"
        before = self.view.before if self.view.broken else self.view.verdict
        now = replace(self.view, verdict=verdict, before=before, at=time.strftime("%H:%M:%S"))
        if not now.lab and not now.broken:
            now = replace(now, lab=now.next.id if now.next else verdict.labs[-1].lab)
        self.view = now
        self._draw(is_marking=False, page=page, note=note)

    def failed(self, error: CourseError) -> None:
        self._draw(is_marking=False, note=str(error))

    def pressed(self, key: str) -> bool:
        """Do what the key asks for; False when that is to leave."""
        match key.lower():
            case "q":
                return False
            case "h":
                self._hint()
            case "n":
                self._next()
            case "l":
                self._draw(page="lab" if self.view.page == "list" else "list", note="")
            case "b":
                self._draw(page="lab", note="")
            case _:
                pass
        return True

    def _next(self) -> None:
        shown, next = self.view.shown, self.view.next
        if shown is not None and not shown.is_green:
            self._draw(note=NEXT.format(lab=shown.lab))
        elif shown is not None:
            self._draw(lab=next.id if next else self.view.lab, page="lab", note="")

    def _hint(self) -> None:
        if self.view.shown is None:
            return
        checkpoint, lab = self.view.checkpoint, self.view.checkpoint.find_lab(self.view.shown.lab)
        try:
            found = hints.hints(checkpoint, lab, progress.read(checkpoint, self._folder))
            found = replace(found, is_green=self.view.shown.is_green, next=self.view.next)
            question = hints.LAST.format(lab=lab.id) + ONCE_MORE
            if found.is_last_step and self.view.note != question:
                self._draw(note=question)
                return
            if self._keeps:
                progress.record_hint(checkpoint, self._folder, lab.id, found.level)
        except (CourseError, OSError) as error:
            self._draw(note=str(error))
        else:
            self._draw(page="hints", hints=found, note="")

    def _draw(self, **changes: object) -> None:
        self.view = replace(self.view, **changes)
        self._show.draw(self.view)


def watch(checkpoint: Checkpoint, folder: Path, show: Show, *, lab: str = "", poll: bool = False) -> None:
    """Mark `folder`'s agent.py now and on every save, until q is pressed. Nothing is left behind, whatever ends it.

    `lab` is the one to look at; by default the first that is not green. With `poll` the file is looked at several
    times a second, instead of waiting for file events. Raises what prevents any marking.
    """
    events: SimpleQueue[tuple[str, object]] = SimpleQueue()  # whose put() may interrupt itself, in a signal handler
    agent_py = folder / "agent.py"
    marker = Marker(checkpoint, agent_py, lambda answer: events.put(("answer", answer)))
    saves = Saves(agent_py, lambda seen: events.put((seen, None)), poll=poll)
    watching = Watch(checkpoint, folder, show, lab=lab, looks=poll)
    marker.start()
    saves.start()
    try:
        with Keys(lambda key: events.put(("key", key)), lambda: events.put(("redraw", None))):
            marker.mark()
            watching.saved()
            while _handle(watching, marker, *_next(events)):
                pass
    finally:
        saves.stop()
        marker.stop()


def _next(events: SimpleQueue[tuple[str, object]]) -> tuple[str, object]:
    """The next event. It is waited for a little at a time: a signal right before a wait would not end that wait."""
    while True:
        with contextlib.suppress(Empty):
            return events.get(timeout=WAKE_EVERY)


def _handle(watching: Watch, marker: Marker, event: str, what: object) -> bool:
    """Do what follows from one event; False when it ends the watching."""
    match event, what:
        case "saved", _:
            marker.mark()
            watching.saved()
        case "gone", _:
            watching.gone()
        case "redraw", _:
            watching.redraw()
        case "key", str(key):
            return watching.pressed(key)
        case "answer", Verdict() as verdict:
            watching.marked(verdict)
        case "answer", CourseError() as error:
            watching.failed(error)
        case "answer", Exception() as error:
            raise error
        case _:
            pass
    return True
