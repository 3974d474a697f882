"""A file is replaced whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from course.practice.safe_file import replace_file


def test_it_holds_the_new_content_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_one_that_fails_leaves_the_old_content_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_permissions_stay(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "real").write_bytes(b"old")
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere" / "real")
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").is_symlink()
    assert (tmp_path / "elsewhere" / "real").read_bytes() == b"new"
