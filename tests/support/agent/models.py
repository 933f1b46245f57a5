"""Models for tests: the real client with a loopback endpoint, and recorded waits."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any

from phylactery_agent.llm_client.config import ModelConfig, RunLimits, model_config
from phylactery_agent.llm_client.router import Models
from phylactery_agent.ports import ModelMessage
from phylactery_agent.runtime.turn.model_session import RunModel
from phylactery_agent.settings import AgentSettings

from tests.support.agent.stores import Stores

HELLO = (ModelMessage("user", "hola"),)


def config_of(url: str, **options: Any) -> ModelConfig:
    config = model_config(AgentSettings(**{"model_base_url": url, "model": "test-model", **options}))
    assert config is not None
    return config


class Waits:
    """A replacement for asyncio.sleep that records waits and returns at once."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@asynccontextmanager
async def opened(
    url: str, *, waits: Waits | None = None, monotonic: Callable[[], float] = time.monotonic, **options: Any
) -> AsyncIterator[Models]:
    models = Models(config_of(url, **options), random=Random(7), sleep=waits or Waits(), monotonic=monotonic)
    try:
        yield models
    finally:
        await models.close()


def limited(model: RunModel, **limits: int) -> None:
    """Set a run's limits."""
    all_of_it = {"calls": 8, "tokens": 200_000, "cost_micros": 0, **limits}
    model._models.config = replace(model._models.config, limits=RunLimits(**all_of_it))


def used(stores: Stores) -> tuple[int, int, int]:
    """Return the calls, tokens and cost recorded for the only run."""
    [row] = stores.rows("agent_runs", "model_calls, tokens, cost_micros")
    return tuple(row)
