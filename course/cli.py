"""The `course` command: one function a command, each of which parses, calls and prints.

What only one command needs is imported there: marking starts its processes before anything is drawn.
"""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from course import __version__
from course.catalog import Checkpoint, Lab, checkpoints
from course.errors import CourseError
from course.practice import output
from course.practice.meant import chosen, chosen_labs, find
from course.workspace import checkpoint_in

if TYPE_CHECKING:
    from course.marking.verdict import Verdict
    from course.practice.reset import Done


class Commands(TyperGroup):
    """The commands. A number in the place of one is answered with those that take it."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        id = args[0]
        if not id[:1].isdigit():
            return super().resolve_command(ctx, args)
        checkpoint, lab = find(id)
        if lab is not None:
            raise CourseError(f"{id} is a lab. To mark it:\n  course checkpoint {checkpoint.id} --lab {lab.id}")
        raise CourseError(
            f"{id} is a checkpoint. To open it:\n  course lab {checkpoint.id}\n"
            f"To mark it:\n  course checkpoint {checkpoint.id}"
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and have all of its output written before its exit code is."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                output.flush()
        except OSError as error:
            raise output.cannot_go_on(error) from error


app = typer.Typer(
    cls=Commands,
    help="Agent Labs: build an LLM agent that stays alive, one lab at a time. Type `course` to see where you are.",
    epilog="Exit codes: 0 all green, 1 something is not green, 2 wrong usage, 3 could not mark.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: its dim and coloured words cannot be read on every background
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _as_folder(path: Path | None) -> Path | None:
    """The folder that is meant by it, or by the agent.py in it."""
    if path is None or path.is_dir() or not path.exists():
        return path
    if path.name != "agent.py":
        raise typer.BadParameter(f"{path} is neither a folder nor an agent.py.")
    return path.parent


NUMBER = "The checkpoint's number, such as 09. By default the one of this folder, or the one to go on with."
Number = Annotated[str | None, typer.Argument(metavar="NN", help=NUMBER)]
NumberOrLab = Annotated[
    str | None, typer.Argument(metavar="NN", help=f"{NUMBER} A lab's id, such as 9.2, stands for that lab alone.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--in", metavar="DIR", callback=_as_folder, help="The folder with agent.py; practice/NN by default."),
]


def main() -> None:
    """Run the command and exit with its documented code; 130 when interrupted, with nothing left behind.

    Output that cannot be written ends it with 3 and one line; a reader that has had enough, with no line.
    """
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), _end)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a ✔ must not end the command
            stream.reconfigure(errors="replace")
    try:
        try:
            app()
        except OSError as error:  # while help was printed: anything else is caught below it
            raise output.cannot_go_on(error) from error
    except CourseError as error:
        with contextlib.suppress(OSError):
            print(error, end="\n" if str(error) else "", file=sys.stderr, flush=True)  # a closed pipe has no text
        output.forget()
        raise SystemExit(error.exit_code) from None


def _end(signum: int, frame: FrameType | None) -> None:
    """Leave through every `finally`, once: a second Ctrl-C must not cut the cleaning up short."""
    signal.signal(signum, signal.SIG_IGN)
    raise SystemExit(128 + signum)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"course {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def where(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version and exit.")
    ] = False,
) -> None:
    """Agent Labs: build an LLM agent that stays alive, one lab at a time.

    Without a command: where you are, and what to type next.
    """
    if context.invoked_subcommand is None:
        from course.practice import overview

        overview.show(output.console(), overview.standings(checkpoints(), Path.cwd()))


@app.command("help", hidden=True)
def help_command(command: Annotated[str | None, typer.Argument(metavar="COMMAND")] = None) -> None:
    """Show the help of a command, or of all."""
    app([*([command] if command else []), "--help"])


@app.command(short_help="Lay the practice folder of a checkpoint.")
def practice(
    number: Number = None,
    into: Annotated[Path | None, typer.Option(metavar="DIR", help="Where to; practice/NN by default.")] = None,
) -> None:
    """Lay the practice folder of a checkpoint: its notebook, its tests, and the agent.py that you will write.

    Nothing that is already there is ever overwritten.
    """
    from course.marking.table import near
    from course.practice.folder import lay, option

    checkpoint, _ = chosen(number)
    folder = _folder(checkpoint, into)
    laid = lay(checkpoint, folder)
    for path in laid.written:
        print(f"written  {near(str(path))}")
    for path in laid.kept:
        print(f"kept     {near(str(path))}")
    if laid.kept:
        print("What is kept was there before, and was not touched.")
    print()
    if where := option(checkpoint, folder):
        output.say("Next: write agent.py there, then type", f"course checkpoint {checkpoint.id}{where}")
    else:
        output.say("Next: to open it in JupyterLab, type", f"course lab {checkpoint.id}")


@app.command("checkpoint", short_help="Mark your agent.py.")
def checkpoint_command(
    number: Annotated[
        list[str] | None,
        typer.Argument(metavar="NN", help=f"{NUMBER} A lab's id, such as 9.2, marks that lab only."),
    ] = None,
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
    from course.practice.folder import find_agent

    checkpoint, labs = chosen_labs(number or (), lab or (), folder)
    where = _folder(checkpoint, folder)
    verdict = mark(checkpoint, find_agent(checkpoint, where), labs=labs, kernel=kernel)
    _record(checkpoint, where, verdict)
    if as_json:
        print(verdict.json())
    else:
        _show(checkpoint, verdict, where)
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


def _show(checkpoint: Checkpoint, verdict: Verdict, folder: Path) -> None:
    from course.marking.notebook import count_cells
    from course.marking.table import show, without_import
    from course.practice.folder import option

    where = option(checkpoint, folder)
    show(output.console(), verdict, checkpoint, count_cells(checkpoint), f"course checkpoint {checkpoint.id}{where}")
    first = next((lab for lab in verdict.labs if not lab.is_green), None)
    hints = checkpoint.find_lab(first.lab).hints if first and first.verdict != "error" else ()
    if first and hints and not without_import(verdict):
        output.say("Stuck? Type", f"course hint {first.lab}{where}")


@app.command("lab", short_help="Open a checkpoint in JupyterLab.")
def lab_command(
    number: Number = None,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The port to serve on; a free one by default.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address; open no browser.")] = False,
) -> None:
    """Open JupyterLab on the practice folder, with the notebook and agent.py side by side.

    Lays the practice folder first if it is not there. Ctrl-C stops it.
    """
    from course.practice.desk import sit_down
    from course.practice.folder import lay, practice_folder

    checkpoint, _ = chosen(number)
    folder = practice_folder(checkpoint, Path.cwd())
    lay(checkpoint, folder)
    raise typer.Exit(sit_down(checkpoint, folder, port=port, browser=not no_browser))


@app.command("watch", short_help="Mark your agent.py now and on every save.")
def watch_command(
    number: NumberOrLab = None,
    folder: Folder = None,
    poll: Annotated[bool, typer.Option("--poll", help="Look for saves now and then, without file events.")] = False,
) -> None:
    """Mark your agent.py now and on every save, until you press q.

    Keys: h for a hint, n for the next lab once this one is green, l for the list of labs, b to go back from these, q to
    quit. Where there is no terminal, it prints a line for each marking and ends with Ctrl-C.
    """
    from course.marking.notebook import count_cells
    from course.practice.folder import find_agent
    from course.practice.screen import Lines, Screen
    from course.practice.watch import watch

    checkpoint, lab = chosen(number, folder=folder)
    where = _folder(checkpoint, folder)
    find_agent(checkpoint, where)
    console = output.console()
    has_keys = console.is_terminal and sys.stdin is not None and sys.stdin.isatty()
    show = Screen(console, count_cells(checkpoint)) if has_keys else Lines(console)
    watch(checkpoint, where, show, lab=lab.id if lab else "", poll=poll)


@app.command("hint", short_help="Show the next hint for a lab.")
def hint_command(
    lab: Annotated[
        str | None, typer.Argument(metavar="N.M", help="The lab, such as 9.2. By default the one to go on with.")
    ] = None,
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Show the last hint without asking.")] = False,
) -> None:
    """Show the next hint for a lab. There are three, and it remembers which you have seen."""
    from course.practice import hints, progress
    from course.practice.folder import option

    checkpoint, named = chosen(lab, folder=folder)
    where = _laid(checkpoint, folder)
    of = named or _next_lab(checkpoint, where)
    typed = option(checkpoint, where)
    found = hints.hints(checkpoint, of, progress.read(checkpoint, where))
    if found.is_last_step and not yes and not _confirmed(hints.LAST.format(lab=of.id), f"course hint {of.id}{typed}"):
        output.say("Not shown. Next: type", f"course checkpoint {checkpoint.id}{typed} --lab {of.id}")
        return
    try:
        progress.record_hint(checkpoint, where, of.id, found.level)
    except OSError as error:
        print(f"It could not be kept that you have seen this: {error.strerror or error}.", file=sys.stderr)
    output.console().print(hints.render(found, hints.more(found, typed), hints.then(found, typed)), crop=False)


def _next_lab(checkpoint: Checkpoint, folder: Path) -> Lab:
    """The lab to go on with in `folder`."""
    from course.practice import progress

    lab = progress.next_lab(checkpoint, progress.read(checkpoint, folder))
    if lab is None:
        raise CourseError(f"Every lab of checkpoint {checkpoint.id} is green. Name a lab: course hint N.M")
    return lab


def _laid(checkpoint: Checkpoint, folder: Path | None) -> Path:
    """The practice folder of the checkpoint. Raises CourseError, with the command to type, when it is not laid."""
    from course.marking.table import near
    from course.practice.folder import into

    where = _folder(checkpoint, folder)
    if checkpoint_in(where) != checkpoint:
        raise CourseError(
            f"Checkpoint {checkpoint.id} is not laid in {near(str(where))}. To lay it:\n  {into(checkpoint, where)}"
        )
    return where


def _confirmed(question: str, command: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise CourseError(f"{question} There is no terminal to ask. To see it:\n  {command} --yes")
    return typer.confirm(f"{question} Show it?")


@app.command("reset", short_help="Go back to the starter, after a backup.")
def reset_command(
    number: NumberOrLab = None,
    lab: Annotated[str | None, typer.Option(metavar="N.M", help="Put back the code of this lab only.")] = None,
    folder: Folder = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the backups, and change nothing.")] = False,
    restore: Annotated[
        str | None, typer.Option(metavar="NAME", help="Put back this backup, or the one whose name begins so.")
    ] = None,
) -> None:
    """Go back to the starter. What you have written is kept in a dated backup first."""
    from course.practice import reset
    from course.practice.folder import option

    checkpoint, of = chosen(number, lab, folder)
    _check_goes_together(checkpoint, of, list_them, restore)
    where = _laid(checkpoint, folder) if not (list_them or restore) else _folder(checkpoint, folder)
    typed = option(checkpoint, where)
    command, mark = f"course reset {checkpoint.id}{typed}", f"course checkpoint {checkpoint.id}{typed}"
    if list_them:
        _list_backups(where, command)
    elif restore is not None:
        _tell(reset.restore(checkpoint, where, restore), command)
        output.say("Next: type", mark)
    elif of is not None:
        done, back = reset.reset_lab(checkpoint, where, of)
        print(f"Put back: {', '.join(back.functions)}")
        if back.others:
            print(f"In the same functions stood code of lab {', '.join(back.others)}: it was put back too.")
        _tell(done, command)
        output.say(f"Next: write lab {of.id} in agent.py, then type", f"{mark} --lab {of.id}")
    else:
        _tell(reset.reset_all(checkpoint, where), command)
        output.say("Next: type", mark)


def _check_goes_together(checkpoint: Checkpoint, lab: Lab | None, list_them: bool, restore: str | None) -> None:
    """Raise CourseError rather than leave out one of the things that were asked for."""
    if list_them and restore is not None:
        raise CourseError("--list and --restore are two things: one lists the backups, the other puts one back.")
    if lab is not None and (list_them or restore is not None):
        option = "--list" if list_them else f"--restore {restore}"
        raise CourseError(
            f"A backup is of the whole folder, not of lab {lab.id}. Leave the lab out:\n"
            f"  course reset {checkpoint.id} {option}"
        )


def _folder(checkpoint: Checkpoint, folder: Path | None) -> Path:
    """The folder that was named, else the checkpoint's practice folder as seen from here."""
    from course.practice.folder import named_folder, practice_folder

    return practice_folder(checkpoint, Path.cwd()) if folder is None else named_folder(checkpoint, folder)


def _tell(done: Done, command: str) -> None:
    from course.marking.table import near

    if done.backup is not None:
        print(f"backup   {near(str(done.backup.folder))}")
    for path in done.changed:
        print(f"written  {near(str(path))}")
    if not done.changed:
        print("Nothing to change: the files are so already.")
    if done.backup is not None:
        output.say("To undo it, type", f"{command} --restore {done.backup.name}")


def _list_backups(folder: Path, command: str) -> None:
    from course.marking.table import near
    from course.practice.backups import backups, home

    found = backups(folder)
    for backup in found:
        print(f"{backup.name}  {', '.join(path.name for path in backup.files)}")
    if found:
        print(f"\nThey lie in {near(str(home(folder)))}.")
        output.say("To put one back, type", f"{command} --restore NAME")
    else:
        output.say("There are no backups yet. To go back to the starter, which makes one, type", command)


@app.command("solution", short_help="Show the difference to the solution, once yours is green.")
def solution_command(
    number: NumberOrLab = None,
    lab: Annotated[str | None, typer.Option(metavar="N.M", help="Only what this lab changes.")] = None,
    folder: Folder = None,
    spoil: Annotated[bool, typer.Option("--spoil", help="Show it although it is not green yet.")] = False,
) -> None:
    """Show the difference from your agent.py to the solution, once yours is green.

    Lines with - are yours, lines with + are the solution's.
    """
    from course.practice import progress, solution
    from course.practice.folder import find_agent, option

    checkpoint, of = chosen(number, lab, folder)
    where = _folder(checkpoint, folder)
    agent_py = find_agent(checkpoint, where)
    if not spoil:
        solution.check_earned(checkpoint, of, progress.read(checkpoint, where), option(checkpoint, where))
    lines = solution.difference(checkpoint, agent_py, of)
    solution.show(output.console(), lines)
    if not lines:
        print("No difference: yours is the solution, line by line.")


@app.command("doctor", short_help="Check what the course needs of this machine.")
def doctor_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list and nothing else.")] = False,
) -> None:
    """Check what the course needs of this machine, by trying it. Prints the command that mends each fault."""
    import msgspec

    from course.practice import doctor
    from course.practice.folder import practice_home

    console = output.console()
    checks = []
    for check in doctor.examine(practice_home(Path.cwd())):
        checks.append(check)
        if not as_json:
            doctor.show(console, check)
    faults = sum(check.state == "fault" for check in checks)
    if as_json:
        print(msgspec.json.encode(checks).decode())
    elif faults:
        print()
        output.say(f"{faults} to mend. Type what stands behind Fix, then again", "course doctor")
    else:
        print()
        output.say("All that is needed is there. Next: type", "course")
    raise typer.Exit(1 if faults else 0)
