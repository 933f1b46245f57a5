"""The real services and the gateway as processes, a phone, and strangers who attack the ports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from phylactery_cli.supervisor import Stack, running

from tests.support.gateway.besieged import Besieged, besieged
from tests.support.processes.stack import FREE_PORTS, ForkedStack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path_factory.mktemp("besieged") / "data", FREE_PORTS)) as started:
        yield started


@pytest.fixture
async def place(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Besieged]:
    async with besieged(stack, tmp_path_factory.mktemp("gateway")) as opened:
        yield opened
