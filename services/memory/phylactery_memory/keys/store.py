"""The wrapped data keys of users in SQL, and which master keys wrapped one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import IntegrityError

from phylactery_memory.tables import master_keys, outputs, user_keys

_THE_KEY = sa.select(user_keys).where(
    user_keys.c.tenant == sa.bindparam("tenant"), user_keys.c.subject == sa.bindparam("subject")
)
"""Built once: every read of an output asks for its key."""
_AT_ONCE = 200
"""Keys wrapped again in one transaction."""


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
        """Return the owner's key."""
        return await self._database.read_quickly(lambda connection: find(connection, owner))

    async def add(self, owner: Principal, row: UserKey, now_us: int) -> UserKey:
        """Return the owner's key once it is durable: this one, or the one that was there first."""
        try:
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))
        except IntegrityError:  # another replica was faster
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))

    async def admit(self, active_id: str, ids: frozenset[str], now_us: int) -> None:
        """Note the master key that wraps from now on.

        Raise StartError where the database knows a master key that is not among ids.
        """

        def work(connection: Connection) -> None:
            known = set(connection.scalars(sa.select(master_keys.c.master_id)))
            missing = {*known, *connection.scalars(sa.select(user_keys.c.master_id).distinct())} - ids
            if missing:
                raise StartError(
                    f"the database holds outputs under master key {min(missing)}, which is not here; add it to "
                    "the file in MEMORY_MASTER_KEY_FILE, or restore the keys folder that belongs to this database"
                )
            if active_id not in known:
                connection.execute(sa.insert(master_keys).values(master_id=active_id, create_us=now_us))

        try:
            await self._database.write(work)
        except IntegrityError:  # a replica noted its own at the same moment
            await self._database.write(work)

    async def rewrap(self, active_id: str, again: Callable[[Principal, UserKey], bytes | None]) -> int:
        """Wrap keys again that lie under a master key noted before the active one; return how many.

        again answers a key as the active master key wraps it, or None to leave it as it is. A master key that wraps
        nothing any more is forgotten, so that it may leave the service's file.
        """
        wrapped, after = 0, ("", "")
        while rows := await self._database.read(partial(_under_older, active_id=active_id, after=after)):
            after = rows[-1].tenant, rows[-1].subject
            wrapped += await self._database.write(partial(_rewrap, rows=rows, active_id=active_id, again=again))
        if await self._database.read(lambda connection: _idle(connection, active_id)):
            await self._database.write(partial(_forget_idle, active_id=active_id))
        return wrapped


def find(connection: Connection, owner: Principal) -> UserKey | None:
    """Return the owner's key."""
    row = connection.execute(_THE_KEY, {"tenant": owner.tenant, "subject": owner.subject}).first()
    return None if row is None else UserKey(row.key_id, row.master_id, bytes(row.wrapped), row.used_bytes)


def own(owner: Principal) -> tuple[sa.ColumnElement[bool], ...]:
    """Return what picks the owner's row."""
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


def _older(active_id: str) -> sa.ColumnElement[bool]:
    """Return what picks the master keys noted before the active one: replicas that change over never undo another."""
    active = sa.select(master_keys.c.create_us).where(master_keys.c.master_id == active_id).scalar_subquery()
    return master_keys.c.create_us < active


def _under_older(connection: Connection, active_id: str, after: tuple[str, str]) -> Sequence[Row[Any]]:
    """Return keys under a master key noted before the active one, or forgotten: a replica may still use that one."""
    noted = connection.scalars(sa.select(master_keys.c.master_id)).all()
    if active_id not in noted:
        return ()
    older = connection.scalars(sa.select(master_keys.c.master_id).where(_older(active_id))).all()
    place = sa.tuple_(user_keys.c.tenant, user_keys.c.subject)
    return connection.execute(
        sa.select(user_keys)
        .where(sa.or_(user_keys.c.master_id.in_(older), user_keys.c.master_id.not_in(noted)), place > after)
        .order_by(user_keys.c.tenant, user_keys.c.subject)
        .limit(_AT_ONCE)
    ).all()


def _rewrap(
    connection: Connection,
    rows: Sequence[Row[Any]],
    active_id: str,
    again: Callable[[Principal, UserKey], bytes | None],
) -> int:
    done = 0
    for row in rows:
        owner = Principal(row.subject, row.tenant, frozenset())
        key = UserKey(row.key_id, row.master_id, bytes(row.wrapped), row.used_bytes)
        wrapped = again(owner, key)
        if wrapped is not None:  # of a user who was erased since, or has another key by now, no row is found
            same = user_keys.c.key_id == key.key_id, user_keys.c.master_id == key.master_id
            values = {"wrapped": wrapped, "master_id": active_id}
            done += connection.execute(sa.update(user_keys).where(*own(owner), *same).values(**values)).rowcount
    return done


def _idle(connection: Connection, active_id: str) -> Sequence[str]:
    """Return the older master keys that wrap nothing."""
    used = sa.exists().where(user_keys.c.master_id == master_keys.c.master_id)
    return connection.scalars(sa.select(master_keys.c.master_id).where(_older(active_id), ~used)).all()


def _forget_idle(connection: Connection, active_id: str) -> None:
    idle = _idle(connection, active_id)
    connection.execute(sa.delete(master_keys).where(master_keys.c.master_id.in_(idle)))
