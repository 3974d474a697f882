"""What marking costs: `course checkpoint NN` against plain pytest and nbval on the same files, and a save's answer.

    python benchmarks/marking.py [NN ...] [--repeat 5] [--saves 5]

For every checkpoint in the catalog, with its solution laid in a practice folder, each command in a process of its own.
Plain nbval is given the notebook without the cells that marking leaves out: demonstrations, and `%mark` itself.

    checkpoint    course checkpoint NN
    pytest        pytest test_NN_….py
    nbval         pytest --nbval NN_….ipynb
    … quick       the same two without the one slow import of nbformat's, which `course` never makes
    watch         from the write of agent.py until `course watch NN` has printed its verdict, with none of the labs
                  solved, with the first, with the first two, and so on

Prints median seconds and ratios of medians; the commands take turns, so that a busy machine hits all of them. Targets:
checkpoint at most 0.25 of pytest + nbval, at most 0.5 of the quick two, and 0.5 s for a save. The first round is not
counted: it fills the bytecode caches.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from course.authoring.views import read_source
from course.catalog import PACKAGE, Checkpoint, checkpoints
from course.marking.notebook import NEVER_MARKED
from course.workspace import workspace

COURSE = (sys.executable, "-m", "course")
PYTEST = (sys.executable, "-m", "pytest", "-q")
NO_SLOW_IMPORT = "import sys\nsys.modules.setdefault('rfc3987_syntax', None)\n"

PAUSE = 1.5
"""Seconds between two saves: a learner reads the verdict, and the next marking's processes get ready."""


def marked_cells(notebook: Path) -> bytes:
    """The notebook with no other cells than those that marking runs."""
    content = json.loads(notebook.read_bytes())
    content["cells"] = [cell for cell in content["cells"] if not NEVER_MARKED & set(cell["metadata"].get("tags", []))]
    return json.dumps(content).encode()


def commands(checkpoint: Checkpoint, folder: Path) -> Mapping[str, tuple[str, ...]]:
    quick = ("-p", "no_slow_import")
    test, notebook = checkpoint.test.name, ("--nbval", checkpoint.notebook.name)
    return {
        "checkpoint": (*COURSE, "checkpoint", checkpoint.id, "--in", str(folder)),
        "pytest": (*PYTEST, test),
        "nbval": (*PYTEST, *notebook),
        "pytest quick": (*PYTEST, *quick, test),
        "nbval quick": (*PYTEST, *quick, *notebook),
    }


def environment(beside: Path) -> dict[str, str]:
    """Ours, with bytecode caches as people have them, and the plugin that keeps the slow import out."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), str(beside)])}


def seconds(command: tuple[str, ...], folder: Path, env: Mapping[str, str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True)
    return time.perf_counter() - began


def compare(checkpoint: Checkpoint, folder: Path, env: Mapping[str, str], repeat: int) -> dict[str, float]:
    """Median seconds of each command."""
    found: dict[str, list[float]] = {name: [] for name in commands(checkpoint, folder)}
    for number in range(repeat + 1):
        for name, command in commands(checkpoint, folder).items():
            took = seconds(command, folder, env)
            if number:
                found[name].append(took)
    return {name: statistics.median(times) for name, times in found.items()}


def watch(checkpoint: Checkpoint, folder: Path, env: Mapping[str, str], saves: int) -> dict[str, list[float]]:
    """Seconds from each save to the line with its verdict, for each number of labs solved."""
    agent_py = folder / "agent.py"
    source, labs = read_source(checkpoint), [lab.id for lab in checkpoint.labs]
    sources = {f"{k} of {len(labs)}": source.render(labs[:k]).encode() for k in range(len(labs) + 1)}
    found: dict[str, list[float]] = {name: [] for name in sources}
    command = (*COURSE, "watch", checkpoint.id, "--in", str(folder))
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for number in range(saves):
            for name, source in sources.items():
                time.sleep(PAUSE)
                began = time.perf_counter()
                agent_py.write_bytes(source + b"\n# save %d\n" % number)
                process.stdout.readline()
                found[name].append(time.perf_counter() - began)
        process.terminate()
    return found


def report(checkpoint: Checkpoint, times: Mapping[str, float], answers: Mapping[str, list[float]]) -> None:
    print(f"checkpoint {checkpoint.id}")
    for name, median in times.items():
        print(f"  {name:14} {median:6.2f} s")
    plain = times["checkpoint"] / (times["pytest"] + times["nbval"])
    quick = times["checkpoint"] / (times["pytest quick"] + times["nbval quick"])
    print(f"  checkpoint / (pytest + nbval)        {plain:5.2f}   {_met(plain, 0.25)}")
    print(f"  checkpoint / (the same two, quick)   {quick:5.2f}   {_met(quick, 0.5)}")
    for name, each in answers.items():
        median = statistics.median(each)
        print(
            f"  a save, {name:8} labs solved   median {median:5.2f} s, worst {max(each):5.2f} s   {_met(median, 0.5)}"
        )


def _met(value: float, target: float) -> str:
    return f"target {target:g}: {'met' if value <= target else 'MISSED'}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoints", nargs="*", metavar="NN", default=list(checkpoints()))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--saves", type=int, default=5)
    options = parser.parse_args()
    for id in options.checkpoints:
        checkpoint = checkpoints()[id]
        with tempfile.TemporaryDirectory() as name:
            folder, beside = Path(name) / id, Path(name) / "plugins"
            beside.mkdir()
            (beside / "no_slow_import.py").write_text(NO_SLOW_IMPORT, encoding="utf-8")
            workspace(checkpoint, checkpoint.solution.read_bytes(), folder)
            (folder / checkpoint.notebook.name).write_bytes(marked_cells(checkpoint.notebook))
            times = compare(checkpoint, folder, environment(beside), options.repeat)
            report(checkpoint, times, watch(checkpoint, folder, environment(beside), options.saves))


if __name__ == "__main__":
    main()
