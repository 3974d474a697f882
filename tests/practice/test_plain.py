"""Text of others cannot steer the terminal."""

from __future__ import annotations

import pytest

from course.practice.plain import visible


@pytest.mark.parametrize("code", [*range(32), *range(0x7F, 0xA0)])
def test_no_control_character_is_left_but_tab_and_newline(code: int) -> None:
    assert (visible(chr(code)) == chr(code)) == (chr(code) in "\t\n")


def test_any_other_text_stays() -> None:
    assert visible("ünï ✔ [bold] 日本\n\tx") == "ünï ✔ [bold] 日本\n\tx"
