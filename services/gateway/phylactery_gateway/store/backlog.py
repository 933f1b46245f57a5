"""Large webhooks: sealed and stored in one write, acknowledged, read piece by piece afterwards, and removed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import FailedPrecondition
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.store.sealing import sealer_of
from phylactery_gateway.tables import backlog


@dataclass(frozen=True, slots=True)
class Waiting:
    """A webhook that is read by this process; ``done`` of its elements are stored already."""

    webhook_id: str
    channel: str
    body: bytes
    done: int


class Backlog:
    """The store of large webhooks."""

    def __init__(self, database: Database, lease_us: int) -> None:
        """Let a process keep a webhook for ``lease_us`` without renewing."""
        self._database, self._lease_us = database, lease_us

    async def add(self, channel: str, body: bytes, now_us: int) -> None:
        """Store a webhook, durably. The same one again, while it waits, changes nothing."""

        def work(connection: Connection) -> None:
            sealer = sealer_of(connection)
            webhook_id = sealer.digest(b"%s\n%s" % (channel.encode(), body))
            row = {"webhook_id": webhook_id, "channel": channel, "done": 0, "until_us": 0, "receive_us": now_us}
            sealed = sealer.seal(body, place_of(webhook_id))
            connection.execute(insert(backlog).values(**row, body=sealed).on_conflict_do_nothing())

        await self._database.write(work)

    async def claim(self, now_us: int, channels: Collection[str]) -> Waiting | None:
        """Take the webhook that waits longest for this process, None if none waits.

        Those of channels that are not configured wait.
        """
        free = sa.select(backlog.c.webhook_id).where(
            backlog.c.until_us <= now_us, backlog.c.channel.in_(list(channels))
        )
        first = free.order_by(backlog.c.receive_us, backlog.c.webhook_id).limit(1)

        def work(connection: Connection) -> Waiting | None:
            webhook_id = connection.execute(first.with_for_update(skip_locked=True)).scalar()
            if webhook_id is None:
                return None
            which = backlog.c.webhook_id == webhook_id
            connection.execute(sa.update(backlog).where(which).values(until_us=now_us + self._lease_us))
            query = sa.select(backlog.c.webhook_id, backlog.c.channel, backlog.c.body, backlog.c.done).where(which)
            row = connection.execute(query).one()
            body = sealer_of(connection).open(row.body, place_of(webhook_id))
            return Waiting(row.webhook_id, row.channel, body or b"", row.done)

        if await self._database.read(lambda connection: connection.execute(free.limit(1)).first()) is None:
            return None
        return await self._database.write(work)

    async def keep(self, waiting: Waiting, done: int, now_us: int) -> None:
        """Keep a webhook for another while, and note how many of its elements are stored."""
        which = backlog.c.webhook_id == waiting.webhook_id
        statement = sa.update(backlog).where(which).values(done=done, until_us=now_us + self._lease_us)
        await self._database.write(lambda connection: connection.execute(statement).close())

    async def remove(self, waiting: Waiting) -> None:
        """Remove a webhook whose elements are all stored."""
        statement = sa.delete(backlog).where(backlog.c.webhook_id == waiting.webhook_id)
        await self._database.write(lambda connection: connection.execute(statement).close())


def place_of(webhook_id: str) -> str:
    """Return what the body of a webhook is sealed to."""
    return f"backlog.body:{webhook_id}"


def refuse_while_waiting(connection: Connection, channel: str) -> None:
    """Raise FailedPrecondition while a webhook of a channel waits, which may hold messages of anybody."""
    if connection.execute(sa.select(backlog.c.webhook_id).where(backlog.c.channel == channel).limit(1)).first():
        raise FailedPrecondition(
            "CONVERSATION_BUSY", "a large webhook of the channel is still being read; run the command again in a minute"
        )
