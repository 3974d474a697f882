"""A plain `pip install` of the wheel, without a checkout, can lay, mark and show where it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from course.catalog import checkpoints

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def bin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with nothing in it but the wheel; what it needs is lent by this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    bin = folder / "bin"
    install = [sys.executable, "-m", "pip", "--python", str(bin / "python"), "install", "--no-deps", "--no-index"]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=120)
    (packages,) = folder.glob("lib/python*/site-packages")
    lent = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (packages / "lent.pth").write_text("\n".join(sorted(lent)))
    return bin


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_wheel_carries_what_each_checkpoint_needs_and_no_leavings(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for checkpoint in checkpoints().values():
        for path in (checkpoint.notebook, checkpoint.starter, checkpoint.solution, checkpoint.test):
            assert f"course/data/{path.relative_to(checkpoint.root)}" in names
    assert [name for name in names if "__pycache__" in name or "/." in name] == []


def test_the_installed_course_is_the_wheels(bin: Path, tmp_path: Path) -> None:
    where = run(bin / "python", "-c", "import course, sys; print(course.__file__)", folder=tmp_path)
    assert Path(where.stdout.strip()).is_relative_to(bin.parent), where.stderr


def test_authoring_says_that_it_needs_a_checkout(bin: Path, tmp_path: Path) -> None:
    tried = run(bin / "python", "-m", "course.authoring", "build", folder=tmp_path)
    assert (tried.returncode, tried.stderr) == (
        2,
        "This course is an installed package. Authoring needs a checkout of its repository.\n",
    )


@pytest.mark.parametrize("id", list(checkpoints()))
def test_it_lays_a_checkpoint_and_marks_starter_and_solution(bin: Path, tmp_path: Path, id: str) -> None:
    laid = run(bin / "course", "practice", id, folder=tmp_path)
    assert laid.returncode == 0, laid.stderr
    marked = run(bin / "course", "checkpoint", id, "--json", folder=tmp_path)
    assert (marked.returncode, json.loads(marked.stdout)["verdict"]) == (1, "not_attempted"), marked.stderr

    (tmp_path / "practice" / id / "agent.py").write_bytes(checkpoints()[id].solution.read_bytes())
    marked = run(bin / "course", "checkpoint", id, "--json", folder=tmp_path)
    assert (marked.returncode, json.loads(marked.stdout)["verdict"]) == (0, "green"), marked.stdout + marked.stderr
