"""A real RiskGate for the guard, guards over it, and tools that count their effects."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from phylactery_client import Guard, RiskGateClient, Waits

from tests.support.riskgate.serving import ServedRiskGate

_numbers = itertools.count(1)


class Effects:
    """Tools whose effects are counted: every call appends its arguments."""

    def __init__(self) -> None:
        self.done: list[dict[str, Any]] = []
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()

    async def tool(self, arguments: dict[str, Any]) -> str:
        self.done.append(arguments)
        return "done"

    async def slow(self, arguments: dict[str, Any]) -> str:
        """Begin, and end when the test says so."""
        self.begun.set()
        await self.go_on.wait()
        return await self.tool(arguments)


@pytest.fixture(scope="module")
def shared_riskgate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRiskGate]:
    """A RiskGate that no test changes or stops."""
    with ServedRiskGate(tmp_path_factory.mktemp("gate")) as served:
        yield served


@pytest.fixture
def own_riskgate(tmp_path: Path) -> Iterator[ServedRiskGate]:
    """A RiskGate that a test may change, stop and kill."""
    with ServedRiskGate(tmp_path / "gate") as served:
        yield served


@pytest.fixture
async def guard_of() -> AsyncIterator[Callable[..., Guard]]:
    """Make a guard of one user over a RiskGate; ``kind`` is the class of its client."""
    async with AsyncExitStack() as stack:
        clients, user = [], f"user-{next(_numbers)}"  # what one rejects is not asked again

        def make(served: ServedRiskGate, kind: type[RiskGateClient] = RiskGateClient, **options: Any) -> Guard:
            clients.append(kind(served.target, subject=user, retry_seconds=0.5))
            stack.push_async_callback(clients[-1].close)
            return Guard(clients[-1], **{"subject": user, "tenant": "local", **options})

        yield make


@pytest.fixture
def guard(guard_of: Callable[..., Guard], shared_riskgate: ServedRiskGate) -> Guard:
    """A guard over the shared RiskGate."""
    return guard_of(shared_riskgate)


@pytest.fixture
def effects() -> Effects:
    return Effects()


@pytest.fixture
def names() -> dict[str, str]:
    """A thread and a request that no other test uses."""
    number = next(_numbers)
    return {"thread_id": f"thread-{number}", "request_id": f"request-{number}"}


@pytest.fixture
def approve() -> Callable[..., Any]:
    """Approve a call that waits, as the requester does."""

    async def answer(guard: Guard, waits: Waits) -> None:
        assert isinstance(waits, Waits), waits
        await guard.gate.approve(
            waits.approval_id, args_hash=waits.args_hash, code=waits.code, thread_id=waits.thread_id
        )

    return answer
