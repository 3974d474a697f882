"""The `course` command over the toy checkpoint alone: `python toy_course.py HOME ARGUMENT…`."""

from __future__ import annotations

import sys
from pathlib import Path

import toy

from course import catalog


def main() -> None:
    home = Path(sys.argv.pop(1))
    checkpoint = toy.at(home) if home.exists() else toy.lay(home)
    catalog.checkpoints = lambda: {checkpoint.id: checkpoint}
    from course import cli  # only now: it takes the catalog's function as it is

    cli.main()


if __name__ == "__main__":
    main()
