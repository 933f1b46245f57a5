"""Lifts: guests whom an operator lets do what any other user may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.auth.levels import GUEST, USER, is_of_channel
from phylactery_chassis.db.database import Database
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import INBOX, LIFTS

NO_END_US: Final = 2**62
"""The end of a lift without an end."""
MAX_LISTED: Final = 1_000
_log = get_logger("guests")


@dataclass(frozen=True, slots=True)
class Lift:
    """One lifted person."""

    owner: Owner
    lifted_us: int
    lifted_by: str
    until_us: int


class Lifts:
    """Store of lifts: one row per lifted person, read at every decision, so that an end works at the next one."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def lift(self, owner: Owner, by: str, until_us: int = NO_END_US) -> Lift:
        """Lift a person; an earlier lift is replaced."""
        lift = Lift(owner, self._clock.now_us(), by, until_us)
        values = {"lifted_us": lift.lifted_us, "lifted_by": by, "until_us": until_us}
        row = insert(LIFTS).values(tenant=owner.tenant, user_id=owner.user_id, **values)
        statement = row.on_conflict_do_update(index_elements=[LIFTS.c.tenant, LIFTS.c.user_id], set_=values)
        await self._database.write(lambda connection: connection.execute(statement))
        _log.info("a guest was lifted", subject=owner.user_id, tenant=owner.tenant, by=by, until_us=until_us)
        return lift

    async def end(self, owner: Owner, by: str) -> bool:
        """End a lift; return False if there was none in force."""
        now = self._clock.now_us()

        def work(connection: Connection) -> bool:
            removed = connection.execute(sa.delete(LIFTS).where(*_of(owner)).returning(LIFTS.c.until_us)).first()
            return removed is not None and removed.until_us > now

        ended = await self._database.write(work)
        if ended:
            _log.info("a lift was ended", subject=owner.user_id, tenant=owner.tenant, by=by)
        return ended

    async def in_force(self, tenant: str) -> Sequence[Lift]:
        """Return a tenant's lifts in force, newest first."""
        now = self._clock.now_us()
        query = sa.select(LIFTS).where(LIFTS.c.tenant == tenant, LIFTS.c.until_us > now)
        query = query.order_by(LIFTS.c.lifted_us.desc(), LIFTS.c.user_id).limit(MAX_LISTED)
        return await self._database.read(lambda connection: [_lift(row) for row in connection.execute(query)])

    async def level_of(self, owner: Owner, told: str = "") -> str:
        """Return GUEST for a guest who is not lifted now, USER for anybody else.

        A person of a channel is a guest whatever level a turn of theirs was stored with; ``told`` is that level.
        """
        if told != GUEST and not is_of_channel(owner.user_id):
            return USER
        now = self._clock.now_us()
        return await self._database.read(lambda connection: level_in(connection, owner, told, now))


def level_in(connection: Connection, owner: Owner, told: str, now: int) -> str:
    """Return the level of a person within a transaction; see ``Lifts.level_of``."""
    if told != GUEST and not is_of_channel(owner.user_id):
        return USER
    query = sa.select(LIFTS.c.until_us).where(*_of(owner), LIFTS.c.until_us > now)
    return GUEST if connection.execute(query).first() is None else USER


def told_level(connection: Connection, lease: Lease) -> str:
    """Return the level that came with the message of a turn."""
    return connection.execute(sa.select(INBOX.c.level).where(INBOX.c.turn_id == lease.turn_id)).scalar() or ""


def _of(owner: Owner) -> tuple[sa.ColumnElement[bool], ...]:
    return LIFTS.c.tenant == owner.tenant, LIFTS.c.user_id == owner.user_id


def _lift(row: Row[Any]) -> Lift:
    return Lift(Owner(row.tenant, row.user_id), row.lifted_us, row.lifted_by, row.until_us)
