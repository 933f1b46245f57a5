"""Work on texts, beside the event loop where they are long enough to hold up everybody else's calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_SMALL = 2_000
"""Characters the write policy takes apart in less time than another thread would take."""


async def aside(characters: int, work: Callable[[], T]) -> T:
    """Return what work does; characters is how much text it takes apart."""
    return work() if characters <= _SMALL else await asyncio.to_thread(work)
