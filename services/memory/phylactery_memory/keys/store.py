"""Wrapped data keys of users in SQL, and the master keys that wrapped them."""

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
"""Built once: every read of an output needs its key."""
_AT_ONCE = 200
"""Keys rewrapped per transaction."""


@dataclass(frozen=True, slots=True)
class UserKey:
    """A user's wrapped data key, the master key that wrapped it, and the bytes used of the quota."""

    key_id: str
    master_id: str
    wrapped: bytes
    used_bytes: int


class KeyStore:
    """The keys of users. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: Principal) -> UserKey | None:
        """Return the owner's key."""
        return await self._database.read_quickly(lambda connection: find(connection, owner))

    async def add(self, owner: Principal, row: UserKey, now_us: int) -> UserKey:
        """Return the owner's key once it is durable: this one, or the one stored first."""
        try:
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))
        except IntegrityError:  # another replica was first
            return await self._database.write(lambda connection: _add(connection, owner, row, now_us))

    async def admit(self, active_id: str, ids: frozenset[str], now_us: int) -> None:
        """Record the active master key.

        Raise StartError if the database knows a master key that is not among ids.
        """

        def work(connection: Connection) -> None:
            known = set(connection.scalars(sa.select(master_keys.c.master_id)))
            missing = {*known, *connection.scalars(sa.select(user_keys.c.master_id).distinct())} - ids
            if missing:
                raise StartError(
                    f"the database contains outputs encrypted with master key {min(missing)}, which is missing; "
                    "add it to the file in MEMORY_MASTER_KEY_FILE, or restore the keys folder of this database"
                )
            if active_id not in known:
                connection.execute(sa.insert(master_keys).values(master_id=active_id, create_us=now_us))

        try:
            await self._database.write(work)
        except IntegrityError:  # a replica recorded its own concurrently
            await self._database.write(work)

    async def rewrap(self, active_id: str, again: Callable[[Principal, UserKey], bytes | None]) -> int:
        """Rewrap keys under a master key recorded before the active one; return their number.

        ``again`` returns a key wrapped by the active master key, or None to leave it unchanged. A master key that wraps
        nothing any more is deleted, so that it may be removed from the service's file.
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
    """Return the conditions that select the owner's row."""
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
    """Return the condition for master keys older than the active one: replicas being replaced never undo another."""
    active = sa.select(master_keys.c.create_us).where(master_keys.c.master_id == active_id).scalar_subquery()
    return master_keys.c.create_us < active


def _under_older(connection: Connection, active_id: str, after: tuple[str, str]) -> Sequence[Row[Any]]:
    """Return keys under a master key that is older than the active one, or deleted but still used by a replica."""
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
        if wrapped is not None:  # no row matches if the user was erased or has another key by now
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
