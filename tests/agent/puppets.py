"""A model and a tool that do what they are told, when they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
from stage import badly_ended, unpaired

from course.agent import Chunk, ModelRequest, Signal


class Puppets:
    """A model and a tool that wait until they are told what to do."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.complaints: list[str] = []
        self._answer: list[Chunk] | None = None
        self._answered = anyio.Event()
        self._finished: dict[str, anyio.Event] = {}

    async def stream(self, request: ModelRequest, *, signal: Signal) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        self.complaints += filter(None, [unpaired(request.messages), badly_ended(request.messages)])
        self._answered = anyio.Event()
        await self._answered.wait()
        if self._answer is None:
            raise ConnectionError("no line")
        for chunk in self._answer:
            yield chunk

    def answer(self, chunks: list[Chunk] | None) -> None:
        """Have the open request answered with these chunks, or fail with None."""
        self._answer = chunks
        self._answered.set()

    async def work(self, id: str) -> str:
        """Work until told to finish."""
        self._finished[id] = anyio.Event()
        await self._finished[id].wait()
        return "done"

    def finish(self, *ids: str) -> None:
        """Have these tools finish, or all of them."""
        for id in ids or self._finished:
            self._finished[id].set()
