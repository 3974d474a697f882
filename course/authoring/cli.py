"""`python -m course.authoring`: one function a command. Exit codes: 0 done, 1 something is wrong, 2 usage."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from course import catalog
from course.authoring import audit, build, prove
from course.authoring.problem import AuthoringError, Problem, shown
from course.catalog import Checkpoint
from course.errors import CourseError
from course.marking.slow_grammar import without_slow_grammar

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

Number = Annotated[str | None, typer.Argument(metavar="[NN]", help="A checkpoint, as 09. All by default.")]


def main() -> None:
    try:
        app()
    except CourseError as error:
        print(error, file=sys.stderr)
        raise SystemExit(error.exit_code) from None


@app.callback()
def in_a_checkout() -> None:
    """Build, check and prove the course."""
    if not (catalog.root() / "pyproject.toml").is_file():
        raise CourseError("This course is an installed package. Authoring needs a checkout of its repository.")


@app.command("build")
def build_command(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; name what is stale.")] = False,
) -> None:
    """Write starters/NN and solutions/NN from course/agent."""
    catalogued = catalog.checkpoints()
    if check:
        _raise_any(audit.problems(catalogued))
        print(f"{len(catalogued)} checkpoint(s): starters and solutions are fresh, the catalog is complete.")
        return
    for file in (file for checkpoint in catalogued.values() for file in build.build(checkpoint)):
        print(f"{'written' if file.is_stale else 'fresh'}  {shown(file.path)}")
        file.write()


@app.command("execute")
def execute_command(
    id: Number = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; name changed cells.")] = False,
) -> None:
    """Run a lab notebook with the solution and store its outputs."""
    with without_slow_grammar():
        from course.authoring import notebooks

    for checkpoint in _chosen(id):
        executed = notebooks.execute(checkpoint)
        if check:
            _raise_any(notebooks.stale_problems(checkpoint, executed))
        else:
            checkpoint.notebook.write_text(executed, encoding="utf-8", newline="\n")
        print(f"{'fresh' if check else 'written'}  {shown(checkpoint.notebook)}")


@app.command("prove")
def prove_command(
    id: Number = None,
    lab: Annotated[str | None, typer.Option(help="One lab only, as 9.2.")] = None,
    only: Annotated[prove.Kind | None, typer.Option(help="One kind of proof only.")] = None,
) -> None:
    """Mark every step of the staircase, every mistake and every alternative."""
    from course.marking.mark import mark

    cases = [case for checkpoint in _chosen(id) for case in prove.cases(checkpoint, lab, only)]
    failed = 0
    for proof in prove.prove(cases, mark):
        failed += not proof.holds
        print(f"{'holds' if proof.holds else 'FAILS'}  {proof.case}\n       {proof.said}", flush=True)
    print(f"{len(cases) - failed} of {len(cases)} proofs hold.")
    if failed or not cases:
        raise typer.Exit(1)


def _chosen(id: str | None) -> list[Checkpoint]:
    return list(catalog.checkpoints().values()) if id is None else [catalog.find_checkpoint(id)]


def _raise_any(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise AuthoringError(found)
