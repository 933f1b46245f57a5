"""What a turn begins beside its own way, and may come not to need."""

from __future__ import annotations

import asyncio
from typing import Any


def drop(aside: asyncio.Task[Any]) -> None:
    """Ends a task nobody waits for any more; what was wrong with it is nobody's fault then."""
    if not aside.cancel() and not aside.cancelled():
        aside.exception()
