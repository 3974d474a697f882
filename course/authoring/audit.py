"""The catalog checked both ways: what it names is there and whole, and nothing lies about that it lacks."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from course.authoring import markers, mistakes
from course.authoring.build import build, stale_problems
from course.authoring.problem import AuthoringError, Problem
from course.authoring.shape import Function
from course.authoring.views import Source, read_source
from course.catalog import Checkpoint

FEWEST_TESTS = 2  # a lab with one test is one lucky guess from green

# What may lie in a folder beside what the catalog names.
HELPERS = {
    "labs": {"ruff.toml"},
    "starters": set[str](),
    "solutions": set[str](),
    "tests/checkpoints": {"__init__.py", "conftest.py"},
    "tests/mistakes": {"__init__.py", "conftest.py", "test_mistakes.py"},
}


def problems(catalog: Mapping[str, Checkpoint]) -> Iterator[Problem]:
    """All that is wrong with the course as it lies there: markers, stale files, and what either side lacks."""
    for checkpoint in catalog.values():
        try:
            source = read_source(checkpoint)
            yield from stale_problems(build(checkpoint))
            yield from _block_problems(source)
            yield from mistakes.problems(mistakes.load(checkpoint), source)
        except AuthoringError as error:
            yield from error.problems
        yield from _test_problems(checkpoint)
        yield from _notebook_problems(checkpoint)
    yield from _stray_problems(catalog)


def _stray_problems(catalog: Mapping[str, Checkpoint]) -> Iterator[Problem]:
    """Files in the catalog's folders that it lacks, and markers in modules that are no checkpoint's."""
    known = {path for checkpoint in catalog.values() for path in (*_files(checkpoint), *_pictures(checkpoint))}
    for root in {checkpoint.root for checkpoint in catalog.values()}:
        for folder, helpers in HELPERS.items():
            for path in _visible(root / folder):
                if path not in known and path.name not in helpers:
                    text = "belongs to no checkpoint in course/catalog.toml. Add it there, or delete the file."
                    yield Problem(path, 0, text)
    modules = {checkpoint.source for checkpoint in catalog.values()}
    for package in {checkpoint.package for checkpoint in catalog.values()}:
        for path in sorted((package / "agent").glob("*.py")):
            if path not in modules and markers.has_markers(path.read_text(encoding="utf-8")):
                yield Problem(path, 0, "has markers, but no checkpoint in course/catalog.toml names the module.")


def _files(checkpoint: Checkpoint) -> Iterator[Path]:
    yield from (checkpoint.notebook, checkpoint.starter, checkpoint.solution, checkpoint.test)
    yield checkpoint.mistakes
    with suppress(AuthoringError):  # told of already
        variants = mistakes.load(checkpoint)
        yield from (checkpoint.mistakes.parent / each.file for each in variants.alternatives if each.file)


def _pictures(checkpoint: Checkpoint) -> Iterator[Path]:
    """The pictures in labs/images that the checkpoint's notebook or the README shows."""
    pages = [page for page in (checkpoint.notebook, checkpoint.root / "README.md") if page.is_file()]
    shown = "".join(page.read_text(encoding="utf-8", errors="replace") for page in pages)
    pictures = (checkpoint.notebook.parent / "images").glob("*")
    yield from (picture for picture in pictures if f"images/{picture.name}" in shown)


def _visible(folder: Path) -> Iterator[Path]:
    """The files below a folder, hidden ones and bytecode left out."""
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in parts):
            yield path


def _block_problems(source: Source) -> Iterator[Problem]:
    marked = {block.lab for block in source.blocks}
    for lab in source.checkpoint.labs:
        if lab.id not in marked and not lab.optional:
            text = f"lab {lab.id} has no block. Mark what its learner writes: {markers.BEGIN_SHAPE}."
            yield Problem(source.checkpoint.source, 0, text)


def _test_problems(checkpoint: Checkpoint) -> Iterator[Problem]:
    path = checkpoint.test
    if not path.is_file():
        yield Problem(path, 0, "is missing. Write the learner's contract in it.")
        return
    try:
        tests = list(_marked_tests(ast.parse(path.read_bytes()).body))
    except SyntaxError as error:
        yield Problem(path, error.lineno or 0, f"is not Python: {error.msg}.")
        return
    labs = {lab.id: lab for lab in checkpoint.labs}
    for line, name, lab in tests:
        if lab not in labs:
            text = f'{name} belongs to no lab. Mark it with one: @pytest.mark.lab("{next(iter(labs))}").'
            yield Problem(path, line, text)
    counts = Counter(lab for _, _, lab in tests)
    for lab in labs.values():
        if counts[lab.id] != lab.tests:
            text = f"lab {lab.id} has {counts[lab.id]} tests here and `tests = {lab.tests}` in the catalog."
            yield Problem(path, 0, f"{text} Make them agree.")
        elif lab.tests < FEWEST_TESTS:
            yield Problem(path, 0, f"lab {lab.id} has fewer than {FEWEST_TESTS} tests. Add one.")


def _marked_tests(body: Sequence[ast.stmt], lab: str | None = None) -> Iterator[tuple[int, str, str | None]]:
    """Line, name and lab of each test function; the lab of a class's mark where the function has none."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield from _marked_tests(node.body, _lab_mark(node) or lab)
        elif isinstance(node, Function) and node.name.startswith("test"):
            yield node.lineno, node.name, _lab_mark(node) or lab


def _lab_mark(node: Function | ast.ClassDef) -> str | None:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="lab"), args=[ast.Constant(value=str(lab))]):
                return lab
    return None


def _notebook_problems(checkpoint: Checkpoint) -> Iterator[Problem]:
    path = checkpoint.notebook
    execute = f"python -m course.authoring execute {checkpoint.id}"
    if not path.is_file():
        yield Problem(path, 0, f"is missing. Write it, then run `{execute}`.")
        return
    try:
        tagged = list(_lab_cells(json.loads(path.read_bytes())))
    except (ValueError, KeyError, TypeError) as error:
        yield Problem(path, 0, f"is no notebook in nbformat 4: {error!r}.")
        return
    labs = {f"lab-{lab.id}": lab for lab in checkpoint.labs}
    for number, tag, has_output in tagged:
        if tag not in labs:
            yield Problem(path, 0, f"cell {number} is tagged {tag}, which is no lab of the catalog.")
        elif not has_output:
            text = f"cell {number} is tagged {tag} and stores no output, so it marks nothing."
            yield Problem(path, 0, f"{text} Let it show something, then run `{execute}`.")
    seen = {tag for _, tag, _ in tagged}
    for tag, lab in labs.items():
        if tag not in seen:
            yield Problem(path, 0, f"no cell counts for lab {lab.id}. Tag the cell that shows it: {tag}.")


def _lab_cells(notebook: dict[str, Any]) -> Iterator[tuple[int, str, bool]]:
    """Number, tag and whether it has an output, of each cell that counts for a lab."""
    for number, cell in enumerate(notebook["cells"], 1):
        for tag in cell["metadata"].get("tags", []):
            if tag.startswith("lab-"):
                yield number, tag, _has_output(cell)


def _has_output(cell: dict[str, Any]) -> bool:
    return any(
        "".join(output.get("text", [])).strip() or output.get("data") or output.get("ename")
        for output in cell.get("outputs", [])
    )
