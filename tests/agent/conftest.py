"""Fixtures of the agent's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from phylactery_agent.llm_client.router import Models
from phylactery_agent.runtime.storage.records import Claim
from phylactery_agent.runtime.turn import unit_of_work

from tests.support.agent.bench import Bench
from tests.support.agent.models import opened
from tests.support.agent.scripted_model import ScriptedModel
from tests.support.agent.stores import Stores, open_stores
from tests.support.agent.system import Person, System, open_system
from tests.support.servers.model_server import ModelServer, model_server
from tests.support.servers.postgres import brief_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """The agent's stores over a fresh SQLite file, and over PostgreSQL where it is installed."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'agent.db'}"
    else:
        url = brief_database(request.getfixturevalue("postgres_url"), "phylactery_agent")
    with open_stores(url) as opened:
        yield opened


@pytest.fixture
async def system(tmp_path: Path) -> AsyncIterator[System]:
    """The three real services, which ask about every write: what approvals do is what most tests are about."""
    async with open_system(tmp_path, asks=True) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    """A person of tenant acme."""
    return system.person("ana")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what is held wait for a write that must last, however slow the machine is."""
    monkeypatch.setattr(unit_of_work, "HOLD_SECONDS", 3_600.0)


@pytest.fixture
def bench(stores: Stores) -> Bench:
    """What serves turns of a stand-in for the graph, over the stores."""
    return Bench(stores)


@pytest.fixture
def model() -> ScriptedModel:
    """A model that answers what the test says."""
    return ScriptedModel()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    """A model's endpoint on loopback."""
    with model_server() as running:
        yield running


@pytest.fixture
async def models(server: ModelServer) -> AsyncIterator[Models]:
    """Model at that endpoint, with prices."""
    async with opened(server.url, model_input_price=2.0, model_output_price=10.0) as some:
        yield some


@pytest.fixture
async def claim(stores: Stores) -> Claim:
    """A running turn."""
    await stores.accepted()
    return await stores.claimed()
