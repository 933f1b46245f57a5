"""In-process wake-ups: waiters on a thread are notified and then re-read the database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class ThreadNotifier:
    """Notifications that something of a thread was committed or a turn ended; the key is the thread's or the turn's.

    They carry no data, so a missed one loses nothing that the next does not bring.
    """

    def __init__(self, forward: Callable[[str], None] = lambda _key: None) -> None:
        """Take what forwards a key to the other processes that serve the same database, if there are any."""
        self._listeners: dict[str, set[asyncio.Event]] = {}
        self._forward = forward

    def tell(self, key: str) -> None:
        """Wake all listeners of the thread or turn, in every process."""
        self.tell_here(key)
        self._forward(key)

    def tell_here(self, key: str) -> None:
        """Wake the listeners in this process."""
        for listener in self._listeners.get(key, ()):
            listener.set()

    def tell_all_here(self) -> None:
        """Wake all listeners in this process: notifications from other processes may have been missed."""
        for key in self._listeners:
            self.tell_here(key)

    @contextmanager
    def listen(self, key: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set on each notification; clear it before reading what it announces."""
        event = asyncio.Event()
        listeners = self._listeners.setdefault(key, set())
        listeners.add(event)
        try:
            yield event
        finally:
            listeners.discard(event)
            if not listeners:
                self._listeners.pop(key, None)
