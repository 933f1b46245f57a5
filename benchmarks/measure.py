"""Measurement helpers: latencies of awaited calls at a concurrency, and lines of JSON."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

Call = Callable[[int], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Sample:
    """Latencies in seconds, and their total duration."""

    latencies: list[float]
    seconds: float

    @property
    def per_second(self) -> float:
        """Return completed calls per second."""
        return len(self.latencies) / self.seconds

    def percentile_ms(self, percent: int) -> float:
        """Return a percentile in milliseconds."""
        return statistics.quantiles(self.latencies, n=100, method="inclusive")[percent - 1] * 1_000


async def sample(call: Call, *, calls: int, concurrency: int = 1, warmup: int = 20) -> Sample:
    """Run call(i) for i in 0..calls, at most concurrency at once, after a warm-up with negative i."""
    for i in range(warmup):
        await call(-1 - i)
    numbers = iter(range(calls))
    latencies: list[float] = []

    async def worker() -> None:
        for number in numbers:
            began = time.perf_counter()
            await call(number)
            latencies.append(time.perf_counter() - began)

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return Sample(latencies, time.perf_counter() - began)


def emit(name: str, value: float, unit: str, **beside: object) -> None:
    """Print one measurement; ``beside`` holds the lower bound or baseline of the same run."""
    rounded = {key: round(item, 4) if isinstance(item, float) else item for key, item in beside.items()}
    print(json.dumps({"name": name, "value": round(value, 4), "unit": unit, **rounded}), flush=True)
