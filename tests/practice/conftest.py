"""A toy checkpoint, and its practice folder."""

from __future__ import annotations

from pathlib import Path

import desk
import pytest

from course import workspace
from course.catalog import Checkpoint


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """The toy, which is the only checkpoint there is."""
    checkpoint = desk.lay(tmp_path / "home")
    monkeypatch.setattr(workspace, "checkpoints", lambda: {checkpoint.id: checkpoint})
    return checkpoint


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """The checkpoint's practice folder, as it is laid."""
    folder = tmp_path / "practice" / "42"
    workspace.workspace(checkpoint, checkpoint.starter.read_bytes(), folder)
    return folder
