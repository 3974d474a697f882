"""`%load_ext course` in a real kernel, in a practice folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import psutil
import pytest
import toy
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import KernelManager

from course.catalog import PACKAGE, find_checkpoint
from course.marking.mark import mark
from course.practice.folder import lay

CHECKPOINT = find_checkpoint("09")
STARTER = CHECKPOINT.starter.read_text(encoding="utf-8")
SECONDS = 60
"""A safety net, for a machine that is busy."""


class Said:
    """What a cell put out: `out` and `err`, and the plain text of each thing it displayed, as it stood last."""

    def __init__(self) -> None:
        self.out = self.err = ""
        self.streams: list[tuple[str, str]] = []
        self.traceback: list[str] = []
        self.shown: dict[str, str] = {}

    def hear(self, message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream":
            self.streams.append((content["name"], content["text"]))
        match message["msg_type"]:
            case "stream" if content["name"] == "stdout":
                self.out += content["text"]
            case "stream":
                self.err += content["text"]
            case "error":
                self.err += f"{content['ename']}: {content['evalue']}"
                self.traceback = content["traceback"]
            case "display_data" | "update_display_data":
                self.shown[content["transient"]["display_id"]] = content["data"]["text/plain"]


class Kernel:
    """A kernel in a practice folder, with `%load_ext course` done."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self._manager = KernelManager(transport="ipc", ip=str(home / "k"), connection_file=str(home / "k.json"))
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        self._manager._kernel_spec = KernelSpec(argv=argv, display_name="Python", language="python")
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "IPYTHONDIR": str(home)}
        self._manager.start_kernel(cwd=str(folder), env=environment)
        self._client = self._manager.blocking_client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=SECONDS)
        assert self.run("%load_ext course").err == ""

    def run(self, code: str) -> Said:
        said = Said()
        self._client.execute_interactive(code, output_hook=said.hear, timeout=SECONDS)
        return said

    def save(self, source: str) -> None:
        (self.folder / "agent.py").write_text(source, encoding="utf-8")

    @property
    def pid(self) -> int:
        return self._manager.provisioner.process.pid  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    def stop(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)
        self._manager.cleanup_resources()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("practice")
    lay(CHECKPOINT, folder)
    kernel = Kernel(folder, tmp_path_factory.mktemp("k"))
    yield kernel
    kernel.stop()


@pytest.fixture
def kernel(running: Kernel) -> Kernel:
    """The kernel as after `Restart`, as far as names go, with the starter in its folder."""
    running.save(STARTER)
    running.run("%reset -f")
    return running


def test_both_names_are_the_learners_file(kernel: Kernel) -> None:
    said = kernel.run("import agent, course.agent.agent as ours\nprint(agent is ours, ours.__file__)")
    assert said.out == f"True {kernel.folder / 'agent.py'}\n"


def test_the_finished_names_are_at_hand_for_demo_cells(kernel: Kernel) -> None:
    said = kernel.run(
        "from course.agent import Agent as Mine, ScriptedModel, say\n"
        "from course.notebook.finished import Agent\n"
        "print(Agent is Mine, (await Agent(model=ScriptedModel([say('Hi')])).prompt('Hello')).final_text)"
    )
    assert said.out == "False Hi\n"
    assert "Lab 9.2" in kernel.run("await Mine(model=ScriptedModel([say('Hi')])).prompt('Hello')").err


def test_a_saved_change_runs_without_a_restart(kernel: Kernel) -> None:
    kernel.run("from agent import Agent")
    kernel.save(STARTER.replace("class Agent:", "class Agent:\n    saved = 'just now'\n", 1))
    said = kernel.run("print(Agent.saved)")
    assert said.out.endswith("is loaded: Agent.\njust now\n")


def test_mark_shows_the_rows_of_the_command(kernel: Kernel) -> None:
    shown = kernel.run("%mark 9.1").shown
    assert list(shown) == ["course-mark-09-9.1"]
    (rows,) = shown.values()
    assert rows.splitlines()[1].startswith("9.1   ○ not attempted  0/2  ")


def test_a_second_mark_of_the_same_labs_is_the_same_panel(kernel: Kernel) -> None:
    count = "import ipywidgets; print(len(ipywidgets.Widget.widgets))"
    kernel.run("%mark 9.1")
    before = kernel.run(count).out
    kernel.run("%mark 9.1")
    assert kernel.run(count).out == before


def test_a_lab_that_is_not_there_is_answered_with_those_that_are(kernel: Kernel) -> None:
    said = kernel.run("%mark 9.99")
    assert said.shown == {}
    assert "has no lab '9.99'. Its labs are 9.1, 9.2" in said.err


def waits(pid: Path, gate: Path) -> str:
    """Code for the kernel: a command in the place of `course checkpoint` that tells its pid, then waits at the gate."""
    command = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); print(open({str(gate)!r}).read())"
    return f"import sys\nmarker._COMMAND = (sys.executable, '-c', {command!r})"


@pytest.fixture
def pipes(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("pid", "gate"):
        os.mkfifo(tmp_path / name)
    return tmp_path / "pid", tmp_path / "gate"


@pytest.fixture
def waiting(kernel: Kernel, pipes: tuple[Path, Path]) -> Iterator[Kernel]:
    kernel.run("import course.notebook.marker as marker; kept = marker._COMMAND")
    assert kernel.run(waits(*pipes)).err == ""
    yield kernel
    kernel.run("marker._COMMAND = kept")


def test_an_agent_works_on_while_mark_waits(waiting: Kernel, pipes: tuple[Path, Path]) -> None:
    pid, gate = map(str, pipes)
    said = waiting.run(
        "import asyncio\n"
        "from course.agent import ScriptedModel, ToolRegistry, call, say, tool\n"
        "from course.notebook.finished import Agent\n"
        "@tool\n"
        "async def opens_the_gate() -> str:\n"
        '    "Let the marking end."\n'
        f"    await asyncio.to_thread(lambda: open({pid!r}).read())\n"
        f"    await asyncio.to_thread(lambda: open({gate!r}, 'w').write('x'))\n"
        "    return 'open'\n"
        "model = ScriptedModel([call('c1', 'opens_the_gate'), say('The gate is open.')])\n"
        "run = Agent(model=model, tools=ToolRegistry([opens_the_gate])).prompt('Open it.')\n"
        "%mark 9.1\n"
        "print((await run).final_text)"
    )
    assert said.err == ""
    assert said.out == "The gate is open.\n"


def test_an_interrupt_ends_the_marking_and_says_so_in_one_line(waiting: Kernel, pipes: tuple[Path, Path]) -> None:
    def interrupt() -> psutil.Process:
        process = psutil.Process(int(pipes[0].read_text()))
        os.kill(waiting.pid, signal.SIGINT)
        return process

    with ThreadPoolExecutor(1) as pool:
        process = pool.submit(interrupt)
        said = waiting.run("%mark 9.2")
    process.result().wait(SECONDS)
    assert said.shown == {"course-mark-09-9.2": "The marking was interrupted, and decided nothing."}
    assert said.traceback == ["Interrupted: the marking decided nothing."]


INTERRUPT = """
import asyncio, os, signal, sys, threading, time

def interrupt_once_the_loop_sleeps():
    main = threading.main_thread().ident
    while sys._current_frames()[main].f_code.co_name != "select":
        pass
    global interrupted
    interrupted = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
"""


def test_an_interrupt_ends_a_cell_that_only_waits_and_no_agent_in_the_background(kernel: Kernel) -> None:
    started = kernel.run(
        INTERRUPT + "from course.agent import ScriptedModel\n"
        "from course.notebook.finished import Agent\n"
        "from course.notebook.stage import Held\n"
        "answer = Held('I am still here.')\n"
        "run = Agent(model=ScriptedModel([answer])).prompt('Hello?')\n"
        "await answer.asked.wait()"
    )
    assert started.err == ""
    said = kernel.run("threading.Thread(target=interrupt_once_the_loop_sleeps).start()\nawait asyncio.Event().wait()")
    assert said.err.startswith("CancelledError")
    after = kernel.run("print(time.monotonic() - interrupted < 5)\nanswer.release.set()\nprint((await run).final_text)")
    assert (after.out, after.err) == ("True\nI am still here.\n", "")


def test_between_two_cells_nothing_wakes_the_loop(kernel: Kernel) -> None:
    said = kernel.run(
        "from course.notebook.awake import Waker\n"
        "(waker,) = (each.__self__ for each in get_ipython().events.callbacks['post_run_cell']\n"
        "            if isinstance(getattr(each, '__self__', None), Waker))\n"
        "kept = waker._next\n"
        "print(kept is None)"
    )
    assert said.out == "False\n", "it does while a cell runs"
    said = kernel.run("print(kept.cancelled())")
    assert said.out == "True\n"


def test_the_set_up_cell_can_be_run_again(kernel: Kernel) -> None:
    said = kernel.run("%load_ext course")
    assert (said.out, said.err) == ("", "")
    assert kernel.run("print(len(get_ipython().events.callbacks['pre_run_cell']))").out == (
        kernel.run("%load_ext course\nprint(len(get_ipython().events.callbacks['pre_run_cell']))").out
    )


def test_a_panel_says_that_it_is_old_once_a_cell_is_run_after_a_save(kernel: Kernel) -> None:
    panel = "get_ipython().magics_manager.registry['CourseMagics']._panels['9.1',]._sheet.value"
    kernel.run("%mark 9.1")
    assert kernel.run(f"print('has been saved since' in {panel})").out.endswith("False\n")
    kernel.save(STARTER + "\n")
    assert kernel.run(f"print('has been saved since' in {panel})").out.endswith("True\n")


@pytest.mark.parametrize("asked", ["?", "--help"])
def test_mark_explains_itself(kernel: Kernel, asked: str) -> None:
    said = kernel.run(f"%mark {asked}")
    assert "%mark 9.2        marks one lab" in said.out
    assert (said.err, said.shown) == ("", {})


def test_a_fault_of_the_file_is_said_before_what_the_cell_puts_out(kernel: Kernel) -> None:
    kernel.run("import agent")
    kernel.save("def broken(:\n")
    said = kernel.run("print('the cell')")
    assert said.streams[0][0] == "stderr"
    assert said.streams[0][1].startswith("agent.py cannot be loaded: line 1: SyntaxError")
    assert said.streams[-1] == ("stdout", "the cell\n")


def test_a_mark_inside_a_function_or_without_autoawait_is_not_awaited(kernel: Kernel) -> None:
    transformed = "print(get_ipython().transform_cell({!r}))"
    assert "await " in kernel.run(transformed.format("%mark 9.1")).out
    assert "await " not in kernel.run(transformed.format("def f():\n    %mark 9.1\n")).out
    kernel.run("%autoawait False")
    assert "await " not in kernel.run(transformed.format("%mark 9.1")).out
    kernel.run("%autoawait asyncio")


@pytest.mark.parametrize("kind", ["quick", "real"])
def test_in_a_notebook_that_is_being_marked_mark_says_one_line_and_marks_nothing(
    tmp_path: Path, kind: Literal["quick", "real"]
) -> None:
    line = "This notebook is being marked: %mark does nothing here.\n"
    cells = [("%load_ext course", (), ""), ("%mark\nprint('on')", ("lab-42.1",), f"{line}on\n"), *toy.CELLS]
    checkpoint = toy.lay(tmp_path, cells=cells)
    verdict = mark(checkpoint, checkpoint.solution, labs=["42.1"], kernel=kind)
    assert [lab.message for lab in verdict.labs] == [None]
    assert verdict.labs[0].cells == 2


def test_outside_a_practice_folder_it_says_what_to_type(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", "%load_ext course\n%mark"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "IPYTHONDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.count("This is no practice folder") == 2
    assert done.stderr.count("`course lab` opens one.") == 2
