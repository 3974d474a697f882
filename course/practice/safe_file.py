"""A file that is replaced in one step."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Make `path` hold `content`. Whatever happens meanwhile, it holds all of the old content or all of the new.

    A link stays a link, and the file's permissions stay. Raises OSError when the folder cannot be written.
    """
    target = path.resolve()
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise
