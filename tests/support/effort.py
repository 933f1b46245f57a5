"""How much work something is, whatever the machine and its load: CPU time as a multiple of some other work's."""

from __future__ import annotations

import time
from collections.abc import Callable

_ADDITIONS = 100_000
"""About 5 ms of CPU on a machine of today."""


def effort(work: Callable[[], object], times: int = 20) -> float:
    """Return the least CPU time of several tries, as a multiple of what 100,000 additions take beside it."""
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
