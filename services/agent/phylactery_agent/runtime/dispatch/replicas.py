"""Coordination of several agents over one PostgreSQL database: notifications, and polling as a fallback.

Every notification only says where to look, and slow polling covers all of them, so a lost one costs only time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from phylactery_chassis.db.notify import Notices

from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier

LOOK_SECONDS: Final = 2.0
"""Maximum delay, in seconds, caused by a lost notification."""
_CHANNEL: Final = "phylactery_agent"
_NEWS, _WORK, _HOLD = "news", "work", "hold"


class Replicas:
    """The connection of one agent to the others. Over SQLite there are none, and it does nothing."""

    def __init__(self, url: str, holder: str, *, shared: bool, named_leases: NamedLeases) -> None:
        """Take the database's URL; shared means that other processes may use it."""
        self._notices = Notices(url, _CHANNEL, origin=holder) if shared else None
        self._named_leases = named_leases
        self._tasks: list[asyncio.Task[None]] = []

    def forward(self, key: str) -> None:
        """Notify the others that something of a thread or turn was committed."""
        self._send(f"{_NEWS} {key}")

    def offer_work(self) -> None:
        """Notify the others that there is work beyond this process's capacity."""
        self._send(_WORK)

    def hold(self, thread_key: str) -> None:
        """Notify the others that this process holds a thread, so that they stop serving it."""
        self._send(f"{_HOLD} {thread_key}")

    async def start(self, runner: Dispatcher, news: ThreadNotifier) -> None:
        """Start polling, and listening on behalf of this agent's dispatcher and notifier."""
        if self._notices is None:
            return

        def look() -> None:
            news.tell_all_here()
            runner.look()

        async def look_again() -> None:
            while True:
                await asyncio.sleep(LOOK_SECONDS)
                look()

        def hear(notice: str) -> None:
            kind, _, key = notice.partition(" ")
            if kind == _NEWS:
                news.tell_here(key)
            elif kind == _WORK:
                runner.look()
            elif kind == _HOLD:
                runner.preempt(key)

        self._notices.start(heard=hear, missed=look)
        self._tasks = [asyncio.create_task(self._named_leases.run()), asyncio.create_task(look_again())]

    async def stop(self) -> None:
        """Send the outstanding notifications and stop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._notices is not None:
            await self._notices.stop()

    def _send(self, notice: str) -> None:
        if self._notices is not None:
            self._notices.send(notice)
