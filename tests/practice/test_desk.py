"""JupyterLab opens with notebook and agent.py side by side, and asks nobody outside for anything."""

from __future__ import annotations

from pathlib import Path

import toy

from course.practice.desk import command, layout


def test_notebook_and_file_lie_side_by_side() -> None:
    found = layout(toy.CHECKPOINT)["data"]
    dock = found["layout-restorer:data"]["main"]["dock"]
    assert dock["orientation"] == "horizontal"
    assert [area["widgets"] for area in dock["children"]] == [["notebook:42_toy.ipynb"], ["editor:agent.py"]]
    assert found["notebook:42_toy.ipynb"]["data"]["path"] == "42_toy.ipynb"
    assert found["editor:agent.py"]["data"]["path"] == "agent.py"


def test_no_request_leaves_the_machine(tmp_path: Path) -> None:
    found = command(tmp_path, tmp_path, port=None, browser=True)
    assert "--LabApp.news_url=None" in found
    assert "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate" in found
    assert "--LabApp.extension_manager=readonly" in found


def test_port_and_browser_are_as_they_are_asked_for(tmp_path: Path) -> None:
    plain = command(tmp_path, tmp_path, port=None, browser=True)
    asked = command(tmp_path, tmp_path, port=9999, browser=False)
    assert not any(part.startswith("--ServerApp.port") for part in plain)
    assert "--no-browser" not in plain
    assert {"--ServerApp.port=9999", "--ServerApp.port_retries=0", "--no-browser"} <= set(asked)
