"""Single keys from the terminal, without Return, while something else goes on."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|[^\x1b])?")
"""What arrows and function keys send, and a letter pressed with Alt."""

CHECK_EVERY = 0.2
"""Seconds after which the thread looks whether it is to end."""


class Keys:
    """Calls `notify` with each key that is pressed while the block is open, in a thread of its own.

    Calls `redraw`, as a signal handler, whenever what the terminal showed is lost: it has another size, or we are
    back after Ctrl-Z. Where standard input is no terminal, nothing is read and nothing changes. The terminal gets its
    settings back at the end of the block; Ctrl-C and Ctrl-Z work in it as ever. Arrow keys and the like are left out.
    """

    def __init__(self, notify: Callable[[str], object], redraw: Callable[[], object] = lambda: None) -> None:
        self._notify = notify
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, name="keys", daemon=True)
        self._terminal = _Terminal(redraw)

    def __enter__(self) -> Keys:
        if self._terminal.is_there:
            self._terminal.single_keys()
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._terminal.is_there:
            self._stop.set()
            self._thread.join()
            self._terminal.as_before()

    def _read(self) -> None:
        while not self._stop.is_set():
            for key in self._terminal.wait(CHECK_EVERY):
                self._notify(key)


class _Terminal:
    """Standard input where it is a terminal, on POSIX and on Windows."""

    def __init__(self, redraw: Callable[[], object]) -> None:
        self.is_there = sys.stdin is not None and sys.stdin.isatty()
        self._redraw = redraw
        self._before: Any = None
        self._handlers: dict[int, Any] = {}

    if sys.platform == "win32":

        def single_keys(self) -> None: ...

        def as_before(self) -> None: ...

        def wait(self, seconds: float) -> str:
            import msvcrt

            if not msvcrt.kbhit():
                threading.Event().wait(min(seconds, 0.05))
                return ""
            key = msvcrt.getwch()
            if key in "\x00\xe0":  # the second half of an arrow key
                msvcrt.getwch()
                return ""
            return key

    else:

        def single_keys(self) -> None:
            import termios

            self._before = termios.tcgetattr(sys.stdin)
            self._no_lines()
            if threading.current_thread() is threading.main_thread():
                self._handlers = {
                    signal.SIGCONT: signal.signal(signal.SIGCONT, self._on_continue),
                    signal.SIGWINCH: signal.signal(signal.SIGWINCH, self._on_resize),
                }

        def _no_lines(self) -> None:
            import tty

            tty.setcbreak(sys.stdin)

        def _on_continue(self, signum: int, frame: FrameType | None) -> None:
            """After Ctrl-Z: the shell has changed the settings meanwhile, and has written over the screen."""
            self._no_lines()
            self._redraw()

        def _on_resize(self, signum: int, frame: FrameType | None) -> None:
            self._redraw()

        def as_before(self) -> None:
            import termios

            for signum, before in self._handlers.items():
                signal.signal(signum, before)
            with contextlib.suppress(termios.error):  # the terminal has gone
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._before)

        def wait(self, seconds: float) -> str:
            if not select.select([sys.stdin], [], [], seconds)[0]:
                return ""
            got = os.read(sys.stdin.fileno(), 64)
            if not got:  # the terminal has gone
                threading.Event().wait(seconds)
            return _SEQUENCES.sub("", got.decode("utf-8", errors="replace"))
