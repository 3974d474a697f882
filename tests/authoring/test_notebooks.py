"""Notebooks executed with the solution, in a real kernel, and stored."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest

from course.authoring import notebooks
from course.authoring.problem import AuthoringError

from .small_course import Project, code_cell, notebook, stdout


def execute(project: Project, *sources: str) -> list[dict[str, Any]]:
    """The cells of a notebook with these sources, after it was executed."""
    cells = (code_cell(f"id-{number}", source) for number, source in enumerate(sources))
    project.write("labs/01_tiny.ipynb", notebook(*cells))
    return json.loads(notebooks.execute(project.checkpoint))["cells"]


def test_cells_run_in_a_workspace_with_the_solution_as_agent_and_as_the_finished_module(project: Project) -> None:
    cells = execute(
        project,
        "import agent, course.agent.tiny\nprint(agent is course.agent.tiny, agent.double(2))",
        "from pathlib import Path\nprint(sorted(path.name for path in Path().iterdir()))",
        "await __import__('asyncio').sleep(0, 'awaited')",
    )
    assert cells[0]["outputs"][0]["text"] == ["True 4\n"]
    assert cells[1]["outputs"][0]["text"] == ["['01_tiny.ipynb', 'agent.py', 'test_01_tiny.py']\n"]
    assert cells[2]["outputs"][0]["data"] == {"text/plain": ["'awaited'"]}


def test_executing_again_gives_the_same_bytes_and_check_has_nothing_to_say(project: Project) -> None:
    first = notebooks.execute(project.checkpoint)
    project.write("labs/01_tiny.ipynb", first)
    assert notebooks.execute(project.checkpoint) == first
    assert list(notebooks.stale_problems(project.checkpoint, first)) == []


def test_check_names_the_cell_whose_output_would_change_and_the_command(project: Project) -> None:
    executed = notebooks.execute(project.checkpoint)
    project.write("labs/01_tiny.ipynb", executed.replace("[0, 1]", "[0, 2]"))
    (problem,) = notebooks.stale_problems(project.checkpoint, executed)
    assert str(problem) == (
        "labs/01_tiny.ipynb: cell 3 (`print(list(count(2)))`) would now show '[0, 1]\\n'. "
        "Run `python -m course.authoring execute 01`."
    )


def test_check_tells_of_a_notebook_that_is_not_in_its_stored_form(project: Project) -> None:
    executed = notebooks.execute(project.checkpoint)
    project.write("labs/01_tiny.ipynb", executed.replace('"version": "3', '"version": "4') + "\n")
    (problem,) = notebooks.stale_problems(project.checkpoint, executed)
    assert "is not in its stored form" in problem.text


def test_a_failing_cell_is_named_with_its_error(project: Project) -> None:
    with pytest.raises(
        AuthoringError, match=r"01_tiny\.ipynb: cell 2 \(`1 / 0`\) ended in ZeroDivisionError: division"
    ):
        execute(project, "1", "1 / 0", "3")


def test_a_cell_that_ends_its_kernel_is_named(project: Project) -> None:
    with pytest.raises(AuthoringError, match=r"cell 2 \(`import os; os\._exit\(0\)`\) ended in .*[Kk]ernel died"):
        execute(project, "1", "import os; os._exit(0)")


@pytest.mark.parametrize("source", ["import sys; sys.prefix", "object()", "import os; os.getcwd()"])
def test_an_output_that_differs_from_machine_to_machine_is_an_error(project: Project, source: str) -> None:
    with pytest.raises(AuthoringError, match="which differs from machine to machine"):
        execute(project, source)


def test_a_missing_notebook_and_one_that_is_none_are_told(project: Project) -> None:
    project.checkpoint.notebook.write_text("<<<<<<< HEAD")
    with pytest.raises(AuthoringError, match=r"01_tiny\.ipynb: is no notebook"):
        notebooks.execute(project.checkpoint)
    project.checkpoint.notebook.unlink()
    with pytest.raises(AuthoringError, match=r"01_tiny\.ipynb: is missing"):
        notebooks.execute(project.checkpoint)


def tidied(*cells: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    node = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": list(cells)})
    assert isinstance(node, nbformat.NotebookNode)
    notebooks.tidy(node)
    return json.loads(nbformat.writes(node))


def test_a_stored_notebook_says_nothing_of_the_machine_it_ran_on() -> None:
    language = {"name": "python", "version": "3.99", "mimetype": "text/x-python"}
    kernel = {"name": "python3-mine", "display_name": "Mine", "language": "python"}
    metadata = tidied(language_info=language, kernelspec=kernel, widgets={"state": {}})["metadata"]
    assert metadata == {"kernelspec": notebooks.KERNELSPEC, "language_info": {"name": "python"}}


def test_cells_keep_their_ids_and_tags_and_nothing_of_how_they_were_looked_at() -> None:
    cell = code_cell("mine", "1", tags=("lab-1.1",))
    cell["metadata"] |= {"scrolled": True, "execution": {"iopub.status.busy": "2030-01-01"}}
    nameless = [code_cell("mine", "2"), {key: value for key, value in code_cell("", "3").items() if key != "id"}]
    cells = tidied(cell, *nameless)["cells"]
    assert [cell["id"] for cell in cells] == ["mine", "cell-2", "cell-3"]
    assert cells[0]["metadata"] == {"tags": ["lab-1.1"]}


def test_cells_are_numbered_as_run_all_numbers_them_also_behind_one_that_is_skipped(project: Project) -> None:
    cells = [code_cell("a", "1"), code_cell("b", "1 / 0", tags=("skip-execution",)), code_cell("c", "3")]
    project.write("labs/01_tiny.ipynb", notebook(*cells))
    first, skipped, last = json.loads(notebooks.execute(project.checkpoint))["cells"]
    assert [cell["execution_count"] for cell in (first, skipped, last)] == [1, None, 3]
    assert last["outputs"][0]["execution_count"] == 3
    assert skipped["outputs"] == []


def test_a_widgets_live_form_is_left_out_and_its_static_forms_stay() -> None:
    display = {"output_type": "display_data", "metadata": {}}
    live = {notebooks.WIDGET: {"model_id": "7f3a", "version_major": 2, "version_minor": 0}}
    both = code_cell("a", "1", {**display, "data": {**live, "image/svg+xml": "<svg/>"}})
    alone = code_cell("b", "1", {**display, "data": live})
    cells = tidied(both, alone)["cells"]
    assert cells[0]["outputs"][0]["data"] == {"image/svg+xml": ["<svg/>"]}
    assert cells[1]["outputs"] == []


def test_a_stored_error_has_no_traceback_paths() -> None:
    error = {"output_type": "error", "ename": "Busy", "evalue": "one owner", "traceback": ["File /home/me/agent.py:1"]}
    cells = tidied(code_cell("a", "1", error))["cells"]
    assert cells[0]["outputs"] == [{**error, "traceback": ["Busy: one owner"]}]


def test_text_that_differs_is_shown_when_a_cell_shows_nothing_any_more(project: Project) -> None:
    project.write("labs/01_tiny.ipynb", notebook(code_cell("a", "x = 1", stdout("1\n"))))
    executed = notebooks.execute(project.checkpoint)
    (problem,) = notebooks.stale_problems(project.checkpoint, executed)
    assert "would now show nothing" in problem.text
