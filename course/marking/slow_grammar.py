"""The one import that makes nbformat slow, kept out while nbformat is imported."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_slow_grammar() -> Iterator[None]:
    """Import nbformat inside this block, the first time: it takes 0.1 s instead of more than a second.

    jsonschema would otherwise import `rfc3987_syntax`, which compiles a grammar of URIs, for a check that no
    notebook needs. Without that module jsonschema leaves the check out.
    """
    was_there = "rfc3987_syntax" in sys.modules
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    try:
        yield
    finally:
        if not was_there:
            sys.modules.pop("rfc3987_syntax", None)
