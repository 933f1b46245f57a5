"""A pause that something may end early."""

from __future__ import annotations

import asyncio
import contextlib


async def pause(until: asyncio.Event, seconds: float | None) -> None:
    """Waits until the event is set, at most so many seconds; None has no end.

    It never loses a cancellation, as wait_for of Python 3.11 does where the event is set at that very moment: a task
    that pauses again and again would then never end.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()
