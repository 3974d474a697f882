"""What holds for every test of the agent."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("agent", deadline=None)  # a busy machine is no fault of the agent's
settings.load_profile("agent")


@pytest.fixture(scope="session", autouse=True)
def what_is_loaded_already_is_not_looked_at() -> Iterator[None]:
    """Makes the collection after each test a tenth as long."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """What a test forgot to await or to close complains while it is collected, and warnings are errors."""
    yield
    gc.collect()
