"""A lab's hints behind a button: one level a click, and a question before the last."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ipywidgets import HTML, Button, Layout
from msgspec.structs import replace

from course.catalog import Checkpoint, Lab
from course.notebook import sheet
from course.practice import hints, progress


class Hints(HTML):
    """The hints of one lab at a time, and the `buttons` that go with them.

    It shows what was ever shown of the lab, here or by `course hint`: both keep it with the progress in `folder`.
    After a click the focus is on what a reader may press next, and on `after` when there is no hint left. It is never
    on the answer to the question before the last hint: whoever only presses Enter is not shown all of them.
    """

    def __init__(self, checkpoint: Checkpoint, folder: Path, after: Button) -> None:
        super().__init__()
        self._after = after
        self._checkpoint = checkpoint
        self._folder = folder
        self._lab: Lab | None = None
        self._shown: dict[str, int] = {}
        self._asks = False
        self._more, self._not_yet = button(""), button("Not yet")
        self._more.on_click(lambda _: self._next())
        self._not_yet.on_click(lambda _: self._take_back())
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
        found = self._hints(self._lab)
        if found.is_last_step and not self._asks:
            self._draw(asks=True)
            self._not_yet.focus()
        else:
            self._keep(self._lab, found.level)
            self._draw()
            (self._after if found.is_last_step else self._more).focus()

    def _take_back(self) -> None:
        """Ask no more."""
        self._draw()
        self._more.focus()

    def _hints(self, lab: Lab) -> hints.Hints:
        kept = progress.read(self._checkpoint, self._folder)
        seen = max(kept.hints.get(lab.id, 0), self._shown.get(lab.id, 0))
        return hints.hints(self._checkpoint, lab, replace(kept, hints={lab.id: seen}))

    def _keep(self, lab: Lab, level: int) -> None:
        self._shown[lab.id] = level
        with contextlib.suppress(OSError):  # a folder that cannot be written: it is kept as long as this kernel lives
            progress.record_hint(self._checkpoint, self._folder, lab.id, level)

    def _draw(self, *, asks: bool = False) -> None:
        self._asks = asks
        lab = self._lab
        found = self._hints(lab) if lab else None
        parts = [sheet.hint(found.lab, level) for level in range(1, found.seen + 1)] if found else []
        if found and asks:
            parts.append(sheet.says(f"{hints.LAST.format(lab=found.lab.id)} Show it?"))
        self.value = sheet.framed("".join(parts)) if parts else ""
        if found:
            next = f"Hint {found.level} of {len(found.lab.hints)} for lab {found.lab.id}"
            self._more.description = "Show it" if asks else next
        _show(self._more, found is not None and found.seen < len(found.lab.hints))
        _show(self._not_yet, asks)


def button(text: str) -> Button:
    """A button as wide as its text."""
    return Button(description=text, layout=Layout(width="auto"))


def _show(widget: Button, is_shown: bool) -> None:
    widget.layout.display = None if is_shown else "none"
