"""What every test may use."""

from __future__ import annotations

import pytest

collect_ignore = ["checkpoints"]  # they mark a learner's file: tests/mistakes has them marked on ours


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The backends that everything asynchronous must work on."""
    return request.param
