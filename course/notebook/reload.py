"""The saved `agent.py` in a running kernel: loaded anew before the next cell, under the names the notebook has."""

from __future__ import annotations

import ast
import sys
import time
import traceback
from collections.abc import Collection, Iterator, MutableMapping, Sequence
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from course.stand_in import StandIn

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo


class Reloader:
    """Looks at `agent.py` before each cell, and says in one line what it did.

    `names` is the notebook's own namespace. A name that is bound to something the old file defined gets what the new
    file defines under that name. What was made by the old code keeps it, and is named.
    """

    def __init__(self, stand_in: StandIn, names: MutableMapping[str, Any]) -> None:
        self._stand_in = stand_in
        self._names = names
        self._broken: tuple[bytes, str] | None = None

    def before_cell(self, cell: ExecutionInfo) -> None:
        """IPython's `pre_run_cell`: load the file anew if it was saved since. Raises nothing but KeyboardInterrupt.

        Before a cell that only marks there is no need: marking reads the file for itself.
        """
        source = cell.raw_cell or ""
        if _only_marks(source):
            return
        old = self._stand_in.loaded()
        loaded = old and self._stand_in.source_of(old)
        if old is None or loaded is None:
            return
        saved = self._saved()
        if saved == loaded:
            self._broken = None
        elif saved is None:
            _warn("agent.py is gone or cannot be read.")
        elif self._broken is not None and self._broken[0] == saved:
            _warn(self._broken[1])
        else:
            self._load(old, saved, source)

    def _saved(self) -> bytes | None:
        try:
            return self._stand_in.agent_py.read_bytes()
        except OSError:
            return None

    def _load(self, old: ModuleType, saved: bytes, cell: str) -> None:
        try:
            new = self._stand_in.reload()
        except (Exception, SystemExit) as error:
            self._broken = (saved, f"agent.py cannot be loaded: {_told(error, self._stand_in)}.")
            _warn(self._broken[1])
            return
        self._broken = None
        rebound = list(_rebind(self._names, old, new))
        made_anew = _assigned(cell)
        still_old = [name for name in _still_old(self._names, new) if name not in made_anew]
        print(_report(self._saved_at(), rebound, still_old), flush=True)

    def _saved_at(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._stand_in.agent_py.stat().st_mtime))


def _only_marks(cell: str) -> bool:
    lines = [line.strip() for line in cell.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(line.split()[0] == "%mark" for line in lines)


def _assigned(cell: str) -> Collection[str]:
    """The names that the cell binds; its magics aside, and none where it is no Python."""
    lines = ["pass" if line.startswith(("%", "!")) else line for line in cell.splitlines()]
    try:
        nodes = list(ast.walk(ast.parse("\n".join(lines))))
    except (SyntaxError, ValueError):
        return ()
    stored = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    defined = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)}
    return stored | defined


def _rebind(names: MutableMapping[str, Any], old: ModuleType, new: ModuleType) -> Iterator[str]:
    """Bind to the new module's objects what is bound to the old one's, and give the names."""
    for name, value in list(names.items()):
        if value is old:
            names[name] = new
            continue
        origin = _origin(name, value, old)
        if origin is not None and vars(new).get(origin, value) is not value:
            names[name] = vars(new)[origin]
            yield name


def _origin(name: str, value: object, old: ModuleType) -> str | None:
    """The name under which the old module defined `value`; None when it came from elsewhere, or only looks like it.

    A class or function may have been imported under another name. Anything else is known by its name alone.
    """
    if isinstance(value, type | FunctionType):
        defined = value.__module__ == old.__name__ and vars(old).get(value.__name__) is value
        return value.__name__ if defined else None
    return name if name in vars(old) and vars(old)[name] is value and not isinstance(value, ModuleType) else None


def _still_old(names: MutableMapping[str, Any], new: ModuleType) -> Iterator[str]:
    """The notebook's names for what an earlier `agent.py` defined, for objects of its classes and for subclasses."""
    for name, value in names.items():
        behind = value.__mro__ if isinstance(value, type) else (value, *type(value).__mro__)
        if not name.startswith("_") and any(_is_old(one, new) for one in behind):
            yield name


def _is_old(value: object, new: ModuleType) -> bool:
    if not isinstance(value, type | FunctionType) or value.__module__ != new.__name__:
        return False
    return vars(new).get(value.__name__) is not value


def _report(saved_at: str, rebound: Sequence[str], still_old: Sequence[str]) -> str:
    text = f"agent.py, saved at {saved_at}, is loaded" + (f": {', '.join(rebound)}." if rebound else ".")
    if still_old:
        text += f" Still on the old code, until you make them again: {', '.join(still_old)}."
    return text


def _told(error: BaseException, stand_in: StandIn) -> str:
    """`line 57: SyntaxError: invalid syntax`, the line being the innermost in the learner's own file."""
    file = str(stand_in.agent_py)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    if isinstance(error, SyntaxError) and error.filename == file:
        lines.append(error.lineno)
    text = traceback.format_exception_only(error)[-1].strip()
    return f"line {lines[-1]}: {text}" if lines else text


def _warn(what: str) -> None:
    """Say it first of all that the cell puts out: the two streams are buffered each for itself."""
    told = f"{what} Cells go on with the version loaded before, until it is mended and saved."
    print(told, file=sys.stderr, flush=True)
