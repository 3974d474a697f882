"""Who owns queued messages, and how much an Agent holds."""

from __future__ import annotations

import msgspec


class QueuePolicy(msgspec.Struct, frozen=True):
    """Who owns queued messages, and how many a boundary takes.

    `outlive_run`: the Agent owns them, and they wait for the next run; otherwise they end with the run.
    `one_at_a_time`: a boundary takes one message of a kind; otherwise all of them, oldest first.
    """

    outlive_run: bool
    one_at_a_time: bool


AGENT_OWNED = QueuePolicy(outlive_run=True, one_at_a_time=True)
RUN_OWNED = QueuePolicy(outlive_run=False, one_at_a_time=False)


class Limits(msgspec.Struct, frozen=True):
    """How many messages an Agent holds.

    `queued` may wait, `owned` may stand in its transcript, and `turn` is the most that one turn can add: an
    assistant message and 128 results.
    """

    queued: int = 256
    owned: int = 4096
    turn: int = 129
