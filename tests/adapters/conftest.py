"""Agents of real frameworks over a real RiskGate."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.support.adapters.agent_framework_host import AgentFrameworkHost
from tests.support.adapters.google_adk_host import GoogleADKHost
from tests.support.adapters.hosts import Host, Tools
from tests.support.adapters.langchain_host import LangChainHost, SynchronousLangChainHost
from tests.support.adapters.openai_agents_host import OpenAIAgentsHost
from tests.support.adapters.pydantic_ai_host import PydanticAIHost
from tests.support.riskgate.serving import ServedRiskGate

HOSTS: dict[str, type[Host]] = {
    "langchain": LangChainHost,
    "langchain-sync": SynchronousLangChainHost,
    "pydantic-ai": PydanticAIHost,
    "openai-agents": OpenAIAgentsHost,
    "agent-framework": AgentFrameworkHost,
    "google-adk": GoogleADKHost,
}
_numbers = itertools.count(1)


@pytest.fixture(params=HOSTS)
def kind(request: pytest.FixtureRequest) -> type[Host]:
    return HOSTS[request.param]


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
