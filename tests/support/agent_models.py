"""Models of a test: the real client on a loopback endpoint, with waits a test can look at."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from phylactery_agent.models.asking import Models
from phylactery_agent.models.config import ModelConfig, model_config
from phylactery_agent.ports import ModelMessage
from phylactery_agent.settings import AgentSettings

HELLO = (ModelMessage("user", "hola"),)


def config_of(url: str, **options: Any) -> ModelConfig:
    config = model_config(AgentSettings(**{"model_base_url": url, "model": "test-model", **options}))
    assert config is not None
    return config


class Waits:
    """Stands for asyncio.sleep: nothing waits, and what would have is noted."""

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
