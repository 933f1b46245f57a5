"""Text processing in a thread when it is long enough to block the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SMALL = 2_000
"""Up to this many characters the write policy is faster than a thread switch."""


async def aside(characters: int, work: Callable[[], T]) -> T:
    """Return the result of ``work``; ``characters`` is the size of the text it processes."""
    return work() if characters <= _SMALL else await asyncio.to_thread(work)
