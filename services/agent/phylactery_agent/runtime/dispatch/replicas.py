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

    def __init__(
        self, url: str, holder: str, *, runner: Dispatcher, news: ThreadNotifier, named_leases: NamedLeases
    ) -> None:
        """Take the database's URL and the parts of this agent that react to notifications."""
        self._runner, self._news, self._named_leases = runner, news, named_leases
        self._notices = None
        self._tasks: list[asyncio.Task[None]] = []
        if runner.shared:
            self._notices = Notices(url, _CHANNEL, origin=holder, heard=self._hear, missed=self._look)
            notices = self._notices
            news.relay = lambda key: notices.send(f"{_NEWS} {key}")
            runner.on_overflow = lambda: notices.send(_WORK)
            runner.on_hold = lambda key: notices.send(f"{_HOLD} {key}")

    async def start(self) -> None:
        """Start listening and polling."""
        if self._notices is not None:
            self._notices.start()
            self._tasks = [asyncio.create_task(self._named_leases.run()), asyncio.create_task(self._look_again())]

    async def stop(self) -> None:
        """Send the outstanding notifications and stop."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._notices is not None:
            await self._notices.stop()

    def _hear(self, notice: str) -> None:
        kind, _, key = notice.partition(" ")
        if kind == _NEWS:
            self._news.tell_here(key)
        elif kind == _WORK:
            self._runner.look()
        elif kind == _HOLD:
            self._runner.preempt(key)

    def _look(self) -> None:
        self._news.tell_all_here()
        self._runner.look()

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self._look()
