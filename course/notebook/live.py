"""The live timeline: the picture of an Agent that moves while the agent works."""

from __future__ import annotations

import asyncio
import contextlib
import html
import itertools
from typing import Any

from IPython.core.getipython import get_ipython
from IPython.display import display, update_display
from ipywidgets import HTML, Box, IntSlider, Layout, VBox

from course.agent.events import AgentEvent, RunEndEvent, RunStartEvent
from course.notebook.moments import Moment, tell
from course.notebook.picture import draw, framed, inline
from course.notebook.timeline import Timeline, Watched

SECONDS_TO_LOOK = 0.1
"""How long what you ask of an agent at work may go unseen."""

SHOWN = 40
"""Moments in the picture. What came before is kept, and the slider goes back to it."""

_STYLE = """<style>
.course-live .gone { display: none; }
.course-live .jupyter-widgets-disconnected .gone { display: block; font-weight: 600; }
.course-live .jupyter-widgets-disconnected::before, .course-live.jupyter-widgets-disconnected::before {
  display: none; }
</style>"""
_GONE = '<p class="gone">The kernel has changed: the slider does nothing. Run the cells above again to draw this.</p>'

_numbers = itertools.count(1)


class LiveTimeline(VBox):
    """Draws an agent as it works, and lets you go back: the slider ends the picture at an earlier moment.

    It follows the agent until you move the slider back, and again once you move it to the end. `timeline` is the
    recorder behind it. While a run goes on and after each cell it looks for what you queued or cancelled meanwhile;
    `close()` ends all of that.
    """

    def __init__(self, agent: Watched) -> None:
        self.timeline = Timeline(agent)
        self._id = f"course-timeline-{next(_numbers)}"
        self._moments: tuple[Moment, ...] = ()
        self._scheduled = False
        self._shown = False
        self._ended = False  # a run, since the last cell
        self._next_look: asyncio.TimerHandle | None = None
        self._picture, self._words = HTML(layout=Layout(width="100%")), HTML()
        self._slider = IntSlider(min=0, max=0, description="moment", readout=False, layout=Layout(width="auto"))
        self._slider.observe(lambda _: self._draw(), "value")
        frame = Box([self._picture], layout=Layout(overflow="auto"))
        super().__init__([frame, self._slider, self._words])
        self.add_class("course-live")
        self._unsubscribe = agent.subscribe(self._hear)
        self._shell = get_ipython()
        if self._shell is not None:
            self._shell.events.register("post_run_cell", self._look)
        self._follow()

    def close(self) -> None:
        """Draw nothing more, and record nothing more."""
        self._unsubscribe()
        self.timeline.close()
        self._look_no_more()
        if self._shell is not None and self._look in self._shell.events.callbacks["post_run_cell"]:
            self._shell.events.unregister("post_run_cell", self._look)
        super().close()

    def show(self) -> None:
        """Show it here. Shown so, what a notebook stores of it is brought up to date after each run."""
        self._shown = True
        display(self, display_id=self._id)

    def _store(self) -> None:
        if self._shown:
            update_display(self, display_id=self._id)

    def _hear(self, event: AgentEvent) -> None:
        """Draw soon: once for all events that come before the event loop is free again."""
        if isinstance(event, RunStartEvent):
            self._look_on()
        if isinstance(event, RunEndEvent):
            self._look_no_more()
            self._follow()
            self._store()
            self._ended = True
        elif not self._scheduled:
            self._scheduled = True
            try:
                asyncio.get_running_loop().call_soon(self._follow)
            except RuntimeError:  # no such loop: on trio nothing is put off
                self._follow()

    def _look_on(self) -> None:
        """Look again and again until the run ends, for a cell may speak to the agent and run on."""
        self._look_no_more()
        with contextlib.suppress(RuntimeError):  # trio: it is seen at the next event
            self._next_look = asyncio.get_running_loop().call_later(SECONDS_TO_LOOK, self._look_now)

    def _look_now(self) -> None:
        known = len(self.timeline.records)
        self.timeline.look()
        if len(self.timeline.records) > known:
            self._follow()
        self._look_on()

    def _look_no_more(self) -> None:
        if self._next_look is not None:
            self._next_look.cancel()
            self._next_look = None

    def _look(self, *_: object) -> None:
        self.timeline.look()
        self._follow()
        if self._ended:  # once more, as this cell's own: a client may drop what a cell that is over still sends
            self._ended = False
            self._store()

    def _follow(self) -> None:
        """Take in what was recorded. The slider goes along if it stood at the end."""
        self._scheduled = False
        self._moments = tell(self.timeline.records)
        last = max(len(self._moments) - 1, 0)
        stays = self._slider.value < self._slider.max
        with self._slider.hold_trait_notifications():
            self._slider.max = last
            if not stays:
                self._slider.value = last
        self._draw()

    def _draw(self) -> None:
        end = self._slider.value + 1
        begin = max(end - SHOWN, 0)
        self._picture.value = inline(draw(self._moments, begin, end, SHOWN))
        self._words.value = f'{_STYLE}<div role="status">{html.escape(self._sentence(end - 1))}</div>{_GONE}'

    def _sentence(self, place: int) -> str:
        if not self._moments:
            return "Nothing has happened yet."
        moment = self._moments[place]
        return f"t{place} of t{len(self._moments) - 1}, {moment.actor}: {moment.words}."

    def _repr_mimebundle_(self, **named: Any) -> dict[str, Any]:
        static = {"text/html": framed(self._moments), "text/plain": self.timeline.text}
        return {**(super()._repr_mimebundle_(**named) or {}), **static}
