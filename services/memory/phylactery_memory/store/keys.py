"""The wrapped data keys of users in SQL, and which master keys wrapped one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.errors import StartError
from phylactery_chassis.identity import Principal
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.store.tables import master_keys, outputs, user_keys


@dataclass(frozen=True, slots=True)
class UserKey:
    """A user's wrapped data key, which master key wrapped it, and how many bytes of the quota are used."""

    key_id: str
    master_id: str
    wrapped: bytes
    used_bytes: int


class KeyStore:
    """Keeps the keys of users. Every method raises Unavailable STORE_UNAVAILABLE where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: Principal) -> UserKey | None:
        """Answers the owner's key."""
        return await self._database.read(lambda connection: find(connection, owner))

    async def add(self, owner: Principal, row: UserKey, now_us: int) -> UserKey:
        """Answers the owner's key once it is durable: this one, or the one that was there first."""
        try:
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))
        except IntegrityError:  # another replica was faster
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))

    async def admit(self, active_id: str, ids: frozenset[str], now_us: int) -> None:
        """Notes the master key that wraps from now on.

        Raises StartError where the database knows a master key that is not among ids.
        """

        def work(connection: Connection) -> None:
            known = set(connection.scalars(sa.select(master_keys.c.master_id)))
            if known - ids:
                raise StartError(
                    f"the database holds outputs under master key {min(known - ids)}, which is not here; add it to "
                    "the file in MEMORY_MASTER_KEY_FILE, or restore the keys folder that belongs to this database"
                )
            if active_id not in known:
                connection.execute(sa.insert(master_keys).values(master_id=active_id, create_us=now_us))

        try:
            await self._database.write(work)
        except IntegrityError:  # a replica noted its own at the same moment
            await self._database.write(work)


def find(connection: Connection, owner: Principal) -> UserKey | None:
    """Answers the owner's key."""
    row = connection.execute(sa.select(user_keys).where(*own(owner))).first()
    return None if row is None else UserKey(row.key_id, row.master_id, bytes(row.wrapped), row.used_bytes)


def own(owner: Principal) -> tuple[sa.ColumnElement[bool], ...]:
    """Answers what picks the owner's row."""
    return user_keys.c.tenant == owner.tenant, user_keys.c.subject == owner.subject


def _add(connection: Connection, owner: Principal, row: UserKey, now_us: int) -> UserKey:
    standing = find(connection, owner)
    if standing is not None:
        return standing
    owned = outputs.c.tenant == owner.tenant, outputs.c.subject == owner.subject, outputs.c.stored
    used = connection.scalar(sa.select(sa.func.coalesce(sa.func.sum(outputs.c.size_bytes), 0)).where(*owned)) or 0
    connection.execute(
        sa.insert(user_keys).values(
            tenant=owner.tenant,
            subject=owner.subject,
            key_id=row.key_id,
            master_id=row.master_id,
            wrapped=row.wrapped,
            used_bytes=used,
            create_us=now_us,
        )
    )
    return replace(row, used_bytes=used)
