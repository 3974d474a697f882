"""The catalog checked both ways."""

from __future__ import annotations

import json

import pytest

from course import catalog
from course.authoring import audit

from .small_course import MISTAKES, MODULE, NOTEBOOK, TEST, Project, code_cell, notebook, stdout


def told(project: Project) -> list[str]:
    return sorted(str(problem) for problem in audit.problems(catalog.read(project.root / "course")))


def test_a_whole_course_has_no_problem(project: Project) -> None:
    assert told(project) == []


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("labs/01_tiny.ipynb", "is missing. Write it, then run `python -m course.authoring execute 01`."),
        ("starters/01/agent.py", "is missing. Never edit it by hand; run `python -m course.authoring build`."),
        ("solutions/01/agent.py", "is missing. Never edit it by hand; run `python -m course.authoring build`."),
        ("tests/checkpoints/test_01_tiny.py", "is missing. Write the learner's contract in it."),
        ("tests/mistakes/mistakes_01.py", "is missing. List MISTAKES and ALTERNATIVES in it"),
        ("course/agent/tiny.py", "is not there. The catalog names it as a module."),
    ],
)
def test_each_file_that_the_catalog_implies_is_missed(project: Project, path: str, said: str) -> None:
    (project.root / path).unlink()
    assert any(problem.startswith(f"{path}: {said}") for problem in told(project))


@pytest.mark.parametrize(
    "path",
    [
        "labs/02_later.ipynb",
        "starters/02/agent.py",
        "starters/01/notes.py",
        "solutions/02/agent.py",
        "tests/checkpoints/test_02_later.py",
        "tests/mistakes/mistakes_02.py",
    ],
)
def test_a_file_that_the_catalog_lacks_is_told(project: Project, path: str) -> None:
    project.write(path, "")
    text = "belongs to no checkpoint in course/catalog.toml. Add it there, or delete the file."
    assert told(project) == [f"{path}: {text}"]


@pytest.mark.parametrize(
    "path",
    [
        "labs/.ipynb_checkpoints/01_tiny-checkpoint.ipynb",
        "starters/01/__pycache__/agent.cpython-311.pyc",
        "tests/checkpoints/conftest.py",
        "tests/mistakes/test_mistakes.py",
    ],
)
def test_hidden_files_bytecode_and_test_helpers_are_no_strays(project: Project, path: str) -> None:
    project.write(path, "")
    assert told(project) == []


def test_a_picture_that_a_page_shows_is_no_stray_and_one_that_none_shows_is(project: Project) -> None:
    for name in ("readme.svg", "lab.svg", "gone.svg"):
        project.write(f"labs/images/{name}", "<svg/>")
    project.write("README.md", "![One](labs/images/readme.svg)")
    shown = {"cell_type": "markdown", "id": "m", "metadata": {}, "source": "![Two](images/lab.svg)"}
    project.write("labs/01_tiny.ipynb", notebook(*json.loads(NOTEBOOK)["cells"], shown))
    assert [problem.split(":")[0] for problem in told(project)] == ["labs/images/gone.svg"]


def test_markers_in_a_module_of_no_checkpoint_are_told(project: Project) -> None:
    project.write("course/agent/given.py", "def f():\n    # BEGIN SOLUTION 1.1: add\n    return 1\n")
    assert told(project) == [
        "course/agent/given.py: has markers, but no checkpoint in course/catalog.toml names the module."
    ]


def test_a_lab_without_a_block_is_told(project: Project) -> None:
    project.module(MODULE.replace("SOLUTION 1.2", "SOLUTION 1.1"))
    project.build()
    assert any(problem.startswith("course/agent/tiny.py: lab 1.2 has no block.") for problem in told(project))


def test_an_optional_lab_needs_no_block(project: Project) -> None:
    project.write("course/catalog.toml", (project.root / "course/catalog.toml").read_text() + "optional = true\n")
    project.module(
        MODULE.replace("# BEGIN SOLUTION 1.2: yield each number", "").replace("+= 1\n    # END SOLUTION", "+= 1")
    )
    project.build()
    assert not [problem for problem in told(project) if "has no block. Mark" in problem]


def test_a_lab_with_another_count_of_tests_than_the_catalog_says_is_told(project: Project) -> None:
    project.write("tests/checkpoints/test_01_tiny.py", TEST.replace('lab("1.1")', 'lab("1.2")', 1))
    path = "tests/checkpoints/test_01_tiny.py"
    assert told(project) == [
        f"{path}: lab 1.1 has 1 tests here and `tests = 2` in the catalog. Make them agree.",
        f"{path}: lab 1.2 has 3 tests here and `tests = 2` in the catalog. Make them agree.",
    ]


@pytest.mark.parametrize("mark", ["", '@pytest.mark.lab("9.9")\n'])
def test_a_test_of_no_lab_is_told_with_its_line(project: Project, mark: str) -> None:
    text = TEST.lstrip("\n") + f"\n\n{mark}def test_nothing():\n    pass\n"
    project.write("tests/checkpoints/test_01_tiny.py", text)
    line = text[: text.index("def test_nothing")].count("\n") + 1
    said = 'test_nothing belongs to no lab. Mark it with one: @pytest.mark.lab("1.1").'
    assert told(project) == [f"tests/checkpoints/test_01_tiny.py:{line}: {said}"]


def test_a_class_gives_its_tests_its_lab(project: Project) -> None:
    test = (
        '@pytest.mark.lab("1.1")\nclass TestDouble:\n    def test_one(self): ...\n    async def test_two(self): ...\n'
        '    @pytest.mark.lab("1.2")\n    def test_three(self): ...\n\n'
        '@pytest.mark.lab("1.2")\ndef test_four(): ...\n'
    )
    project.write("tests/checkpoints/test_01_tiny.py", test)
    assert told(project) == []


def test_one_test_is_too_few_for_a_lab(project: Project) -> None:
    text = (project.root / "course/catalog.toml").read_text()
    project.write("course/catalog.toml", text.replace("tests = 2", "tests = 1", 1))
    project.write("tests/checkpoints/test_01_tiny.py", TEST.replace('@pytest.mark.lab("1.1")\ndef test_', "def _", 1))
    assert told(project) == ["tests/checkpoints/test_01_tiny.py: lab 1.1 has fewer than 2 tests. Add one."]


def test_a_tagged_cell_without_an_output_marks_nothing_and_is_told(project: Project) -> None:
    cells = [
        code_cell("a", "print()", stdout("  \n"), tags=("lab-1.1",)),
        code_cell("b", "x = 1", tags=("lab-1.2",)),
    ]
    project.write("labs/01_tiny.ipynb", notebook(*cells))
    execute = "python -m course.authoring execute 01"
    said = f"stores no output, so it marks nothing. Let it show something, then run `{execute}`."
    assert told(project) == [
        f"labs/01_tiny.ipynb: cell 1 is tagged lab-1.1 and {said}",
        f"labs/01_tiny.ipynb: cell 2 is tagged lab-1.2 and {said}",
    ]


def test_a_lab_without_a_cell_and_a_cell_without_a_lab_are_told(project: Project) -> None:
    project.write("labs/01_tiny.ipynb", notebook(code_cell("a", "1", stdout("1"), tags=("lab-1.1", "lab-1.9"))))
    assert told(project) == [
        "labs/01_tiny.ipynb: cell 1 is tagged lab-1.9, which is no lab of the catalog.",
        "labs/01_tiny.ipynb: no cell counts for lab 1.2. Tag the cell that shows it: lab-1.2.",
    ]


@pytest.mark.parametrize("text", ["", "[]", "<<<<<<< HEAD", json.dumps({"nbformat": 3, "worksheets": []})])
def test_a_file_that_is_no_notebook_is_told(project: Project, text: str) -> None:
    project.write("labs/01_tiny.ipynb", text)
    assert [problem.split(":")[1] for problem in told(project)] == [" is no notebook in nbformat 4"]


def test_mistakes_that_do_not_fit_are_told(project: Project) -> None:
    project.write("tests/mistakes/mistakes_01.py", MISTAKES.replace('"number + number", "number + 1"', '"gone", "x"'))
    assert told(project) == [
        "tests/mistakes/mistakes_01.py:8: adds one: its old text occurs 0 times in the solution, not once: 'gone'."
    ]


def test_an_alternative_in_a_file_of_its_own_is_no_stray(project: Project) -> None:
    project.write("tests/mistakes/mistakes_01.py", MISTAKES + 'ALTERNATIVES.append(Alternative("b", file="b.py"))\n')
    project.write("tests/mistakes/b.py", "double = count = None\n")
    assert told(project) == []
