"""The saver passes LangGraph's public suite for checkpoint savers, on both stores."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langgraph.checkpoint.conformance import checkpointer_test, validate
from phylactery_agent.checkpoints.saver import Checkpoints

from tests.support.agent.stores import Stores

EVERY_CAPABILITY = {
    "put",
    "put_writes",
    "get_tuple",
    "list",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
}


async def test_every_capability_passes(stores: Stores) -> None:
    @checkpointer_test(name="phylactery")
    async def saver() -> AsyncIterator[Any]:
        yield Checkpoints(stores.database)

    report = await validate(saver)

    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert failures == {}
    assert {name for name, result in report.results.items() if result.passed} == EVERY_CAPABILITY
