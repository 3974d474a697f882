"""Fixtures of the authoring tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import small_course


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> small_course.Project:
    """The small course in a temporary folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return small_course.lay(tmp_path)
