"""Wake-ups: who waits for news of a thread hears of it, and then reads the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ThreadNews:
    """Tells listeners that something of a thread was committed, or that a turn ended: the key is either's.

    It carries no data, so missing one loses nothing that the next does not bring.
    """

    def __init__(self) -> None:
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self.relay: Callable[[str], None] = lambda _key: None
        """Tells the other processes that serve the same database, where there are any."""

    def tell(self, key: str) -> None:
        """Wake everybody who listens to the thread or turn, in whichever process."""
        self.tell_here(key)
        self.relay(key)

    def tell_here(self, key: str) -> None:
        """Wake those who listen in this process."""
        for listener in self._listeners.get(key, ()):
            listener.set()

    def tell_all_here(self) -> None:
        """Wake everybody who listens in this process: what was told elsewhere may have been missed."""
        for key in self._listeners:
            self.tell_here(key)

    @contextmanager
    def listen(self, key: str) -> Iterator[asyncio.Event]:
        """Listen for the block; clear the event before reading what it announces."""
        event = asyncio.Event()
        listeners = self._listeners.setdefault(key, set())
        listeners.add(event)
        try:
            yield event
        finally:
            listeners.discard(event)
            if not listeners:
                self._listeners.pop(key, None)
