"""A hundred markings in a row, some crashing, some hanging, some interrupted: nothing of them stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import toy
from corpus import after

from course.catalog import PACKAGE
from course.practice import progress
from course.workspace import workspace

MARKINGS = 100

FILES = (
    toy.SOLUTION,
    toy.stub("42.1"),
    "import os\nos._exit(0)",
    "raise ValueError",
    "def broken(:",
    after("import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'input()'], start_new_session=True)"),
    "while True: pass",
)
ENDLESS = len(FILES) - 1


def test_a_hundred_markings_leave_no_process_no_folder_and_all_progress(tmp_path: Path) -> None:
    checkpoint, folder, temporary = toy.lay(tmp_path / "home"), tmp_path / "mine", tmp_path / "temporary"
    workspace(checkpoint, b"", folder)
    temporary.mkdir()
    for number in range(MARKINGS):
        file = number % len(FILES)
        (folder / "agent.py").write_text(FILES[file], encoding="utf-8")
        is_cut = file == ENDLESS or number % 3 == 0
        ended, said = mark(tmp_path / "home", folder, temporary, cut_at=number % 11 if is_cut else None)
        assert said == "", number
        assert ended in ({0, 1, 130, -signal.SIGINT} if is_cut else {0, 1}), number
    assert list(temporary.iterdir()) == []
    assert [process.cmdline() for process in psutil.process_iter() if is_of(temporary, process)] == []
    kept = progress.read(checkpoint, folder)
    assert all(kept.is_green(lab.id) for lab in checkpoint.labs)


def mark(home: Path, folder: Path, temporary: Path, cut_at: int | None) -> tuple[int, str]:
    """Mark as the command does, and give its exit code and what it said on standard error.

    With `cut_at`, Ctrl-C comes at one of the stages of its life: as soon as its code runs, once it has made its
    folder, once it has so many children, or at its first words.
    """
    command = [sys.executable, str(Path(toy.__file__).with_name("toy_course.py")), str(home)]
    process = subprocess.Popen(
        [*command, "checkpoint", "42", "--in", str(folder)],
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(PACKAGE.parent)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        if cut_at is not None:
            wait_for(process, temporary, cut_at)
            os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate()
    return process.returncode, said


def wait_for(process: subprocess.Popen[str], temporary: Path, stage: int) -> None:
    """Look until it is so far, or has ended."""
    looks_at = psutil.Process(process.pid)
    while process.poll() is None:
        try:
            if stage < 3 and any(temporary.iterdir()):
                return
            if stage >= 3 and len(looks_at.children(recursive=True)) >= min(stage - 2, 2):
                return
        except psutil.Error:
            return


def is_of(temporary: Path, process: psutil.Process) -> bool:
    """Every marking process has that temporary folder in its environment, and so has what it starts."""
    try:
        inside = process.environ().get("TMPDIR", "").startswith(str(temporary))
        return inside and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False
