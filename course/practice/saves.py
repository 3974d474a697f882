"""Every save of one file, noticed soon: by file events where they work, and by looking where they do not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

Seen = Literal["saved", "gone"]

LOOK_EVERY = 0.2
"""Seconds between two looks when there are no file events."""

LOOK_BESIDE = 1.0
"""Seconds between two looks beside file events: on some file systems none ever comes."""

GONE_AFTER = 1.0
"""Seconds that a file must be away before it is told: editors that save by renaming take it away for a moment."""

HALF_WRITTEN = 0.1
"""Seconds that an empty file is given to be filled: some editors empty a file first."""

_SETTLED = 20
"""Milliseconds without an event after which those before it count as one save."""

Signature = tuple[int, int, int]


class Saves(threading.Thread):
    """Calls `notify("saved")` when `path` was saved, and `notify("gone")` when it went away, until it is stopped.

    A save is a change of the file's identity, time or size, so a burst of events makes one call, and a save that no
    event tells of makes one too. `notify` is called in this thread. With `poll` no file events are asked for.
    """

    def __init__(self, path: Path, notify: Callable[[Seen], object], *, poll: bool = False) -> None:
        super().__init__(name="saves", daemon=True)
        self._path = path
        self._notify = notify
        self._over = threading.Event()
        self._last = signature(path)
        self._is_polling = poll

    @property
    def is_polling(self) -> bool:
        """True when there are no file events to go by."""
        return self._is_polling

    def stop(self) -> None:
        """End the thread soon; it calls `notify` at most once more."""
        self._over.set()

    def run(self) -> None:
        away = 0.0
        for seconds in self._looks():
            found = self._look()
            if found is None:
                before, away = away, away + seconds
                if before < GONE_AFTER <= away:
                    self._last = None
                    self._notify("gone")
                continue
            away = 0.0
            if found != self._last:
                self._last = found
                self._notify("saved")

    def _look(self) -> Signature | None:
        """What the file is now. One that is empty is given a moment."""
        found = signature(self._path)
        if found is not None and found[2] == 0 and found != self._last:
            self._over.wait(HALF_WRITTEN)
            found = signature(self._path)
        return found

    def _looks(self) -> Iterator[float]:
        """The moments to look at, each with the seconds since the one before: at every event, and now and then."""
        if not self._is_polling:
            try:
                yield from self._events()
            except Exception:  # no watchfiles, no inotify handles left, the folder is gone: looking still works
                self._is_polling = True
        while not self._over.wait(LOOK_EVERY):
            yield LOOK_EVERY

    def _events(self) -> Iterator[float]:
        from watchfiles import watch

        for events in watch(
            self._path.parent,
            watch_filter=lambda change, path: Path(path).name == self._path.name,
            step=_SETTLED,
            debounce=10 * _SETTLED,
            rust_timeout=int(LOOK_BESIDE * 1000),
            yield_on_timeout=True,
            stop_event=self._over,
            raise_interrupt=False,
            recursive=False,
        ):
            yield 0.0 if events else LOOK_BESIDE


def signature(path: Path) -> Signature | None:
    """What changes when the file at `path` is saved; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
