"""The in-process shell behaves as a kernel does, cell by cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import toy

from course.marking.contained import Contained
from course.marking.listen import Heard, Limits, listen
from course.marking.notebook import NotebookRequest


def run(tmp_path: Path, *cells: str) -> Heard:
    """Run the cells in a process of their own."""
    checkpoint = toy.lay(tmp_path / "home")
    named = tuple((str(number), cell) for number, cell in enumerate(cells))
    request = NotebookRequest(checkpoint, toy.SOLUTION.encode(), named, 5)
    with Contained("quick_kernel", request, learner=str(tmp_path / "agent.py"), folder=tmp_path) as contained:
        return listen(contained, Limits(step=5), tuple(id for id, _ in named))


def outputs(heard: Heard, cell: int) -> list[dict[str, Any]]:
    return list(heard.ran[str(cell)].finish.outputs)


def text(heard: Heard, cell: int) -> str:
    return "".join(output.get("text", "") for output in outputs(heard, cell))


def test_the_last_value_is_shown_and_what_is_printed_is_kept_apart(tmp_path: Path) -> None:
    heard = run(tmp_path, "import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2")
    stdout, stderr, result = outputs(heard, 0)
    assert (stdout["name"], stdout["text"]) == ("stdout", "out\n")
    assert (stderr["name"], stderr["text"]) == ("stderr", "err\n")
    assert (result["output_type"], result["data"]) == ("execute_result", {"text/plain": "42"})


def test_a_cell_may_await_and_tasks_go_on_between_cells(tmp_path: Path) -> None:
    heard = run(
        tmp_path,
        "import asyncio\nsteps = []\nasync def work():\n    for n in range(50):\n"
        "        steps.append(n); await asyncio.sleep(0)\ntask = asyncio.create_task(work())",
        "print(len(steps), task.done())",
        "print(await asyncio.sleep(0, 'awaited'))",
    )
    assert text(heard, 1) == "50 True\n"
    assert text(heard, 2) == "awaited\n"


def test_a_task_that_never_rests_does_not_hold_up_the_next_cell(tmp_path: Path) -> None:
    heard = run(
        tmp_path,
        "import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)\ntask = asyncio.create_task(spin())",
        "print('next')",
    )
    assert heard.stop is None
    assert text(heard, 1) == "next\n"


def test_what_a_task_prints_after_its_cell_is_dropped(tmp_path: Path) -> None:
    heard = run(
        tmp_path,
        "import asyncio\nasync def work():\n    print('between')\n    await event.wait()\n    print('during')\n"
        "event = asyncio.Event()\ntask = asyncio.create_task(work())",
        "event.set()\nawait task\nprint('mine')",
    )
    assert text(heard, 0) == ""
    assert text(heard, 1) == "mine\n"


def test_context_variables_set_in_a_sync_cell_stay_and_in_an_async_cell_are_lost(tmp_path: Path) -> None:
    heard = run(
        tmp_path,
        "import asyncio, contextvars\nvar = contextvars.ContextVar('var', default='unset')\n_ = var.set('sync')",
        "print(var.get())",
        "await asyncio.sleep(0)\n_ = var.set('async')",
        "print(var.get())",
    )
    assert [text(heard, 1), text(heard, 3)] == ["sync\n", "sync\n"]


def test_displays_are_kept_updated_and_cleared(tmp_path: Path) -> None:
    heard = run(
        tmp_path,
        "from IPython.display import HTML, clear_output, display\nshown = display(HTML('<b>1</b>'), display_id=True)\n"
        "shown.update(HTML('<b>2</b>'))",
        "print('gone'); clear_output(); print('kept')",
        "print('gone'); clear_output(wait=True); print('kept')",
    )
    assert outputs(heard, 0)[0]["data"]["text/html"] == "<b>2</b>"
    assert "transient" not in outputs(heard, 0)[0]
    assert [text(heard, 1), text(heard, 2)] == ["kept\n", "kept\n"]


def test_magics_and_shell_commands_work(tmp_path: Path) -> None:
    heard = run(tmp_path, "!echo shell", "%pwd", "%%capture\nprint('nothing')")
    assert text(heard, 0).strip() == "shell"
    assert outputs(heard, 1)[0]["data"]["text/plain"] == repr(str(tmp_path.resolve()))
    assert outputs(heard, 2) == []


def test_a_subprocess_and_a_write_past_python_belong_to_their_cell(tmp_path: Path) -> None:
    heard = run(
        tmp_path, "import os\n_ = os.write(1, b'raw')", "import subprocess\n_ = subprocess.run(['echo', 'child'])"
    )
    assert [ran.printed for ran in heard.ran.values()] == ["raw", "child\n"]


@pytest.mark.parametrize(
    ("cell", "kind"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("await nothing", "NameError"),
        ("not a python", "SyntaxError"),
        ("%no_such_magic", "UsageError"),
        ("input()", "EOFError"),
        ("raise SystemExit", "SystemExit"),
        ("get_ipython().showtraceback = lambda **_: None\n1 / 0", "ZeroDivisionError"),
        ("import course.notebook.finished", "ModuleNotFoundError"),
        ("import solutions", "ModuleNotFoundError"),
    ],
)
def test_a_cell_that_does_not_run_through_has_failed(tmp_path: Path, cell: str, kind: str) -> None:
    ran = run(tmp_path, cell).ran["0"]
    assert not ran.passed
    assert ran.fault is not None
    assert ran.fault.kind == kind


def test_exit_is_a_failure_and_ends_the_notebook(tmp_path: Path) -> None:
    heard = run(tmp_path, "exit()", "print('never')")
    assert not heard.ran["0"].passed
    assert heard.stop is not None
    assert heard.stop.word == "crashed"
    assert "1" not in heard.ran


def test_the_learners_file_is_there_under_both_names(tmp_path: Path) -> None:
    heard = run(tmp_path, "import agent, course.agent.toy as toy\nprint(agent is toy, agent.__file__)")
    assert text(heard, 0) == f"True {tmp_path / 'agent.py'}\n"


def test_loading_the_extension_leaves_in_place_what_is_being_marked(tmp_path: Path) -> None:
    heard = run(tmp_path, "%load_ext course", "import agent\nprint(agent.Counter().add())")
    assert heard.stop is None
    assert text(heard, 1) == "1\n"
