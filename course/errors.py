"""What the course's own tools raise. Each carries the exit code its command ends with."""

from __future__ import annotations


class CourseError(Exception):
    """A request the course cannot carry out. Its text names the mistake, the correction and the next command.

    `exit_code` is the documented exit code of the command that meets it: 2 for wrong usage.
    """

    exit_code = 2


class CannotMarkError(CourseError):
    """Marking could not be done, by our fault or the machine's. Exit code 3: never green, never the learner's red."""

    exit_code = 3
