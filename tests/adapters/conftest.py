"""Agents of real frameworks over a real RiskGate."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.adapters.hosts import Host, Tools
from tests.support.riskgate.serving import ServedRiskGate

# By name: a framework takes seconds to import, which a run of other tests does not pay
HOSTS = {
    "langchain": "langchain_host.LangChainHost",
    "langchain-sync": "langchain_host.SynchronousLangChainHost",
    "pydantic-ai": "pydantic_ai_host.PydanticAIHost",
    "openai-agents": "openai_agents_host.OpenAIAgentsHost",
    "agent-framework": "agent_framework_host.AgentFrameworkHost",
    "google-adk": "google_adk_host.GoogleADKHost",
}
OWN_ENVIRONMENT = {"google-adk"}
"""Hosts whose framework is installed for their tests alone."""
_numbers = itertools.count(1)


@pytest.fixture(
    params=[pytest.param(name, marks=pytest.mark.nightly if name in OWN_ENVIRONMENT else ()) for name in HOSTS]
)
def kind(request: pytest.FixtureRequest) -> type[Host]:
    module, _, name = HOSTS[request.param].rpartition(".")
    host: type[Host] = getattr(importlib.import_module(f"tests.support.adapters.{module}"), name)
    return host


@pytest.fixture(scope="module")
def shared_riskgate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRiskGate]:
    """A RiskGate that no test changes or stops."""
    with ServedRiskGate(tmp_path_factory.mktemp("gate")) as served:
        yield served


@pytest.fixture
def own_riskgate(tmp_path: Path) -> Iterator[ServedRiskGate]:
    """A RiskGate that a test may change and stop."""
    with ServedRiskGate(tmp_path / "gate") as served:
        yield served


@pytest.fixture
async def host_of(kind: type[Host]) -> AsyncIterator[Callable[[ServedRiskGate], Host]]:
    """Make the agent of a user in a thread of its own."""
    made: list[Host] = []

    def make(served: ServedRiskGate) -> Host:
        number = next(_numbers)
        made.append(kind(served.target, f"user-{number}", f"thread-{number}", Tools()))
        return made[-1]

    yield make
    for host in made:
        await host.close()
