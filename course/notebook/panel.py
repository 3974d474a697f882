"""The lab panel that `%mark` draws: the verdict, hints, and a button that marks again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from IPython.display import display, update_display
from ipywidgets import HTML, HBox, Layout, VBox

from course.marking.notebook import count_cells
from course.notebook import sheet
from course.notebook.hints import Hints, button
from course.notebook.marker import Marker, Outcome, as_text

_WORKING = "Marking agent.py …"
_INTERRUPTED = "The marking was interrupted, and decided nothing."


class Panel(VBox):
    """Shows what its marker finds. As plain text it is what `course checkpoint` prints.

    Shown in two places it is one panel, and both change. A click marks in a thread of its own, for it may come on the
    kernel's event loop or on a thread of the frontend's; neither is kept waiting.
    """

    def __init__(self, marker: Marker) -> None:
        self._marker = marker
        self._markings = 0
        self._plain = ""
        self._id = "-".join(("course-mark", marker.checkpoint.id, *marker.labs))
        self._rows = ""
        self._sheet, self._hints = HTML(), Hints(marker.checkpoint, marker.folder)
        self._again = button("Mark again")
        self._again.on_click(lambda _: self._clicked())
        buttons = HBox([self._again, *self._hints.buttons], layout=Layout(flex_flow="row wrap"))
        super().__init__([self._sheet, buttons, self._hints])

    async def mark(self) -> None:
        """Show the panel and mark, while the event loop goes on."""
        with self._marking():
            display(self, display_id=self._id)
            self._show(await self._marker.mark())

    def mark_here(self) -> None:
        """Show the panel and mark, and return when it is done."""
        with self._marking():
            display(self, display_id=self._id)
            self._show(self._marker.mark_here())

    def _clicked(self) -> None:
        if not self._markings:
            threading.Thread(target=self._mark_again, name="marking", daemon=True).start()

    def _mark_again(self) -> None:
        with self._marking():
            self._show(self._marker.mark_here())

    @contextlib.contextmanager
    def _marking(self) -> Iterator[None]:
        self._markings += 1
        self._say(_WORKING)
        self._again.description = "Marking …"
        try:
            yield
        except BaseException:
            self._say(_INTERRUPTED)
            update_display(self, display_id=self._id)
            raise
        finally:
            self._markings -= 1
            self._again.description = "Mark again"

    def _say(self, text: str) -> None:
        """Show `text` above what was found last."""
        self._plain = text
        self._sheet.value = sheet.CSS + sheet.framed(sheet.says(text) + self._rows)

    def _show(self, outcome: Outcome) -> None:
        checkpoint, verdict = self._marker.checkpoint, outcome.verdict
        self._rows = sheet.rows(checkpoint, outcome, count_cells(checkpoint))
        self._say(sheet.headline(checkpoint, verdict) if verdict else "There is no verdict.")
        first = next((lab for lab in verdict.labs if not lab.is_green), None) if verdict else None
        self._hints.offer(checkpoint.find_lab(first.lab) if first else None)
        self._plain = as_text(checkpoint, outcome)
        update_display(self, display_id=self._id)

    def _repr_mimebundle_(self, **named: Any) -> dict[str, Any]:
        return {**(super()._repr_mimebundle_(**named) or {}), "text/plain": self._plain}
