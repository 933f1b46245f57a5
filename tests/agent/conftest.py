"""Fixtures of the agent's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.agent_stores import Stores, open_stores
from tests.support.agent_system import Person, System, open_system


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    """The agent's stores over a fresh SQLite file."""
    with open_stores(tmp_path) as opened:
        yield opened


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """The three real services."""
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    """A person of tenant acme."""
    return system.person("ana")
