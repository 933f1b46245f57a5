"""Follows the threads of conversations, so that everything the agent says reaches the person, whoever asked for it.

A conversation in which something happened lately is watched; the others are looked at from time to time, which is how a
reminder or the answer to somebody else's approval is found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Final

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from phylactery_client.errors import NotFoundError, OutOfRangeError, PhylacteryError
from phylactery_client.results import Thread

from phylactery_gateway.channels.port import SECOND_US, Channel
from phylactery_gateway.delivery.agent import Agent
from phylactery_gateway.delivery.loops import Loop
from phylactery_gateway.delivery.rendering import Renderer
from phylactery_gateway.store.turns import Conversation, Threads

_EVERY_SECONDS: Final = 1.0
_AT_A_TIME: Final = 50
_RENEW_SECONDS: Final = 15.0

_log = get_logger("followers")


class Followers:
    """The threads this process watches."""

    def __init__(
        self,
        threads: Threads,
        agent: Agent,
        channels: Mapping[str, Channel],
        clock: Clock,
        *,
        added: Callable[[], None],
        most: int,
        watch_seconds: float,
        look_seconds: float,
    ) -> None:
        """Watch at most ``most`` threads, each until ``watch_seconds`` after its last event.

        Look at the others every ``look_seconds``. ``added`` is called when a message for a person was stored.
        """
        self._threads, self._agent, self._channels, self._clock = threads, agent, channels, clock
        self._added, self._most = added, most
        self._watch_seconds, self._look_seconds = watch_seconds, look_seconds
        self._watching: dict[str, asyncio.Task[None]] = {}
        self._renewed_us = 0
        self.loop = Loop("followers", self._look, min(_EVERY_SECONDS, look_seconds))

    def follow(self, conversation: Conversation) -> None:
        """Watch a conversation's thread from now on."""
        if conversation.conversation_id not in self._watching and len(self._watching) < self._most:
            task = asyncio.create_task(self._watch(conversation))
            self._watching[conversation.conversation_id] = task
            task.add_done_callback(lambda _: self._watching.pop(conversation.conversation_id, None))

    async def stop(self) -> None:
        """End; another process, or the next start, goes on from what is stored."""
        await self.loop.stop()
        for task in list(self._watching.values()):
            task.cancel()
        await asyncio.gather(*self._watching.values(), return_exceptions=True)

    async def _look(self) -> None:
        """Put off other processes from what is watched here, and look at threads that are due."""
        now_us = self._clock.now_us()
        next_us = now_us + int(max(self._look_seconds, 2 * _RENEW_SECONDS) * SECOND_US)
        if self._watching and now_us - self._renewed_us > _RENEW_SECONDS * SECOND_US:
            self._renewed_us = now_us
            await self._threads.look_again(list(self._watching), next_us)
        next_us = now_us + int(self._look_seconds * SECOND_US)
        for conversation in await self._threads.take_due(now_us, next_us, _AT_A_TIME):
            if conversation.conversation_id not in self._watching:
                await self._look_at(conversation)

    async def _look_at(self, conversation: Conversation) -> None:
        try:
            thread = await self._agent.thread(conversation)
        except PhylacteryError as error:
            _log.info("a thread could not be looked at", error_code=error.code.name, reason=error.reason)
            return
        if thread is None:
            return
        if (thread.last_sequence, _created_us(thread)) != (conversation.event_after, conversation.thread_us):
            self.follow(conversation)

    async def _watch(self, conversation: Conversation) -> None:
        channel = self._channels.get(conversation.channel)
        if channel is None:
            return
        try:
            await self._read(conversation, channel)
        except NotFoundError:
            pass  # nothing was said in it yet, or it was deleted
        except OutOfRangeError as error:
            await self._restart(conversation, error)
        except PhylacteryError as error:
            _log.info("a thread is not followed now; it is looked at again", error_code=error.code.name)
            await self._again(conversation)
        except DomainError as error:
            _log.warning("what a thread said could not be stored; it is read again", reason=error.reason)

    async def _again(self, conversation: Conversation) -> None:
        soon_us = self._clock.now_us() + int(min(1.0, self._look_seconds) * SECOND_US)
        await self._threads.look_again([conversation.conversation_id], soon_us)

    async def _read(self, conversation: Conversation, channel: Channel) -> None:
        thread = await self._agent.thread(conversation)
        if thread is None:
            return
        renderer = Renderer(channel.limits, conversation.language)
        place = conversation.event_after
        created_us = _created_us(thread)
        if conversation.thread_us != created_us:
            # the thread was deleted and begun again: its numbers begin again, too
            place = thread.first_sequence - 1 if conversation.thread_us else place
            await self._threads.restart(conversation.conversation_id, place, created_us)
        events = self._agent.watch(conversation, place, self._watch_seconds)
        async with aclosing(events):
            async for event in events:
                said = renderer.read(event)
                if said is None and event.kind not in ("run_finished", "handoff"):
                    continue  # the position is stored with the next event that is worth a write
                place = event.sequence if not renderer.holds else place
                claimed = event.detail.state == "CLAIMED" if event.kind == "handoff" else None
                new = await self._threads.told(
                    conversation.conversation_id, place, [said] if said else [], self._clock.now_us(), claimed=claimed
                )
                if new:
                    reach("gateway.said")
                    self._added()

    async def _restart(self, conversation: Conversation, error: OutOfRangeError) -> None:
        """Go on from what the agent has: old events are removed there, and a restored database has fewer."""
        thread = await self._agent.thread(conversation)
        if thread is None:
            return
        behind = error.reason == "CURSOR_TOO_OLD"
        sequence = thread.first_sequence - 1 if behind else thread.last_sequence
        _log.warning(
            "a thread is read from another place", reason=error.reason, conversation_id=conversation.conversation_id
        )
        await self._threads.restart(conversation.conversation_id, sequence, _created_us(thread))
        await self._again(conversation)


def _created_us(thread: Thread) -> int:
    """Return when a thread was begun, which tells it from an earlier one with the same id."""
    return round(thread.create_time.timestamp() * SECOND_US) if thread.create_time else 0
