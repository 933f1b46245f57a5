"""Wake-ups inside the process: who waits for news of a thread hears of it, and then reads the database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class ThreadNews:
    """Tells listeners that something of a thread was committed, or that a turn ended: the key is either's.

    It carries no data, so missing one loses nothing.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}

    def tell(self, key: str) -> None:
        """Wakes everybody who listens to the thread or turn."""
        for listener in self._listeners.get(key, ()):
            listener.set()

    @contextmanager
    def listen(self, key: str) -> Iterator[asyncio.Event]:
        """Listens for the block; clear the event before reading what it announces."""
        event = asyncio.Event()
        listeners = self._listeners.setdefault(key, set())
        listeners.add(event)
        try:
            yield event
        finally:
            listeners.discard(event)
            if not listeners:
                self._listeners.pop(key, None)
