"""Reads large webhooks that were acknowledged, a few elements at a time, so that nobody else waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach

from phylactery_gateway.channels.messages import Received
from phylactery_gateway.channels.port import SECOND_US, Channel
from phylactery_gateway.delivery.loops import Loop
from phylactery_gateway.store.backlog import Backlog, Waiting
from phylactery_gateway.store.inbox import AT_ONCE, Inbox
from phylactery_gateway.store.turns import Turns

_POLL_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.25
_CONVERSATIONS: Final = 64
"""So many conversations may wait for the agent; while there are more, nobody who writes now is put behind others."""
_SOON_US: Final = 30 * SECOND_US
"""A conversation that is due within this time, as after a debounce, waits already."""

_log = get_logger("backlog")


class BacklogWorker:
    """Stores the elements of webhooks that wait, in their order."""

    def __init__(
        self,
        backlog: Backlog,
        inbox: Inbox,
        turns: Turns,
        channels: Mapping[str, Channel],
        clock: Clock,
        *,
        stored: Callable[[], None],
    ) -> None:
        """Call ``stored`` when something new was stored."""
        self._backlog, self._inbox, self._turns, self._channels = backlog, inbox, turns, channels
        self._clock, self._stored = clock, stored
        self.loop = Loop("backlog", self._look, _POLL_SECONDS)

    async def _look(self) -> None:
        while (waiting := await self._backlog.claim(self._clock.now_us(), self._channels)) is not None:
            await self._read(self._channels[waiting.channel], waiting)

    async def _read(self, channel: Channel, waiting: Waiting) -> None:
        elements = await asyncio.to_thread(channel.parse, waiting.body)
        _log.info("large webhook", channel=channel.name, elements=len(elements), done=waiting.done)
        for begin in range(waiting.done, len(elements), AT_ONCE):
            some = elements[begin : begin + AT_ONCE]
            if any(isinstance(one.content, Received) for one in some):
                await self._await_room(waiting, begin)
            if await self._inbox.receive(channel, some, self._clock.now_us(), counted=False):
                self._stored()
            reach("gateway.unpacked")
            await self._backlog.keep(waiting, begin + len(some), self._clock.now_us())
        await self._backlog.remove(waiting)

    async def _await_room(self, waiting: Waiting, done: int) -> None:
        """Wait until the agent has most of the conversations there are, so that a message of now is served soon."""
        while len(await self._turns.due(self._clock.now_us() + _SOON_US, _CONVERSATIONS, self._channels)) == (
            _CONVERSATIONS
        ):
            await asyncio.sleep(_PAUSE_SECONDS)
            await self._backlog.keep(waiting, done, self._clock.now_us())
