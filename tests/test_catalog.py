"""The one list of checkpoints and labs, and the paths derived from it."""

from __future__ import annotations

import itertools
import tomllib
from pathlib import Path

import msgspec
import pytest

from course import catalog
from course.errors import CourseError

REPOSITORY = Path(__file__).resolve().parents[1]

CATALOG = """
[[checkpoint]]
id = "03"
slug = "streams"
title = "Streams"
module = "streams"
minutes = 60

[[checkpoint.lab]]
id = "3.1"
title = "Cursor readers"
tests = 2
hints = ["first", "second"]

[[checkpoint.lab]]
id = "3.2"
title = "One result"
tests = 2
optional = true

[[checkpoint]]
id = "04"
slug = "request"
title = "One request"
module = "request"
minutes = 60
lab = []
"""


def write(package: Path, text: str = CATALOG) -> Path:
    package.mkdir(parents=True, exist_ok=True)
    (package / "catalog.toml").write_text(text, encoding="utf-8")
    return package


def test_every_path_is_derived_from_id_and_slug(tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    checkpoint = catalog.read(write(tmp_path / "course"))["03"]
    assert checkpoint.notebook == tmp_path / "labs/03_streams.ipynb"
    assert checkpoint.starter == tmp_path / "starters/03/agent.py"
    assert checkpoint.solution == tmp_path / "solutions/03/agent.py"
    assert checkpoint.test == tmp_path / "tests/checkpoints/test_03_streams.py"
    assert checkpoint.mistakes == tmp_path / "tests/mistakes/mistakes_03.py"
    assert checkpoint.source == tmp_path / "course/agent/streams.py"
    assert checkpoint.import_name == "course.agent.streams"


def test_without_a_checkout_beside_it_the_data_lies_in_the_package(tmp_path: Path) -> None:
    checkpoint = catalog.read(write(tmp_path / "course"))["03"]
    assert checkpoint.notebook == tmp_path / "course/data/labs/03_streams.ipynb"
    assert checkpoint.source == tmp_path / "course/agent/streams.py"


def test_checkpoints_and_labs_keep_the_order_of_the_file(tmp_path: Path) -> None:
    checkpoints = catalog.read(write(tmp_path / "course"))
    assert list(checkpoints) == ["03", "04"]
    assert [(lab.id, lab.optional) for lab in checkpoints["03"].labs] == [("3.1", False), ("3.2", True)]


@pytest.mark.parametrize("line", ['id = "03"', 'title = "Streams"', "minutes = 60", "tests = 2"])
def test_a_forgotten_field_is_an_error(tmp_path: Path, line: str) -> None:
    with pytest.raises(msgspec.ValidationError, match="missing required field"):
        catalog.read(write(tmp_path / "course", CATALOG.replace(line, "", 1)))


def test_a_misspelt_field_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `hint`"):
        catalog.read(write(tmp_path / "course", CATALOG.replace("hints", "hint")))


def test_9_finds_checkpoint_09() -> None:
    assert catalog.find_checkpoint("9") is catalog.find_checkpoint("09")


@pytest.mark.parametrize("id", ["99", "nine", "", "9.1"])
def test_an_unknown_checkpoint_is_answered_with_those_there_are(id: str) -> None:
    with pytest.raises(CourseError, match=r"There is no checkpoint .* There is .*09.*course practice") as caught:
        catalog.find_checkpoint(id)
    assert caught.value.exit_code == 2


def test_an_unknown_lab_is_answered_with_those_there_are() -> None:
    with pytest.raises(CourseError, match=r"Checkpoint 09 has no lab '9\.77'\. Its labs are 9\.1, 9\.2"):
        catalog.find_checkpoint("09").find_lab("9.77")


def test_later_modules_are_those_of_checkpoints_with_a_higher_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = catalog.read(write(tmp_path / "course"))
    monkeypatch.setattr(catalog, "checkpoints", lambda: checkpoints)
    assert catalog.later_modules(checkpoints["03"]) == {"request"}
    assert catalog.later_modules(checkpoints["04"]) == set()


# The catalog itself.


def test_ids_are_unique_ascending_and_each_lab_belongs_to_its_checkpoint() -> None:
    ids = list(catalog.checkpoints())
    assert ids == sorted(set(ids))
    for checkpoint in catalog.checkpoints().values():
        labs = [lab.id for lab in checkpoint.labs]
        assert labs == [f"{int(checkpoint.id)}.{number}" for number in range(1, len(labs) + 1)]


def test_optional_labs_come_last() -> None:
    for checkpoint in catalog.checkpoints().values():
        optional = [lab.optional for lab in checkpoint.labs]
        assert optional == sorted(optional)


def test_no_lab_has_more_than_three_hints_or_fewer_than_two_tests() -> None:
    labs = itertools.chain.from_iterable(checkpoint.labs for checkpoint in catalog.checkpoints().values())
    assert [lab.id for lab in labs if len(lab.hints) > 3 or lab.tests < 2] == []


def test_the_order_of_the_checkpoints_is_the_order_of_the_layers() -> None:
    linter = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = (each["layers"] for each in linter["contracts"] if each["containers"] == ["course.agent"])
    modules = [checkpoint.module for checkpoint in catalog.checkpoints().values()]
    assert [layer for layer in reversed(layers) if layer in modules] == modules
