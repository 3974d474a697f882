"""A learner's text as it can be shown: what would steer the terminal is made visible instead."""

from __future__ import annotations

_PICTURES = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_VISIBLE = {**_PICTURES, 0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}


def visible(text: str) -> str:
    """`text` with a picture (␛) for each control character but tab and newline."""
    return text.translate(_VISIBLE)
