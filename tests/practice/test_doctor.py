"""Each fault of a machine is named in words, with the command that mends it."""

from __future__ import annotations

import importlib.metadata
import io
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rich.console import Console

from course.catalog import checkpoints
from course.errors import CannotMarkError
from course.practice import doctor
from course.practice.doctor import Check, Needs


def needs(*packages: str, python: str = ">=3.11") -> Needs:
    return Needs(SpecifierSet(python), tuple(map(Requirement, packages)))


def test_this_machine_has_what_the_course_needs(tmp_path: Path) -> None:
    found = list(doctor.examine(tmp_path / "practice"))
    assert [check for check in found if check.state == "fault"] == []
    assert {"Python", "packages", "kernel", "JupyterLab", "marking", "folder", "sandbox"} <= {one.name for one in found}


def test_what_is_needed_is_what_the_project_declares() -> None:
    found = doctor.read_needs()
    assert found.python.contains("3.11.0")
    assert not found.python.contains("3.10.0")
    assert {"anyio", "pytest", "jupyterlab", "ipykernel"} <= {need.name for need in found.packages}


def test_an_installed_course_asks_its_own_metadata(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor, "PACKAGE", tmp_path / "site-packages" / "course")
    found = doctor.read_needs()
    assert not found.python.contains("3.10.0")
    assert {"anyio", "pytest"} <= {need.name for need in found.packages}
    assert "ruff" not in {need.name for need in found.packages}, "that is for those who work on the course"


def test_an_old_python_is_a_fault() -> None:
    assert doctor.check_python(needs(), "3.11.0").state == "ok"
    old = doctor.check_python(needs(), "3.10.12")
    assert (old.state, "3.10.12" in old.text, ">=3.11" in old.text) == ("fault", True, True)
    assert old.fix


def test_windows_itself_is_a_fault_and_its_linux_the_way_out() -> None:
    assert doctor.check_system("linux").state == "ok"
    found = doctor.check_system("win32")
    assert (found.state, found.fix) == ("fault", "wsl --install")


def test_a_package_that_is_old_or_missing_is_a_fault_with_the_command_that_installs_it() -> None:
    version = importlib.metadata.version("anyio")
    good, old, missing = doctor.check_packages(needs("trio>=0.1", f"anyio>{version}", "surely-not-there>=1"))
    assert (good.state, good.text) == ("ok", "1 of 3 are there and new enough")
    assert (old.state, old.text) == ("fault", f"{version} is there, and the course needs >{version}")
    assert shlex.split(old.fix or "") == [sys.executable, "-m", "pip", "install", f"anyio>{version}"]
    assert missing.text == "is not installed"


def test_a_missing_file_of_the_course_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    one = replace(checkpoints()["09"], package=tmp_path)
    monkeypatch.setattr(doctor, "checkpoints", lambda: {"09": one})
    found = doctor.check_files()
    assert found.state == "fault"
    assert str(one.starter) in found.text
    assert found.fix


def test_a_folder_that_cannot_be_written_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor.check_folder(tmp_path / "not" / "yet" / "there").state == "ok"
    assert list(tmp_path.iterdir()) == []

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(doctor.tempfile, "NamedTemporaryFile", refuse)
    found = doctor.check_folder(tmp_path)
    assert (found.state, found.text) == ("fault", f"{tmp_path} cannot be written (Permission denied)")
    assert found.fix


def test_a_sandbox_is_needed_for_grading_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    found = doctor.check_sandbox()
    assert (found.state, found.fix) == ("optional", "sudo apt-get install bubblewrap")


def test_a_sandbox_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/bwrap")
    failed = SimpleNamespace(returncode=1, stderr="bwrap: No permissions to create new namespace\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    found = doctor.check_sandbox()
    assert found.state == "optional"
    assert "No permissions to create new namespace" in found.text


def test_a_kernel_that_does_not_start_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    import jupyter_client.manager as manager

    def dead(**_: object) -> None:
        raise RuntimeError("Kernel died before replying to kernel_info\nmore")

    monkeypatch.setattr(manager, "start_new_kernel", dead)
    found = doctor._tried("kernel", doctor._kernel)
    assert (found.state, found.text) == (
        "fault",
        "does not work: RuntimeError: Kernel died before replying to kernel_info",
    )
    assert shlex.split(found.fix or "")[-1] == "ipykernel"


def test_a_kernel_of_another_python_is_a_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(doctor.sys, "prefix", str(tmp_path))
    found = doctor._kernel()
    assert found.state == "fault"
    assert str(tmp_path) in found.text
    assert shlex.split(found.fix or "")[1:] == ["-m", "ipykernel", "install", "--sys-prefix"]


def test_a_marking_that_cannot_be_done_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    from course.marking import mark

    def broken(*_: object) -> None:
        raise CannotMarkError("The course's own test cannot be read.")

    monkeypatch.setattr(mark, "mark", broken)
    found = doctor._tried("marking", doctor._marking)
    assert (found.state, "cannot be read" in found.text) == ("fault", True)


def test_a_fix_stands_on_a_line_of_its_own_and_is_not_wrapped() -> None:
    file = io.StringIO()
    console = Console(file=file, width=40, markup=False, emoji=False, highlight=False)
    fix = "python -m pip install " + "x" * 80
    doctor.show(console, Check("package x", "fault", "[bold]is\x1b[2J not there", fix))
    first, second = file.getvalue().splitlines()
    assert first == "✘ fault    package x     [bold]is␛[2J not there"
    assert second == f"           Fix:  {fix}"
