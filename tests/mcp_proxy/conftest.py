"""A RiskGate that knows the tools of the guarded servers, and places to put proxies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from phylactery_mcp_proxy.state.pins import Definitions

from tests.support.proxies import Place, write_bundle
from tests.support.riskgate.serving import ServedRiskGate


@pytest.fixture(scope="session")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRiskGate]:
    """A RiskGate for all tests that leave it alone; each has a thread of its own."""
    folder = tmp_path_factory.mktemp("gate")
    with ServedRiskGate(folder, bundle=str(write_bundle(folder / "bundle"))) as served:
        yield served


@pytest.fixture
def own_gate(tmp_path: Path) -> Iterator[ServedRiskGate]:
    """A RiskGate that the test stops and starts."""
    with ServedRiskGate(tmp_path / "gate", bundle=str(write_bundle(tmp_path / "bundle"))) as served:
        yield served


@pytest.fixture(scope="session")
def listed() -> dict[str, Definitions]:
    """What the guarded servers list."""
    return {}


@pytest.fixture
def make_place(request: pytest.FixtureRequest, tmp_path: Path, listed: dict[str, Definitions]) -> Callable[..., Place]:
    """Return a place before the shared RiskGate, or before the one that is given."""

    def make(kind: str = "test", *faults: str, **options: Any) -> Place:
        gate = options.pop("gate", None) or request.getfixturevalue("gate")
        return Place(tmp_path / "place", gate, kind, faults, listed=listed, **options)

    return make
