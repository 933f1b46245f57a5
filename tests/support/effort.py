"""Machine-independent cost of work: CPU time relative to a reference computation."""

from __future__ import annotations

import time
from collections.abc import Callable

_ADDITIONS = 100_000
"""About 5 ms of CPU time on a current machine."""


def effort(work: Callable[[], object], times: int = 20) -> float:
    """Return the minimum CPU time over several tries, relative to 100,000 additions measured alongside."""
    least_work = least_loop = float("inf")
    for _ in range(times):
        least_work = min(least_work, _seconds(work))
        least_loop = min(least_loop, _seconds(_loop))
    return least_work / least_loop


def _loop() -> int:
    total = 0
    for number in range(_ADDITIONS):
        total += number % 7
    return total


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
