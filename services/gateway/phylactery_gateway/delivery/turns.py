"""Gives each conversation's messages to the agent, in order, one turn at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.telemetry.semconv import CHANNEL
from phylactery_chassis.telemetry.telemetry import span
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from phylactery_client import Attachment
from phylactery_client.errors import (
    AbortedError,
    CancelledByServerError,
    DeadlineError,
    PermissionDeniedError,
    PhylacteryError,
    ResourceExhaustedError,
    ServiceFaultError,
    UnauthenticatedError,
    UnavailableError,
)

from phylactery_gateway.channels.messages import Outgoing
from phylactery_gateway.channels.port import SECOND_US, Channel, MediaUnavailableError
from phylactery_gateway.delivery.agent import Agent, NotWaitingError
from phylactery_gateway.delivery.files import fetch
from phylactery_gateway.delivery.loops import Loop
from phylactery_gateway.delivery.rendering import whole_card
from phylactery_gateway.i18n.texts import say
from phylactery_gateway.metrics import Metrics
from phylactery_gateway.store.turns import Conversation, Turn, Turns, TurnState

_POLL_SECONDS: Final = 1.0
_AT_ONCE: Final = 64
_FETCHES: Final = 5
"""How often a file is tried that the channel does not hand out now."""
_LONGEST_PAUSE_US: Final = 15 * SECOND_US
_EXPIRED: Final = "EXPIRED"
_AGAIN: Final = (
    UnavailableError,
    DeadlineError,
    AbortedError,
    CancelledByServerError,
    ResourceExhaustedError,
    ServiceFaultError,
    UnauthenticatedError,
    PermissionDeniedError,
)
"""Errors after which the same turn is tried again. The operator mends the last two; nothing is lost meanwhile."""

_log = get_logger("turns")


class TurnWorker:
    """Works on conversations with messages for the agent."""

    def __init__(
        self,
        turns: Turns,
        agent: Agent,
        channels: Mapping[str, Channel],
        clock: Clock,
        metrics: Metrics,
        *,
        accepted: Callable[[Conversation], None],
        added: Callable[[], None],
        every: float = _POLL_SECONDS,
    ) -> None:
        """Call ``accepted`` when the agent has a turn, ``added`` when a message for a person was stored."""
        self._turns, self._agent, self._channels, self._clock = turns, agent, channels, clock
        self._metrics, self._accepted, self._added = metrics, accepted, added
        self._running: dict[str, asyncio.Task[None]] = {}
        self._asides: set[asyncio.Task[None]] = set()
        self.loop = Loop("turns", self._look, every)

    def wake_in(self, seconds: float) -> None:
        """Look for work after a while, for example when the pause after a message is over."""
        asyncio.get_running_loop().call_later(seconds, self.loop.wake)

    async def stop(self) -> None:
        """End; what was not given to the agent is given to it after the next start."""
        await self.loop.stop()
        tasks = [*self._running.values(), *self._asides]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        room = _AT_ONCE - len(self._running)
        if room <= 0:
            return
        for conversation_id in await self._turns.due(self._clock.now_us(), room, self._channels):
            if conversation_id not in self._running:
                task = asyncio.create_task(self._work(conversation_id))
                self._running[conversation_id] = task
                task.add_done_callback(lambda _, one=conversation_id: self._ended(one))  # type: ignore[misc]

    def _ended(self, conversation_id: str) -> None:
        del self._running[conversation_id]
        self.loop.wake()

    async def _work(self, conversation_id: str) -> None:
        try:
            conversation = await self._turns.claim(conversation_id, self._clock.now_us())
            if conversation is None:
                return
            async with self._kept(conversation_id):
                while (turn := await self._turns.next(conversation_id, self._clock.now_us())) is not None:
                    reach("gateway.turn")
                    if not await self._give(conversation, turn):
                        return
        except DomainError as error:  # the lease ends by itself
            _log.warning("conversation could not be served; it is tried again", reason=error.reason)

    async def _give(self, conversation: Conversation, turn: Turn) -> bool:
        """Give one turn to the agent; return False if it is to be tried again later."""
        state, notice, told = TurnState.GIVEN, "", list[Outgoing]()
        self._show_typing(conversation, turn)
        with span("gateway.turn", attributes={CHANNEL: conversation.channel}):
            try:
                await self._turns.tried(turn)
                reach("gateway.tried")
                if change := await self._turns.untold(conversation):
                    await self._agent.end_lift(conversation)
                    await self._turns.note_told(conversation, change)
                attached, missing = await self._files(conversation, turn)
                notice = say(missing, conversation.language) if missing else ""
                if turn.reads:
                    asked = await self._agent.read_approval(conversation, turn)
                    told += whole_card(asked, self._channels[conversation.channel].limits, conversation.language)
                elif turn.media and not (turn.text or turn.passed_on or attached):
                    state = TurnState.REFUSED
                else:
                    await self._agent.give(conversation, turn, attached)
                reach("gateway.accepted")
            except NotWaitingError as error:
                state, notice = TurnState.REFUSED, _gone(turn, error.state, conversation.language)
            except _AGAIN as error:
                self._metrics.agent_failed(error.code.name)
                _log.warning(
                    "the agent did not take a turn; it is tried again", error_code=error.code.name, reason=error.reason
                )
                return await self._later(conversation, turn)
            except MediaUnavailableError as error:
                _log.info("a file is fetched again later", channel=conversation.channel, reason=error.reason)
                return await self._later(conversation, turn)
            except PhylacteryError as error:
                _log.error("the agent refused a turn", error_code=error.code.name, reason=error.reason)
                state, notice = TurnState.REFUSED, say("refused", conversation.language)
        told += [Outgoing(notice)] if notice else []
        await self._turns.given(conversation.conversation_id, turn, state, self._clock.now_us(), told)
        reach("gateway.recorded")
        self._metrics.turn(conversation.channel, state)
        self._accepted(conversation)
        if told:
            self._added()
        return True

    async def _later(self, conversation: Conversation, turn: Turn) -> bool:
        """Try a turn again after a pause, which grows."""
        pause = min(SECOND_US // 4 << min(turn.tries, 10), _LONGEST_PAUSE_US)
        await self._turns.release(conversation.conversation_id, self._clock.now_us() + pause)
        self.wake_in(pause / SECOND_US)
        return False

    async def _files(self, conversation: Conversation, turn: Turn) -> tuple[list[Attachment], str]:
        """Return a turn's files, and what the person is told of those that are missing."""
        channel = self._channels.get(conversation.channel)
        if not turn.media or channel is None:
            return [], ""
        return await fetch(channel, turn.media, again=turn.tries < _FETCHES)

    def _show_typing(self, conversation: Conversation, turn: Turn) -> None:
        channel = self._channels.get(conversation.channel)
        if channel is not None and turn.external_id:
            task = asyncio.create_task(channel.typing(conversation.address, turn.external_id))
            self._asides.add(task)
            task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._asides.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.info("typing was not shown", error=type(task.exception()).__name__)

    @asynccontextmanager
    async def _kept(self, conversation_id: str) -> AsyncIterator[None]:
        """Keep a conversation for the block, which may take as long as the turns before it in its thread."""

        async def renew() -> None:
            while True:
                await asyncio.sleep(self._turns.lease_us / SECOND_US / 3)
                with contextlib.suppress(DomainError):
                    await self._turns.renew(conversation_id, self._clock.now_us())

        task = asyncio.create_task(renew())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def _gone(turn: Turn, state: str, language: str) -> str:
    """Return what a person is told whose answer, or wish to read, is for what waits no more."""
    told = [say("gone", language, state=state)]
    told += [] if turn.reads else [say("unchanged", language)]
    told += [say("ask_again", language)] if state == _EXPIRED else []
    return " ".join(told)
