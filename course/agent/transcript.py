"""The transcript: an immutable sequence of messages that is cheap to extend."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import overload

from course.agent.errors import MessageError, TranscriptError
from course.agent.messages import AssistantMessage, Message, ToolResultMessage, UserMessage


class _Items(list[Message]):
    """Messages that are only ever appended. `paired` is the length of the prefix known to be complete."""

    __slots__ = ("paired",)
    paired: int


class Transcript(Sequence[Message]):
    """An immutable sequence of messages: a view of an append-only list, and a length.

    Taking one and extending one cost the same at 4 messages and at 4,000. A view never shows what was appended
    after it was taken; extending an old view copies it.
    """

    __slots__ = ("_errors", "_items", "_length")

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """Raises MessageError when something in `messages` is not a message."""
        self._items = _Items()
        self._items.paired = 0
        self._errors = 0
        for message in messages:
            self._errors += _check(message)
            self._items.append(message)
        self._length = len(self._items)

    def append(self, *messages: Message) -> Transcript:
        """A transcript with these messages at its end; this one stays as it is."""
        longer = Transcript.__new__(Transcript)
        longer._errors = self._errors + sum(map(_check, messages))
        longer._items = self._items
        if self._length != len(self._items):  # somebody else extended this view first: they keep the list
            longer._items = _Items(islice(self._items, self._length))
            longer._items.paired = self._paired()
        longer._items.extend(messages)
        longer._length = len(longer._items)
        return longer

    def without_errors(self) -> Transcript:
        """What a model may see: everything but assistant messages that failed. Costs nothing where there are none."""
        if not self._errors:
            return self
        return Transcript(message for message in self if not is_error(message))

    def check_pairs(self) -> None:
        """Raise TranscriptError unless every call is followed at once by its own result, and by no other's.

        Results stand in call order. What was checked once is not checked again.
        """
        index = self._paired()
        while index < self._length:
            index = self._check_group(index)
            self._items.paired = max(index, self._items.paired)

    def _paired(self) -> int:
        """The length of a prefix known to be complete. What a longer view found may end inside a group of ours."""
        return self._items.paired if self._items.paired <= self._length else 0

    def _check_group(self, index: int) -> int:
        """Check the message at `index` and its results; the index behind them."""
        message = self[index]
        if isinstance(message, ToolResultMessage):
            raise TranscriptError(f"message {index} is the result of {message.call_id!r}, which no call asked for")
        calls = message.calls if isinstance(message, AssistantMessage) else ()
        if len({call.id for call in calls}) != len(calls):
            raise TranscriptError(f"message {index} uses one call id twice")
        for call in calls:
            index += 1
            found = self[index] if index < self._length else None
            if not isinstance(found, ToolResultMessage) or (found.call_id, found.name) != (call.id, call.name):
                raise TranscriptError(
                    f"message {index} should be the result of call {call.id!r} ({call.name}); "
                    "keep an assistant's calls and their results together, in call order"
                )
        return index + 1

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple([self._items[place] for place in range(*index.indices(self._length))])
        if not -self._length <= index < self._length:
            raise IndexError(f"message {index} of {self._length}")
        return self._items[index + self._length if index < 0 else index]

    def __iter__(self) -> Iterator[Message]:
        return islice(self._items, self._length)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Transcript | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Transcript({list(self)!r})"


def is_error(message: Message) -> bool:
    """Whether this is an assistant message that failed: kept in the record, never sent to a model."""
    return isinstance(message, AssistantMessage) and message.stop_reason == "error"


def _check(message: object) -> bool:
    """Whether the message is an error. Raises MessageError when it is no message at all."""
    if not isinstance(message, UserMessage | AssistantMessage | ToolResultMessage):
        raise MessageError(f"expected a message, got {type(message).__name__}; write UserMessage({message!r})")
    return is_error(message)
