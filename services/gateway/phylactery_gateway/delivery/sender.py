"""Sends what is in the outbox: in each conversation in order, no faster than the channel allows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.telemetry.semconv import CHANNEL
from phylactery_chassis.telemetry.telemetry import span
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach

from phylactery_gateway.channels.messages import File
from phylactery_gateway.channels.port import Action, Channel, SendError
from phylactery_gateway.delivery.agent import Agent
from phylactery_gateway.delivery.loops import Loop
from phylactery_gateway.metrics import Metrics
from phylactery_gateway.store.outbox import NOT_TAKEN, Outbox, Parcel, template_id

_POLL_SECONDS: Final = 0.5
_AT_ONCE: Final = 32

_log = get_logger("sender")


class Sender:
    """Sends messages: a text at least once, a file at most once."""

    def __init__(
        self, outbox: Outbox, agent: Agent, channels: Mapping[str, Channel], clock: Clock, metrics: Metrics
    ) -> None:
        self._outbox, self._agent, self._channels, self._clock = outbox, agent, channels, clock
        self._metrics = metrics
        self._sending: dict[str, asyncio.Task[None]] = {}
        self.loop = Loop("sender", self._look, _POLL_SECONDS)

    async def stop(self) -> None:
        """End; what is being sent is finished first, because nobody would know afterwards."""
        await self.loop.stop()
        await asyncio.gather(*self._sending.values(), return_exceptions=True)

    async def _look(self) -> None:
        room = _AT_ONCE - len(self._sending)
        if room <= 0:
            return
        for outbox_id in await self._outbox.due(self._clock.now_us(), room, self._channels):
            if outbox_id not in self._sending:
                task = asyncio.create_task(self._one(outbox_id))
                self._sending[outbox_id] = task
                task.add_done_callback(lambda _, one=outbox_id: self._sending.pop(one, None))  # type: ignore[misc]

    async def _one(self, outbox_id: str) -> None:
        try:
            parcel = await self._outbox.claim(outbox_id, self._channels, self._clock.now_us())
            if parcel is not None:
                reach("gateway.claimed")
                await self._send(parcel)
                self.loop.wake()
        except DomainError as error:
            _log.warning("message could not be recorded; it may be sent again", reason=error.reason)

    async def _send(self, parcel: Parcel) -> None:
        channel = self._channels[parcel.channel]
        with span("gateway.send", attributes={CHANNEL: parcel.channel}):
            try:
                if parcel.template:
                    callback_id = template_id(parcel.outbox_id)
                    external_id = await channel.send_template(parcel.address, parcel.language, callback_id) or ""
                    _log.info(
                        "message waits until the person writes", outbox_id=parcel.outbox_id, template=bool(external_id)
                    )
                elif parcel.message.file is not None:
                    sent = await self._file(channel, parcel, parcel.message.file)
                    if sent is None:
                        return
                    external_id = sent
                else:
                    external_id = await channel.send(parcel.address, parcel.message, parcel.outbox_id)
                reach("gateway.sent")
            except SendError as error:
                await self._failed(parcel, error)
                return
        await self._outbox.sent(parcel, external_id, self._clock.now_us())
        reach("gateway.done")
        self._metrics.sent(parcel.channel)

    async def _file(self, channel: Channel, parcel: Parcel, file: File) -> str | None:
        """Fetch, upload and send a file; return the channel's id, None if it is not this process's to send any more.

        Up to the note that it is being sent nobody has seen anything of it, so all that may be done again. Raise
        SendError.
        """
        if not channel.takes(file):
            raise SendError(Action.FAIL, NOT_TAKEN)
        data, reference = b"", parcel.reference
        if not reference:
            data = await self._agent.file(parcel.subject, parcel.conversation_id, file)
            reach("gateway.fetched")
            try:
                reference = await channel.upload(parcel.address, file, data)
            except SendError as error:
                unseen = error.action is Action.UNCERTAIN
                raise SendError(Action.RETRY, error.code) if unseen else error from None
            reach("gateway.uploaded")
        if not await self._outbox.begin(parcel, reference, self._clock.now_us()):
            return None
        reach("gateway.begun")
        return await channel.send_file(parcel.address, file, reference, data, parcel.outbox_id)

    async def _failed(self, parcel: Parcel, error: SendError) -> None:
        now_us = self._clock.now_us()
        self._metrics.send_failed(parcel.channel, error.code, error.action)
        tell = _log.error if error.action in (Action.PAUSE, Action.FAIL) else _log.warning
        tell("message was not sent", outbox_id=parcel.outbox_id, error_code=error.code, action=error.action)
        await self._outbox.failed(parcel, error, now_us)
