"""Model calls of a run, on both stores and a real endpoint: counted before they are asked, kept before their use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import pytest
from phylactery_agent.models.asking import Models
from phylactery_agent.models.config import RunLimits
from phylactery_agent.ports import (
    ModelTool,
)
from phylactery_agent.runtime.model import Claim
from phylactery_agent.runtime.model_runs import RunModel, RunModels

from tests.support.agent_models import HELLO, opened
from tests.support.agent_stores import Stores
from tests.support.model_server import ModelServer, calls, model_server

TOOL = ModelTool("write_file", "Writes a file.", {"type": "object", "properties": {"path": {"type": "string"}}})


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as running:
        yield running


@pytest.fixture
async def models(server: ModelServer) -> AsyncIterator[Models]:
    async with opened(server.url, model_input_price=2.0, model_output_price=10.0) as some:
        yield some


@pytest.fixture
async def claim(stores: Stores) -> Claim:
    await stores.accepted()
    return await stores.claimed()


@pytest.fixture
def model(stores: Stores, models: Models, claim: Claim) -> RunModel:
    return RunModels(models, stores.database, stores.clock).of(claim.lease)


def limited(model: RunModel, **limits: int) -> None:
    """Sets what the run may use."""
    all_of_it = {"calls": 8, "tokens": 200_000, "cost_micros": 0, **limits}
    model._models.config = replace(model._models.config, limits=RunLimits(**all_of_it))


def used(stores: Stores) -> tuple[int, int, int]:
    [row] = stores.rows("agent_runs", "model_calls, tokens, cost_micros")
    return tuple(row)


async def test_a_reply_is_counted_by_what_it_took_and_kept(
    stores: Stores, server: ModelServer, model: RunModel
) -> None:
    server.script(calls(("write_file", {"path": "a.txt"}), text="At once.", usage=(11, 7)))
    reply = await model.reply(HELLO, key="plan:1", tools=[TOOL])
    assert (reply.text, reply.finish_reason, reply.model) == ("At once.", "tool_calls", "test-model")
    [call] = reply.calls
    assert (call.name, call.arguments, call.raw) == ("write_file", {"path": "a.txt"}, '{"path": "a.txt"}')
    assert (reply.prompt_tokens, reply.completion_tokens, reply.cost_micros) == (11, 7, 11 * 2 + 7 * 10)
    assert used(stores) == (1, 18, 92)
    assert server.asked[0].tools == ["write_file"]


async def test_the_same_call_again_is_answered_from_the_database_and_costs_nothing(
    stores: Stores, server: ModelServer, models: Models, model: RunModel, claim: Claim
) -> None:
    server.script(calls(("write_file", {"path": "ñ.txt"}), text="día"))
    first = await model.reply(HELLO, key="plan:1", tools=[TOOL])
    stores.pass_time(31)
    later = await stores.claimed(holder="another process")
    heard: list[str] = []

    async def on_text(text: str) -> None:
        heard.append(text)

    other = RunModels(models, stores.database, stores.clock).of(later.lease)
    assert await other.reply(HELLO, key="plan:1", tools=[TOOL], on_text=on_text) == first
    assert heard == ["día"]
    assert len(server.asked) == 1
    assert used(stores) == (1, 18, 92)
