"""`%load_ext course`: the learner's `agent.py` as `course.agent.<module>` in this kernel, and `%mark`."""

from __future__ import annotations

import re
import sys
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

_NO_FOLDER = (
    "This is no practice folder: a checkpoint's notebook and your agent.py do not lie here together. "
    "In a terminal, `course lab` opens one."
)


def load(shell: InteractiveShell) -> None:
    """Set this kernel up for the practice folder it runs in; where a file is being marked, that stays in place."""
    folder = Path.cwd()
    checkpoint = checkpoint_in(folder)
    if stand_in.installed() is None:
        if checkpoint is None or not (folder / "agent.py").exists():
            print(_NO_FOLDER, file=sys.stderr)
            checkpoint = None
        else:
            standing = stand_in.install(checkpoint, folder / "agent.py")
            shell.events.register("pre_run_cell", Reloader(standing, shell.user_ns).before_cell)
    shell.register_magics(CourseMagics(shell, checkpoint))


@magics_class
class CourseMagics(Magics):
    """`%mark` on a line of its own is awaited, so that agents work on meanwhile; inside a function it blocks."""

    def __init__(self, shell: InteractiveShell, checkpoint: Checkpoint | None) -> None:
        super().__init__(shell)
        self._checkpoint = checkpoint
        self._folder = Path.cwd()
        self._panels: dict[tuple[str, ...], Panel] = {}
        shell.input_transformers_post.append(self._await)

    @line_magic
    def mark(self, line: str) -> None:
        """`%mark` marks the agent.py beside this notebook, `%mark 9.2` one lab of it."""
        panel = self._panel(line)
        if panel is not None:
            panel.mark_here()

    async def mark_meanwhile(self, line: str) -> None:
        panel = self._panel(line)
        if panel is not None:
            await panel.mark()

    def _await(self, lines: list[str]) -> list[str]:
        assert self.shell is not None
        return [_CALL.sub(_AWAITED, line) for line in lines] if self.shell.autoawait else lines

    def _panel(self, line: str) -> Panel | None:
        """The panel for these labs, one for each choice of them; None when it was said why there is none."""
        standing = stand_in.installed()
        if standing is not None and standing.marking:
            print("This notebook is being marked: %mark does nothing here.")
            return None
        if self._checkpoint is None:
            print(_NO_FOLDER, file=sys.stderr)
            return None
        try:
            labs = tuple(self._checkpoint.find_lab(id).id for id in line.replace(",", " ").split())
        except CourseError as error:
            print(error, file=sys.stderr)
            return None
        from course.notebook.marker import Marker
        from course.notebook.panel import Panel  # ipywidgets: a tenth of a second, and no use while marking

        if labs not in self._panels:
            self._panels[labs] = Panel(Marker(self._checkpoint, self._folder, labs))
        return self._panels[labs]
