"""An exception as a learner should read it: what it said, the stub behind it, and the lines of their own file."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from course.marking.steps import Fault, Frame

TEXT_LIMIT = 20_000
"""Characters of an exception's text that leave the process."""


def describe(error: BaseException, learner: str) -> Fault:
    """Describe `error`, where `learner` is the path of the learner's file.

    A group is described as the first error in it. Never raises, whatever the learner's class makes of `__str__`,
    `__cause__` or `__traceback__`.
    """
    try:
        return _describe(error, learner)
    except BaseException as broken:
        return Fault(type(error).__name__, f"(it cannot be looked at: {type(broken).__name__})")


def _describe(error: BaseException, learner: str) -> Fault:
    family = list(_family(error))
    main = _unwrap(error)
    frames = _frames(main)
    mine = next((own for own in (_mine(_frames(one), learner) for one in [main, *family]) if own), ())
    stub = next((one for one in family if isinstance(one, NotImplementedError) and _text(one).startswith("Lab ")), None)
    if stub is not None:
        mine = _mine(_frames(stub), learner) or mine
    return Fault(
        kind=type(main).__name__,
        text=_text(main)[:TEXT_LIMIT],
        stub=None if stub is None else _text(stub)[:TEXT_LIMIT],
        frames=frames,
        mine=mine,
    )


def _family(error: BaseException) -> Iterator[BaseException]:
    """`error` and every error it holds, was raised from, or was raised while handling; each once."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if isinstance(one, BaseExceptionGroup):
            waiting.extend(one.exceptions)
        behind = one.__cause__ or (None if one.__suppress_context__ else one.__context__)
        if behind is not None:
            waiting.append(behind)


def _unwrap(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as broken:
        return f"(its text cannot be shown: {type(broken).__name__})"


def _frames(error: BaseException) -> tuple[Frame, ...]:
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return (Frame(error.filename, error.lineno, "<syntax>"),)
    stack = traceback.walk_tb(error.__traceback__)
    return tuple(Frame(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in stack)


def _mine(frames: tuple[Frame, ...], learner: str) -> tuple[Frame, ...]:
    return tuple(frame for frame in frames if frame.path == learner)
