"""Fixtures of the agent's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent_stores import Stores, open_stores


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """The agent's stores over a fresh SQLite file."""
    with open_stores(tmp_path) as opened:
        yield opened
