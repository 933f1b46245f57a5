"""A gate with sinks: a notices.yaml beside it, and a server that takes notices."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.riskgate.notices import Sinks
from tests.support.servers.sink import SinkServer, sink_server


@pytest.fixture
def sinks(tmp_path: Path) -> Sinks:
    return Sinks(tmp_path)


@pytest.fixture
def server() -> Iterator[SinkServer]:
    with sink_server() as one:
        yield one


@pytest.fixture
def other() -> Iterator[SinkServer]:
    with sink_server() as one:
        yield one


@pytest.fixture
def told_gate(make_gate: Any, sinks: Sinks) -> Callable[..., Awaitable[Any]]:
    """Open a gate with these sinks."""

    async def make(*made: dict[str, Any], link: str = "", name: str = "data", **options: Any) -> Any:
        path = sinks.write(*made, **({"link": link} if link else {}))
        return await make_gate(name, notices=path, **options)

    return make
