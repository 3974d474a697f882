"""The `course` command: one function a command, each of which parses, calls and prints.

What only one command needs is imported there: marking starts its processes before anything is drawn.
"""

from __future__ import annotations

import io
import shlex
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from course.catalog import Checkpoint, Lab, checkpoints, find_checkpoint, find_lab
from course.errors import CourseError
from course.workspace import checkpoint_in

if TYPE_CHECKING:
    from rich.console import Console

    from course.marking.verdict import Verdict
    from course.practice.reset import Done

app = typer.Typer(
    help="Agent Labs: build an LLM agent that stays alive, one lab at a time. Type `course` to see where you are.",
    epilog="Exit codes: 0 all green, 1 something is not green, 2 wrong usage, 3 could not mark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Number = Annotated[str, typer.Argument(metavar="NN", help="The checkpoint's number, such as 09.")]
NumberOrHere = Annotated[
    str | None,
    typer.Argument(metavar="NN", help="The checkpoint's number, such as 09. By default the one of this folder."),
]
Folder = Annotated[
    Path | None, typer.Option("--in", metavar="DIR", help="The folder with agent.py; practice/NN by default.")
]


def main() -> None:
    """Run the command and exit with its documented code; 130 when interrupted, with nothing left behind."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a ✔ must not end the command
            stream.reconfigure(errors="replace")
    try:
        app()
    except CourseError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None


def _end(signum: int, frame: FrameType | None) -> None:
    """Leave through every `finally`, once: a second Ctrl-C must not cut the cleaning up short."""
    signal.signal(signum, signal.SIG_IGN)
    raise SystemExit(128 + signum)


@app.callback(invoke_without_command=True)
def where(context: typer.Context) -> None:
    """Agent Labs: build an LLM agent that stays alive, one lab at a time.

    Without a command: where you are, and what to type next.
    """
    if context.invoked_subcommand is None:
        from course.practice import overview

        overview.show(_console(), overview.standings(checkpoints(), Path.cwd()))


@app.command()
def practice(
    number: Number,
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to; practice/NN by default.")] = None,
) -> None:
    """Lay the practice folder of a checkpoint: its notebook, its tests, and the agent.py that you will write.

    Nothing that is already there is ever overwritten.
    """
    from course.marking.table import near
    from course.practice.folder import lay, practice_folder

    checkpoint = find_checkpoint(number)
    folder = into or practice_folder(checkpoint, Path.cwd())
    laid = lay(checkpoint, folder)
    for path in laid.written:
        print(f"written  {near(str(path))}")
    for path in laid.kept:
        print(f"kept     {near(str(path))} (it was there, and was not touched)")
    print(f"\nNext:  {checkpoint.title}: type  course lab {checkpoint.id}" if into is None else _into(checkpoint, into))


def _into(checkpoint: Checkpoint, folder: Path) -> str:
    return f"\nNext:  write agent.py there, then type  course checkpoint {checkpoint.id} --in {folder}"


@app.command("checkpoint")
def checkpoint_command(
    number: NumberOrHere = None,
    lab: Annotated[list[str] | None, typer.Option(metavar="N.M", help="Mark this lab only. May be repeated.")] = None,
    folder: Folder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    kernel: Annotated[
        Literal["quick", "real"],
        typer.Option(help="Run the notebook's cells in a quick shell, or in a real kernel: slower, same verdicts."),
    ] = "quick",
) -> None:
    """Mark your agent.py: one row a lab, green or not, why, and the next command.

    Your file is marked against the course's own tests and notebook, in fresh processes.
    """
    from course.marking.mark import mark
    from course.marking.verdict import exit_code
    from course.practice.folder import find_agent, practice_folder

    checkpoint = _chosen(number)
    where = folder or practice_folder(checkpoint, Path.cwd())
    verdict = mark(checkpoint, find_agent(checkpoint, where), labs=lab or (), kernel=kernel)
    _record(checkpoint, where, verdict)
    if as_json:
        print(verdict.json())
    else:
        _show(checkpoint, verdict, folder)
    raise typer.Exit(exit_code(verdict))


def _record(checkpoint: Checkpoint, folder: Path, verdict: Verdict) -> None:
    """Keep the verdict where it is progress: in a practice folder, and not when somebody's file is looked at."""
    from course.practice import progress

    if checkpoint_in(folder) != checkpoint:
        return
    try:
        progress.record(checkpoint, folder, verdict)
    except OSError as error:
        print(f"Your progress could not be kept in {folder}: {error.strerror or error}.", file=sys.stderr)


def _show(checkpoint: Checkpoint, verdict: Verdict, folder: Path | None) -> None:
    from course.marking.notebook import count_cells
    from course.marking.table import show

    command = f"course checkpoint {checkpoint.id}{_in(folder)}"
    show(_console(), verdict, checkpoint, count_cells(checkpoint), command)
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    hints = checkpoint.find_lab(first.lab).hints if first and first.verdict != "error" else ()
    if first and hints:
        print(f"Stuck?  Type  course hint {first.lab}{_in(folder)}")


@app.command("lab")
def lab_command(
    number: NumberOrHere = None,
    port: Annotated[int | None, typer.Option(help="The port to serve on; a free one by default.")] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address; open no browser.")] = False,
) -> None:
    """Open JupyterLab on the practice folder, with the notebook and agent.py side by side.

    Lays the practice folder first if it is not there. Ctrl-C stops it.
    """
    from course.practice.desk import sit_down
    from course.practice.folder import lay, practice_folder

    checkpoint = _chosen(number)
    folder = practice_folder(checkpoint, Path.cwd())
    lay(checkpoint, folder)
    raise typer.Exit(sit_down(checkpoint, folder, port=port, browser=not no_browser))


@app.command("watch")
def watch_command(
    number: NumberOrHere = None,
    folder: Folder = None,
    poll: Annotated[bool, typer.Option("--poll", help="Look for saves now and then, without file events.")] = False,
) -> None:
    """Mark your agent.py now and on every save, until you press q.

    Keys: h for a hint, n for the next lab once this one is green, l for the list of labs, q to quit. Where there is no
    terminal, it prints a line for each marking and ends with Ctrl-C.
    """
    from course.marking.notebook import count_cells
    from course.practice.folder import find_agent, practice_folder
    from course.practice.screen import Lines, Screen
    from course.practice.watch import watch

    checkpoint = _chosen(number)
    where = folder or practice_folder(checkpoint, Path.cwd())
    find_agent(checkpoint, where)
    console = _console()
    has_keys = console.is_terminal and sys.stdin is not None and sys.stdin.isatty()
    watch(checkpoint, where, Screen(console, count_cells(checkpoint)) if has_keys else Lines(console), poll=poll)


@app.command("hint")
def hint_command(
    lab: Annotated[
        str | None, typer.Argument(metavar="N.M", help="The lab, such as 9.2. By default the one to go on with.")
    ] = None,
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Show the last hint without asking.")] = False,
) -> None:
    """Show the next hint for a lab. There are three, and it remembers which you have seen."""
    from course.practice import hints, progress

    checkpoint, of = find_lab(lab) if lab is not None else _next_lab(folder)
    where = _laid(checkpoint, folder)
    found = hints.hints(checkpoint, of, progress.read(checkpoint, where))
    if found.is_last_step and not yes and not _confirmed(f"{hints.LAST.format(lab=of.id)} Show it?", of):
        print(f"Not shown. Next:  course checkpoint {checkpoint.id} --lab {of.id}")
        return
    try:
        progress.record_hint(checkpoint, where, of.id, found.level)
    except OSError as error:
        print(f"It could not be kept that you have seen this: {error.strerror or error}.", file=sys.stderr)
    _console().print(hints.render(found, *hints.commands(found)))


def _next_lab(folder: Path | None) -> tuple[Checkpoint, Lab]:
    """The lab to go on with, in `folder` or where we stand."""
    from course.practice import progress
    from course.practice.folder import practice_folder

    checkpoint = (checkpoint_in(folder) if folder else None) or _chosen(None)
    where = folder or practice_folder(checkpoint, Path.cwd())
    lab = progress.next_lab(checkpoint, progress.read(checkpoint, where))
    if lab is None:
        raise CourseError(f"Every lab of checkpoint {checkpoint.id} is green. Name a lab: course hint N.M")
    return checkpoint, lab


def _laid(checkpoint: Checkpoint, folder: Path | None) -> Path:
    """The practice folder of the checkpoint. Raises CourseError, with the command to type, when it is not laid."""
    from course.practice.folder import practice_folder

    where = folder or practice_folder(checkpoint, Path.cwd())
    if checkpoint_in(where) != checkpoint:
        into = f" --into {folder}" if folder else ""
        raise CourseError(
            f"Checkpoint {checkpoint.id} is not laid in {where}. Lay it: course practice {checkpoint.id}{into}"
        )
    return where


def _confirmed(question: str, lab: Lab) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise CourseError(f"{question} There is no terminal to ask. To see it: course hint {lab.id} --yes")
    return typer.confirm(question)


@app.command("reset")
def reset_command(
    number: NumberOrHere = None,
    lab: Annotated[str | None, typer.Option(metavar="N.M", help="Put back the code of this lab only.")] = None,
    folder: Folder = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the backups, and change nothing.")] = False,
    restore: Annotated[
        str | None, typer.Option(metavar="NAME", help="Put back this backup, or the one whose name begins so.")
    ] = None,
) -> None:
    """Go back to the starter. What you have written is kept in a dated backup first."""
    from course.practice import reset

    checkpoint = find_lab(lab)[0] if lab is not None and number is None else _chosen(number)
    where = _laid(checkpoint, folder) if not (list_them or restore) else _folder(checkpoint, folder)
    command = f"course reset {checkpoint.id}{_in(folder)}"
    if list_them:
        _list_backups(where, command)
    elif restore is not None:
        _tell(reset.restore(checkpoint, where, restore), command)
        print(f"Next:  course checkpoint {checkpoint.id}{_in(folder)}")
    elif lab is not None:
        done, back = reset.reset_lab(checkpoint, where, checkpoint.find_lab(lab))
        print(f"Put back: {', '.join(back.functions)}")
        if back.others:
            print(f"In the same functions stood code of lab {', '.join(back.others)}: it was put back too.")
        _tell(done, command)
        print(
            f"Next:  write lab {lab} in agent.py, then type  course checkpoint {checkpoint.id}{_in(folder)} --lab {lab}"
        )
    else:
        _tell(reset.reset_all(checkpoint, where), command)
        print(f"Next:  course checkpoint {checkpoint.id}{_in(folder)}")


def _folder(checkpoint: Checkpoint, folder: Path | None) -> Path:
    from course.practice.folder import practice_folder

    return folder or practice_folder(checkpoint, Path.cwd())


def _tell(done: Done, command: str) -> None:
    from course.marking.table import near

    if done.backup is not None:
        print(f"backup   {near(str(done.backup.folder))}")
    for path in done.changed:
        print(f"written  {near(str(path))}")
    if not done.changed:
        print("Nothing to change: the files are so already.")
    if done.backup is not None:
        print(f"Undo:  {command} --restore {done.backup.name}")


def _list_backups(folder: Path, command: str) -> None:
    from course.practice.backups import backups, home

    found = backups(folder)
    for backup in found:
        print(f"{backup.name}  {', '.join(path.name for path in backup.files)}")
    if found:
        print(f"\nThey lie in {home(folder)}. To put one back:  {command} --restore NAME")
    else:
        print(f"There are no backups yet. The first is made by:  {command}")


@app.command("solution")
def solution_command(
    number: NumberOrHere = None,
    lab: Annotated[str | None, typer.Option(metavar="N.M", help="Only what this lab changes.")] = None,
    folder: Folder = None,
    spoil: Annotated[bool, typer.Option("--spoil", help="Show it although it is not green yet.")] = False,
) -> None:
    """Show the difference from your agent.py to the solution, once yours is green.

    Lines with - are yours, lines with + are the solution's.
    """
    from course.practice import progress, solution
    from course.practice.folder import find_agent

    checkpoint = find_lab(lab)[0] if lab is not None and number is None else _chosen(number)
    of = checkpoint.find_lab(lab) if lab is not None else None
    where = _folder(checkpoint, folder)
    agent_py = find_agent(checkpoint, where)
    if not spoil:
        solution.check_earned(checkpoint, of, progress.read(checkpoint, where))
    lines = solution.difference(checkpoint, agent_py, of)
    solution.show(_console(), lines)
    if not lines:
        print("No difference: yours is the solution, line by line.")


@app.command("doctor")
def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list and nothing else.")] = False,
) -> None:
    """Check what the course needs of this machine, by trying it. Prints the command that mends each fault."""
    import msgspec

    from course.practice import doctor
    from course.practice.folder import practice_home

    console = _console()
    checks = []
    for check in doctor.examine(practice_home(Path.cwd())):
        checks.append(check)
        if not as_json:
            doctor.show(console, check)
    faults = sum(check.state == "fault" for check in checks)
    if as_json:
        print(msgspec.json.encode(checks).decode())
    elif faults:
        print(f"\n{faults} to mend. Type what stands behind Fix, then again:  course doctor")
    else:
        print("\nAll that is needed is there. Next:  course")
    raise typer.Exit(1 if faults else 0)


def _in(folder: Path | None) -> str:
    """The option with which a command is typed again."""
    return f" --in {shlex.quote(str(folder))}" if folder else ""


def _chosen(number: str | None) -> Checkpoint:
    """The checkpoint of that number, else the one whose practice folder we stand in, else the one to go on with."""
    if number is not None:
        return find_checkpoint(number)
    here = checkpoint_in(Path.cwd())
    if here is not None:
        return here
    from course.practice.overview import current, standings

    return current(standings(checkpoints(), Path.cwd())).checkpoint


def _console() -> Console:
    from rich.console import Console

    return Console(markup=False, emoji=False, highlight=False)
