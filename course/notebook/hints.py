"""A lab's hints behind a button: one level a click, and a question before the last."""

from __future__ import annotations

from ipywidgets import HTML, Button, Layout

from course.catalog import Lab
from course.notebook import sheet

_QUESTION = "The last hint comes close to the answer. Show it all the same?"


class Hints(HTML):
    """The hints of one lab at a time, and the `buttons` that go with them.

    What was shown of a lab is there again when the panel comes back to it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lab: Lab | None = None
        self._shown: dict[str, int] = {}
        self._asks = False
        self._more, self._not_yet = button(""), button("Not yet")
        self._more.on_click(lambda _: self._next())
        self._not_yet.on_click(lambda _: self._draw())
        self.buttons = (self._more, self._not_yet)
        self._draw()

    def offer(self, lab: Lab | None) -> None:
        """Be about `lab`; about None, or a lab without hints, there is nothing to show."""
        self._lab = lab if lab is not None and lab.hints else None
        self._draw()

    def _next(self) -> None:
        """Show the next level, or ask first when it is the last."""
        if self._lab is None:
            return
        level = self._shown.get(self._lab.id, 0) + 1
        if level == len(self._lab.hints) and not self._asks:
            self._draw(asks=True)
        else:
            self._shown[self._lab.id] = level
            self._draw()

    def _draw(self, *, asks: bool = False) -> None:
        self._asks = asks
        lab = self._lab
        shown = self._shown.get(lab.id, 0) if lab else 0
        parts = [sheet.hint(lab, level) for level in range(1, shown + 1)] if lab else []
        if asks:
            parts.append(sheet.says(_QUESTION))
        self.value = sheet.framed("".join(parts)) if parts else ""
        if lab:
            self._more.description = "Show it" if asks else f"Hint {shown + 1} of {len(lab.hints)} for lab {lab.id}"
        _show(self._more, lab is not None and shown < len(lab.hints))
        _show(self._not_yet, asks)


def button(text: str) -> Button:
    """A button as wide as its text."""
    return Button(description=text, layout=Layout(width="auto"))


def _show(widget: Button, is_shown: bool) -> None:
    widget.layout.display = None if is_shown else "none"
