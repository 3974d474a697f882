"""The lab panel that `%mark` draws: the verdict, hints, and a button that marks again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from IPython.display import display, update_display
from ipywidgets import HTML, HBox, Layout, VBox
from msgspec.structs import replace

from course.marking.notebook import count_cells
from course.notebook import sheet
from course.notebook.hints import Hints, button
from course.notebook.marker import Marker, Outcome, as_text, saved_at
from course.practice import progress

_WORKING = "Marking agent.py …"
_INTERRUPTED = "The marking was interrupted, and decided nothing."
_STOPPED = "The marking was stopped, and decided nothing."
_SAVED_SINCE = "agent.py has been saved since it was marked. Press Mark again."


class Panel(VBox):
    """Shows what its marker finds. As plain text it is what `course checkpoint` prints.

    Shown in two places it is one panel, and both change. A click marks in a thread of its own, for it may come on the
    kernel's event loop or on a thread of the frontend's; neither is kept waiting. A click while it marks stops that.
    """

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._markings = 0
        self._found: Outcome | None = None
        self._is_current = False  # what was found, as far as was looked
        self._is_stored = True
        self._plain = ""
        self._id = "-".join(("course-mark", marker.checkpoint.id, *marker.labs))
        self._again = button("Mark again")
        self._again.on_click(lambda _: self._clicked())
        self._sheet, self._hints = HTML(), Hints(marker.checkpoint, marker.folder, self._again)
        buttons = HBox([self._again, *self._hints.buttons], layout=Layout(flex_flow="row wrap"))
        super().__init__([self._sheet, buttons, self._hints])
        self.add_class("course-panel")

    async def mark(self) -> None:
        """Show the panel and mark, while the event loop goes on."""
        with self._marking_of_cell():
            self._show(await self._marker.mark())

    def mark_here(self) -> None:
        """Show the panel and mark, and return when it is done."""
        with self._marking_of_cell():
            self._show(self._marker.mark_here())

    def look(self) -> None:
        """Say whether agent.py was saved since it was marked, and store what a click found. Called before each cell.

        A click stores nothing by itself: a panel that is stored is drawn anew, and the button would lose the focus.
        """
        if self._markings:
            return
        if self._found and self._found.verdict and self._is_current:
            saved = saved_at(self._found.verdict)
            if saved != self._found.saved:
                self._found = replace(self._found, saved=saved)
                self._draw_found()
        if not self._is_stored:
            self._store()

    def _clicked(self) -> None:
        if self._markings:
            self._marker.stop()
        else:
            threading.Thread(target=self._mark_again, name="marking", daemon=True).start()

    def _mark_again(self) -> None:
        with self._marking():
            self._is_stored = False
            self._show(self._marker.mark_here())

    @contextlib.contextmanager
    def _marking_of_cell(self) -> Iterator[None]:
        """A marking whose panel is the output of the cell that runs."""
        try:
            with self._marking():
                display(self, display_id=self._id)
                yield
        finally:
            self._store()

    @contextlib.contextmanager
    def _marking(self) -> Iterator[None]:
        self._markings += 1
        self._say(_WORKING, sheet.works())
        self._again.description = "Stop"
        try:
            yield
        except BaseException:
            self._say(_INTERRUPTED)
            raise
        finally:
            self._markings -= 1
            self._again.description = "Stop" if self._markings else "Mark again"

    def _store(self) -> None:
        self._is_stored = True
        update_display(self, display_id=self._id)

    def _show(self, outcome: Outcome | None) -> None:
        if outcome is None:
            self._say(_STOPPED)
            return
        self._found, self._is_current = outcome, True
        self._plain = as_text(self._marker.checkpoint, outcome)
        labs = outcome.verdict.labs if outcome.verdict else ()
        first = next((lab for lab in labs if not lab.is_green), None)
        self._hints.offer(self._marker.checkpoint.find_lab(first.lab) if first else None)
        self._draw_found()

    def _say(self, text: str, below: str = "") -> None:
        """Show `text` above what was found last, which is old by now."""
        self._plain = text
        self._is_current = False
        self._draw(sheet.says(text) + below + sheet.old(self._rows()))

    def _draw_found(self) -> None:
        found = self._found
        if found is None or found.verdict is None:
            self._draw(sheet.says("There is no verdict.") + self._rows())
        elif found.saved is None:
            self._draw(sheet.says(_SAVED_SINCE) + sheet.old(self._rows()))
        else:
            self._draw(sheet.says(sheet.headline(self._marker.checkpoint, found.verdict)) + self._rows())

    def _rows(self) -> str:
        if self._found is None:
            return ""
        checkpoint = self._marker.checkpoint
        left = progress.next_lab(checkpoint, progress.read(checkpoint, self._marker.folder))
        return sheet.rows(checkpoint, self._found, count_cells(checkpoint), left)

    def _draw(self, body: str) -> None:
        command = " ".join(("%mark", *self._marker.labs))
        self._sheet.value = sheet.CSS + sheet.framed(body + sheet.gone(command))

    def _repr_mimebundle_(self, **named: Any) -> dict[str, Any]:
        return {**(super()._repr_mimebundle_(**named) or {}), "text/plain": self._plain}
