"""`%load_ext course`: the learner's `agent.py` as `course.agent.<module>` in this kernel, and `%mark`."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class

from course import stand_in
from course.catalog import Checkpoint
from course.errors import CourseError
from course.notebook.reload import Reloader
from course.workspace import checkpoint_in

if TYPE_CHECKING:
    from course.notebook.panel import Panel

_CALL = re.compile(r"^get_ipython\(\)\.run_line_magic\('mark', (.*)\)$")
_AWAITED = r"await get_ipython().magics_manager.registry['CourseMagics'].mark_meanwhile(\1)"

_HELP = """\
%mark            marks every lab: your agent.py as it was saved last, not what your editor has not saved
%mark 9.2        marks one lab; %mark 9.2 9.3 marks two
The panel below it shows what was found, hints, and a button that marks again without running the cell.
In a terminal, `course checkpoint` does the same.\
"""

_NO_FOLDER = (
    "This is no practice folder: a checkpoint's notebook and your agent.py do not lie here together. "
    "In a terminal, `course lab` opens one."
)


class Interrupted(KeyboardInterrupt):
    """A marking that was interrupted. The panel shows that, so a line will do for a traceback."""

    def _render_traceback_(self) -> list[str]:
        return ["Interrupted: the marking decided nothing."]


def load(shell: InteractiveShell) -> None:
    """Set this kernel up for the practice folder it runs in; where a file is being marked, that stays in place.

    A second call finds that done, and does nothing.
    """
    before = shell.magics_manager.registry.get(CourseMagics.__name__)
    if isinstance(before, CourseMagics) and before.checkpoint is not None:
        return
    folder = Path.cwd()
    checkpoint = checkpoint_in(folder)
    is_marked = stand_in.installed() is not None
    if not is_marked and (checkpoint is None or not (folder / "agent.py").exists()):
        print(_NO_FOLDER, file=sys.stderr)
        checkpoint = None
    magics = CourseMagics(shell, checkpoint)
    shell.register_magics(magics)
    if not is_marked and checkpoint is not None:
        standing = stand_in.install(checkpoint, folder / "agent.py")
        _watch_cells(shell, Reloader(standing, shell.user_ns), magics)


def _watch_cells(shell: InteractiveShell, reloader: Reloader, magics: CourseMagics) -> None:
    from course.notebook.awake import Waker

    assert shell.extension_manager is not None
    waker, loaded = Waker(), shell.extension_manager.loaded
    for each in (waker.before_cell, reloader.before_cell, magics.before_cell):
        shell.events.register("pre_run_cell", each)
    shell.events.register("post_run_cell", waker.after_cell)
    # Run again, `%load_ext course` then calls us, instead of telling the learner that it did nothing.
    shell.events.register("post_run_cell", lambda *_: loaded.discard("course"))


@magics_class
class CourseMagics(Magics):
    """`%mark` on a line of its own is awaited, so that agents work on meanwhile; inside a function it blocks.

    Interrupted, both raise Interrupted.
    """

    def __init__(self, shell: InteractiveShell, checkpoint: Checkpoint | None) -> None:
        super().__init__(shell)
        self.checkpoint = checkpoint
        self._folder = Path.cwd()
        self._panels: dict[tuple[str, ...], Panel] = {}
        shell.input_transformers_post.append(self._await)

    @line_magic
    def mark(self, line: str) -> None:
        """`%mark` marks the agent.py beside this notebook, `%mark 9.2` one lab of it; `%mark ?` tells more."""
        panel = self._panel(line)
        if panel is not None:
            with _interruptible():
                panel.mark_here()

    async def mark_meanwhile(self, line: str) -> None:
        panel = self._panel(line)
        if panel is not None:
            with _interruptible():
                await panel.mark()

    def before_cell(self, *_: object) -> None:
        """IPython's `pre_run_cell`: every panel looks whether agent.py was saved since."""
        for panel in self._panels.values():
            panel.look()

    def _await(self, lines: list[str]) -> list[str]:
        assert self.shell is not None
        return [_CALL.sub(_AWAITED, line) for line in lines] if self.shell.autoawait else lines

    def _panel(self, line: str) -> Panel | None:
        """The panel for these labs, one for each choice of them; None when it was said why there is none."""
        standing = stand_in.installed()
        if standing is not None and standing.marking:
            print("This notebook is being marked: %mark does nothing here.")
            return None
        if line.strip() in ("?", "-h", "--help", "help"):
            print(_HELP)
            return None
        if self.checkpoint is None:
            print(_NO_FOLDER, file=sys.stderr)
            return None
        try:
            labs = tuple(self.checkpoint.find_lab(id).id for id in line.replace(",", " ").split())
        except CourseError as error:
            print(error, file=sys.stderr)
            return None
        from course.notebook.marker import Marker
        from course.notebook.panel import Panel  # ipywidgets: a tenth of a second, and no use while marking

        if labs not in self._panels:
            self._panels[labs] = Panel(Marker(self.checkpoint, self._folder, labs))
        return self._panels[labs]


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise Interrupted from None
