"""The notebook's marking is the command's: same process, same verdict, same progress."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from course.catalog import find_checkpoint
from course.marking.mark import mark
from course.marking.verdict import Verdict
from course.notebook import marker
from course.notebook.marker import Marker, Outcome, as_text
from course.practice import progress
from course.practice.folder import lay

CHECKPOINT = find_checkpoint("09")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lay(CHECKPOINT, tmp_path)
    return tmp_path


def stands_in(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Put `code` in the place of the command."""
    monkeypatch.setattr(marker, "_COMMAND", (sys.executable, "-c", code))


def words(verdict: Verdict | None) -> list[tuple[str, str]]:
    assert verdict is not None
    return [(lab.lab, lab.verdict) for lab in verdict.labs]


def test_the_verdict_is_the_one_that_mark_gives_and_it_is_progress(folder: Path) -> None:
    outcome = Marker(CHECKPOINT, folder, ["9.1"]).mark_here()
    assert outcome is not None
    assert outcome.verdict is not None
    expected = mark(CHECKPOINT, folder / "agent.py", labs=["9.1"])
    assert outcome.verdict.labs == expected.labs
    assert outcome.verdict.agent == expected.agent
    assert outcome.saved == (folder / "agent.py").stat().st_mtime
    assert progress.read(CHECKPOINT, folder).labs["9.1"].last == "not_attempted"
    shown = as_text(CHECKPOINT, outcome)
    assert "9.1   ○ not attempted  0/2  " in shown
    assert "course checkpoint 09 --lab 9.1" in shown
    assert "\x1b" not in shown


def test_a_folder_without_agent_py_is_a_problem_that_says_what_to_type(folder: Path) -> None:
    (folder / "agent.py").unlink()
    outcome = Marker(CHECKPOINT, folder, ()).mark_here()
    assert outcome is not None
    assert outcome.verdict is None
    assert "course practice 09" in outcome.problem
    assert as_text(CHECKPOINT, outcome) == outcome.problem


def test_a_command_that_says_nothing_is_a_problem_with_its_exit_code(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands_in(monkeypatch, "raise SystemExit(7)")
    assert Marker(CHECKPOINT, folder, ()).mark_here() == Outcome(None, "The marking ended with exit code 7.")


def test_a_file_saved_again_while_it_is_marked_has_no_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = mark(CHECKPOINT, folder / "agent.py", source=b"", labs=["9.1"])
    stands_in(monkeypatch, f"print({verdict.json()!r})")
    assert Marker(CHECKPOINT, folder, ()).mark_here() == Outcome(verdict, "", None)


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A named pipe: who reads it waits for who writes it, and the other way round."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


@pytest.mark.anyio
async def test_the_loop_goes_on_while_it_marks(folder: Path, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(monkeypatch, f"import sys; sys.exit(open({str(gate)!r}).read())")
    outcomes: list[Outcome | None] = []
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, gate.write_text, "the loop let me end")
            outcomes.append(await Marker(CHECKPOINT, folder, ()).mark())
    assert outcomes == [Outcome(None, "the loop let me end")]


TELLS_ITS_PID = "import os, signal; open({!r}, 'w').write(str(os.getpid())); signal.pause()"


@pytest.mark.anyio
async def test_a_cancelled_marking_ends_its_process(folder: Path, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(monkeypatch, TELLS_ITS_PID.format(str(gate)))
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(Marker(CHECKPOINT, folder, ()).mark)
            process = psutil.Process(int(await anyio.to_thread.run_sync(gate.read_text)))
            group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(process.wait)


@pytest.mark.anyio
async def test_a_marking_that_is_stopped_gives_nothing_and_ends_its_process(
    folder: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands_in(monkeypatch, TELLS_ITS_PID.format(str(gate)))
    marker = Marker(CHECKPOINT, folder, ())
    outcomes: list[Outcome | None] = []

    async def mark() -> None:
        outcomes.append(await marker.mark())

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(mark)
            process = psutil.Process(int(await anyio.to_thread.run_sync(gate.read_text)))
            marker.stop()
            await anyio.to_thread.run_sync(process.wait)
    assert outcomes == [None]
    marker.stop()  # with nothing under way it does nothing


def test_an_interrupted_marking_ends_its_process(folder: Path, gate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stands_in(monkeypatch, TELLS_ITS_PID.format(str(gate)))
    told: list[psutil.Process] = []

    def interrupt() -> None:
        told.append(psutil.Process(int(gate.read_text())))
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        Marker(CHECKPOINT, folder, ()).mark_here()
    thread.join()
    assert not told[0].is_running()


@pytest.mark.anyio
async def test_an_interrupt_of_the_kernel_does_not_reach_it(
    folder: Path, gate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stands_in(monkeypatch, f"import os; open({str(gate)!r}, 'w').write(str(os.getsid(0)))")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(Marker(CHECKPOINT, folder, ()).mark)
            assert int(await anyio.to_thread.run_sync(gate.read_text)) != os.getsid(0)
