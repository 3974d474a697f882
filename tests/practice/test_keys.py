"""Single keys reach the watching, and the terminal is as it was afterwards."""

from __future__ import annotations

import io
import os
import pty
import signal
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest

from course.practice.keys import Keys

SAFETY = 30


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The other end of a terminal that is our standard input."""
    other, ours = pty.openpty()
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield other
    os.close(other)


def is_by_line(fd: int) -> bool:
    return bool(termios.tcgetattr(fd)[3] & termios.ICANON)


def test_keys_come_one_by_one_and_without_return(terminal: int) -> None:
    pressed: SimpleQueue[str] = SimpleQueue()
    with Keys(pressed.put):
        assert not is_by_line(terminal)
        os.write(terminal, "hé".encode())
        assert [pressed.get(timeout=SAFETY) for _ in range(2)] == ["h", "é"]


@pytest.mark.parametrize("typed", ["\x1b[A", "\x1bOP", "\x1b[15~", "\x1b[1;5C", "\x1bh", "\x1b"], ids=ascii)
def test_arrows_and_the_like_are_left_out(terminal: int, typed: str) -> None:
    pressed: SimpleQueue[str] = SimpleQueue()
    with Keys(pressed.put):
        os.write(terminal, f"a{typed}".encode())
        assert pressed.get(timeout=SAFETY) == "a"
        os.write(terminal, b"\x1b[Bq")
        assert pressed.get(timeout=SAFETY) == "q"


def test_the_terminal_has_its_settings_back_whatever_ends_the_block(terminal: int) -> None:
    before = termios.tcgetattr(terminal)
    with pytest.raises(SystemExit), Keys(lambda key: None):
        raise SystemExit
    assert termios.tcgetattr(terminal) == before


def test_after_being_stopped_and_continued_keys_still_come_one_by_one(terminal: int) -> None:
    before = signal.getsignal(signal.SIGCONT)
    with Keys(lambda key: None):
        by_line = termios.tcgetattr(terminal)
        by_line[3] |= termios.ICANON  # as the shell leaves it
        termios.tcsetattr(terminal, termios.TCSANOW, by_line)
        signal.raise_signal(signal.SIGCONT)
        assert not is_by_line(terminal)
    assert signal.getsignal(signal.SIGCONT) == before


@pytest.mark.parametrize("signum", [signal.SIGCONT, signal.SIGWINCH])
def test_what_makes_the_terminal_lose_its_picture_is_told(terminal: int, signum: signal.Signals) -> None:
    before = signal.getsignal(signum)
    told: list[None] = []
    with Keys(lambda key: None, lambda: told.append(None)):
        signal.raise_signal(signum)
        assert told == [None]
    assert signal.getsignal(signum) == before


@pytest.mark.parametrize("stdin", [None, io.StringIO("q")], ids=["none", "a pipe"])
def test_without_a_terminal_nothing_is_read(stdin: io.StringIO | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", stdin)
    pressed: list[str] = []
    with Keys(pressed.append):
        pass
    assert pressed == []
    assert stdin is None or stdin.read() == "q"


def test_a_terminal_that_goes_away_ends_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other, ours = pty.openpty()
    with os.fdopen(ours) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        with Keys(lambda key: None):
            os.close(other)
