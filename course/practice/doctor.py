"""Whether this machine has what the course needs, found out by trying, and the command that mends what it lacks."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from rich.console import Console
from rich.text import Text

from course.catalog import PACKAGE, Checkpoint, checkpoints
from course.practice.plain import visible

DISTRIBUTION = "agent-labs"
KERNEL_SECONDS = 60

State = Literal["ok", "fault", "optional"]


SYMBOLS: dict[State, str] = {"ok": "✔", "fault": "✘", "optional": "–"}
STYLES: dict[State, str] = {"ok": "green", "fault": "red", "optional": ""}


class Check(msgspec.Struct, frozen=True):
    """What one look found. `fix` is the command that mends it, None when nothing is to be mended.

    fault: the course does not work without it. optional: only what `text` names does not.
    """

    name: str
    state: State
    text: str
    fix: str | None = None


class Needs(msgspec.Struct, frozen=True):
    """What the course's own metadata asks for."""

    python: SpecifierSet
    packages: tuple[Requirement, ...]


def examine(home: Path) -> Iterator[Check]:
    """Every check in turn, each made when it is asked for. `home` is the folder that practice folders are laid in."""
    needs = read_needs()
    yield check_system()
    yield check_python(needs)
    yield from check_packages(needs)
    yield check_files()
    yield check_folder(home)
    yield _tried("kernel", _kernel)
    yield _tried("JupyterLab", _jupyterlab)
    yield _tried("marking", _marking)
    yield check_sandbox()


def show(console: Console, check: Check) -> None:
    """Print one check: its state in a word, what was found, and the command that mends it on a line of its own."""
    state = Text(f"{SYMBOLS[check.state]} {check.state:9}", style=STYLES[check.state])
    console.print(Text.assemble(state, f"{check.name:13} ", visible(check.text)), soft_wrap=True)
    if check.fix is not None:
        console.print(Text.assemble(" " * 11, "Fix:  ", (check.fix, "bold")), soft_wrap=True)


def read_needs() -> Needs:
    """As the installed distribution says it, or the checkout that this package lies in."""
    checkout = PACKAGE.parent / "pyproject.toml"
    if checkout.is_file():
        project = tomllib.loads(checkout.read_text(encoding="utf-8"))["project"]
        return Needs(SpecifierSet(project["requires-python"]), tuple(map(Requirement, project["dependencies"])))
    metadata = importlib.metadata.metadata(DISTRIBUTION)
    wanted = [Requirement(text) for text in metadata.get_all("Requires-Dist") or []]
    here = [each for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})]
    return Needs(SpecifierSet(metadata["Requires-Python"]), tuple(here))


def check_system(system: str = sys.platform) -> Check:
    if system == "win32":
        text = "marking needs Linux or macOS. In Windows, work in WSL, the Linux that comes with it"
        return Check("system", "fault", text, "wsl --install")
    return Check("system", "ok", f"{platform.system()} {platform.machine()}")


def check_python(needs: Needs, version: str = platform.python_version()) -> Check:
    if needs.python.contains(version, prereleases=True):
        return Check("Python", "ok", f"{version} in {sys.prefix}")
    fix = "make lab PYTHON=python3.12"
    return Check("Python", "fault", f"{version} is too old: the course needs {needs.python}. Install a newer one", fix)


def check_packages(needs: Needs) -> Iterator[Check]:
    """One check for all that is well, and one for each that is not."""
    wrong = [check for need in needs.packages if (check := _package(need)) is not None]
    good = len(needs.packages) - len(wrong)
    if good:
        yield Check("packages", "ok", f"{good} of {len(needs.packages)} are there and new enough")
    yield from wrong


def _package(need: Requirement) -> Check | None:
    try:
        version = importlib.metadata.version(need.name)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    if version and need.specifier.contains(version, prereleases=True):
        return None
    text = f"{version} is there, and the course needs {need.specifier}" if version else "is not installed"
    return Check(f"package {need.name}", "fault", text, _pip("install", f"{need.name}{need.specifier}"))


def check_files() -> Check:
    """Every checkpoint in the catalog has its files."""
    missing = [path for one in checkpoints().values() for path in _files(one) if not path.is_file()]
    if not missing:
        return Check("course files", "ok", f"all of {', '.join(checkpoints())}")
    is_checkout = (PACKAGE.parent / "Makefile").is_file()
    fix = "git checkout -- ." if is_checkout else _pip("install", "--force-reinstall", "--no-deps", DISTRIBUTION)
    return Check("course files", "fault", f"missing: {', '.join(map(str, missing))}", fix)


def _files(checkpoint: Checkpoint) -> tuple[Path, ...]:
    return checkpoint.notebook, checkpoint.test, checkpoint.starter, checkpoint.solution, checkpoint.source


def check_folder(home: Path) -> Check:
    """Whether practice folders can be laid and kept in `home`, or where it will be."""
    there = next(folder for folder in (home, *home.parents) if folder.is_dir())
    try:
        with tempfile.NamedTemporaryFile(dir=there, prefix=".course-"):
            return Check("folder", "ok", f"{there} can be written")
    except OSError as error:
        why = f"{there} cannot be written ({error.strerror})"
        return Check("folder", "fault", why, "mkdir -p ~/agent-labs && cd ~/agent-labs && course")


def check_sandbox() -> Check:
    """Whether bubblewrap can box a process in. Only `course grade` uses it."""
    found = shutil.which("bwrap")
    if found is None:
        text = "bubblewrap is not there. Your own work needs none; grading other people's code does"
        return Check("sandbox", "optional", text, _install_bubblewrap())
    box = [found, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"]
    done = subprocess.run(box, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode == 0:
        return Check("sandbox", "ok", f"bubblewrap, {found}")
    said = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
    text = f"bubblewrap is there and cannot start a box ({said}). Your own work needs none"
    return Check("sandbox", "optional", text, "sudo sysctl -w kernel.unprivileged_userns_clone=1")


def _install_bubblewrap() -> str | None:
    managers = {
        "apt-get": "sudo apt-get install bubblewrap",
        "dnf": "sudo dnf install bubblewrap",
        "pacman": "sudo pacman -S bubblewrap",
        "zypper": "sudo zypper install bubblewrap",
        "apk": "sudo apk add bubblewrap",
    }
    return next((command for name, command in managers.items() if shutil.which(name)), None)


def _tried(name: str, attempt: Callable[[], Check]) -> Check:
    """The check that `attempt` makes; what it raises is a fault, in its own words."""
    try:
        return attempt()
    except Exception as error:
        said = (str(error).strip().splitlines() or [""])[0]
        text = f"does not work: {type(error).__name__}: {said}" if said else f"does not work: {type(error).__name__}"
        return Check(name, "fault", text, _pip("install", "--force-reinstall", *_PACKAGES[name]))


_PACKAGES = {"kernel": ["ipykernel"], "JupyterLab": ["jupyterlab"], "marking": ["pytest", "nbval", "anyio", "trio"]}


def _kernel() -> Check:
    """Start the kernel that a notebook gets, and let it import the course."""
    from jupyter_client.manager import start_new_kernel

    code = "import sys, course; print(sys.prefix); print(course.__file__)"
    printed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, "env": _environment()}
        manager, client = start_new_kernel(startup_timeout=KERNEL_SECONDS, kernel_name="python3", **quiet)
        try:
            reply = client.execute_interactive(
                code,
                store_history=False,
                timeout=KERNEL_SECONDS,
                output_hook=lambda message: _printed(message, printed),
            )
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)
    if reply["content"]["status"] != "ok":
        text = f"starts, and cannot import the course ({reply['content'].get('evalue')})"
        return Check("kernel", "fault", text, _python("-m", "ipykernel", "install", "--sys-prefix"))
    prefix = "".join(printed).partition("\n")[0]
    if Path(prefix) != Path(sys.prefix):
        text = f"runs in {prefix}, and the course is in {sys.prefix}"
        return Check("kernel", "fault", text, _python("-m", "ipykernel", "install", "--sys-prefix"))
    return Check("kernel", "ok", "starts, and imports the course")


def _environment() -> dict[str, str]:
    """As `course lab` starts a kernel: with this very course importable."""
    path = [str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path)}


def _printed(message: dict[str, Any], into: list[str]) -> None:
    if message["msg_type"] == "stream" and message["content"]["name"] == "stdout":
        into.append(message["content"]["text"])


def _jupyterlab() -> Check:
    from jupyterlab.commands import get_app_dir

    version = importlib.metadata.version("jupyterlab")
    page = Path(get_app_dir()) / "static" / "index.html"
    if page.is_file():
        return Check("JupyterLab", "ok", version)
    text = f"{version} is there without its pages ({page})"
    return Check("JupyterLab", "fault", text, _pip("install", "--force-reinstall", "--no-deps", "jupyterlab"))


def _marking() -> Check:
    """Mark a solution: it must be green."""
    from course.marking.mark import mark

    checkpoint = next(iter(checkpoints().values()))
    verdict = mark(checkpoint, checkpoint.solution)
    if verdict.is_green:
        return Check("marking", "ok", f"the solution of {checkpoint.id} is green in {verdict.seconds:.1f} s")
    lab = next(lab for lab in verdict.labs if not lab.is_green)
    why = (lab.message or "").replace("\n", " ")
    text = f"the solution of {checkpoint.id} is {lab.verdict.replace('_', ' ')} in lab {lab.lab}: {why}"
    return Check(
        "marking",
        "fault",
        text,
        f"course checkpoint {checkpoint.id} --in {shlex.quote(str(checkpoint.solution.parent))}",
    )


def _pip(*arguments: str) -> str:
    return _python("-m", "pip", *arguments)


def _python(*arguments: str) -> str:
    """A command line of this very Python, as it is typed."""
    words = [sys.executable, *arguments]
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
