"""The desk: JupyterLab on one practice folder, with notebook and `agent.py` side by side."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import zmq

from course.catalog import PACKAGE, Checkpoint
from course.marking.slow_grammar import without_slow_grammar

_OFFLINE = (
    "--LabApp.news_url=None",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
)
"""No request leaves the machine."""

_SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},  # a panel is still there the next day
}
"""Defaults only: what a learner has set in JupyterLab stays as it is."""


def sit_down(checkpoint: Checkpoint, folder: Path, *, port: int | None = None, browser: bool = True) -> int:
    """Run JupyterLab on `folder` until it is stopped, and give its exit code. Ctrl-C stops it at once."""
    with tempfile.TemporaryDirectory(prefix="course-desk-") as name:
        own = Path(name)
        _write_layout(checkpoint, own / "workspaces")
        _write_settings(own / "config" / "labconfig")
        _trust(checkpoint, folder / checkpoint.notebook.name)
        print(f"JupyterLab serves {folder}: the notebook, and agent.py beside it. Ctrl-C here stops it.", flush=True)
        server = subprocess.Popen(command(folder, own / "workspaces", port, browser), env=_environment(own / "config"))
        try:
            return server.wait()
        finally:  # interrupted: the server has had the same Ctrl-C, or hears of it now
            if server.poll() is None:
                server.terminate()
                server.wait()


def command(folder: Path, workspaces: Path, port: int | None, browser: bool) -> list[str]:
    """The command line of the server."""
    return [
        *(sys.executable, "-m", "jupyterlab", *_OFFLINE),
        f"--ServerApp.root_dir={folder}",
        f"--LabApp.workspaces_dir={workspaces}",
        "--ServerApp.answer_yes=True",
        "--log-level=ERROR",  # the address, and what went wrong: 20 lines less
        *(["--KernelManager.transport_encryption=auto"] if zmq.has("curve") else []),  # else each kernel warns
        *([] if port is None else [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]),
        *([] if browser else ["--no-browser"]),
        *(["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
    ]


def layout(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """A JupyterLab workspace: the notebook on the left, `agent.py` on the right, the file browser closed."""
    notebook, editor = f"notebook:{checkpoint.notebook.name}", "editor:agent.py"
    areas = [{"type": "tab-area", "currentIndex": 0, "widgets": [widget]} for widget in (notebook, editor)]
    dock = {"type": "split-area", "orientation": "horizontal", "sizes": [0.55, 0.45], "children": areas}
    return {
        "data": {
            "layout-restorer:data": {
                "main": {"dock": dock, "current": notebook},
                "left": {"collapsed": True, "widgets": []},
                "right": {"collapsed": True, "widgets": []},
            },
            notebook: {"data": {"path": checkpoint.notebook.name, "factory": "Notebook"}},
            editor: {"data": {"path": "agent.py", "factory": "Editor"}},
        },
        "metadata": {"id": "default"},
    }


def _write_layout(checkpoint: Checkpoint, folder: Path) -> None:
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    WorkspacesManager(str(folder)).save("default", json.dumps(layout(checkpoint)))


def _write_settings(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "default_setting_overrides.json").write_text(json.dumps(_SETTINGS), encoding="utf-8")


def _trust(checkpoint: Checkpoint, notebook: Path) -> None:
    """Sign the notebook while it is the course's own: JupyterLab then shows its pictures and follows a panel's links.

    A notebook that the learner has changed is JupyterLab's to judge.
    """
    content = notebook.read_bytes()
    if content != checkpoint.notebook.read_bytes():
        return
    with without_slow_grammar():
        import nbformat
        from nbformat.sign import NotebookNotary
    NotebookNotary().sign(nbformat.reads(content.decode(), as_version=4))


def _environment(config: Path) -> dict[str, str]:
    """Ours, with the settings found first, and this very course importable in the kernels."""
    paths = [str(config), *filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")])]
    python = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(paths), "PYTHONPATH": os.pathsep.join(python)}
