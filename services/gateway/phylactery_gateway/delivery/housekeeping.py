"""Removes what is no longer needed: rows that are done and older than the retention, and texts that were delivered."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import scrub_removed
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.delivery.loops import Loop
from phylactery_gateway.store.inbox import MessageState
from phylactery_gateway.store.outbox import Outbox, State
from phylactery_gateway.store.turns import TurnState
from phylactery_gateway.tables import echoes, inbox, media, messages, outbox, turns

DAY_US: Final = 24 * 3_600 * SECOND_US
_EVERY_SECONDS: Final = 3_600.0
_SETTLED: Final = (State.SENT, State.FAILED, State.SILENCED, State.WINDOW, State.IN_DOUBT)
_DONE: Final = (
    (echoes, echoes.c.until_us, sa.true()),
    (inbox, inbox.c.receive_us, sa.true()),
    (media, media.c.create_us, sa.true()),
    (messages, messages.c.receive_us, messages.c.state != MessageState.WAITING),
    (turns, turns.c.create_us, turns.c.state != TurnState.OPEN),
    (outbox, outbox.c.create_us, outbox.c.state.in_(_SETTLED)),
)

_log = get_logger("housekeeping")


class Housekeeping:
    """Removes old rows every hour."""

    def __init__(self, database: Database, outbox: Outbox, clock: Clock, days: int) -> None:
        self._database, self._outbox, self._clock, self._days = database, outbox, clock, days
        self.loop = Loop("housekeeping", self.tidy, _EVERY_SECONDS)

    async def tidy(self) -> None:
        """Remove what is done and older than the retention, then what was removed before from SQLite's files.

        A reader may hold the log: then the next hour empties it.
        """
        before_us = self._clock.now_us() - self._days * DAY_US

        def work(connection: Connection) -> int:
            removed = (
                connection.execute(sa.delete(table).where(column < before_us, done)).rowcount
                for table, column, done in _DONE
            )
            return sum(removed)

        if removed := await self._database.write(work):
            _log.info("old rows removed", rows=removed)
        await self._outbox.empty_untold(self._clock.now_us())
        await scrub_removed(self._database)
