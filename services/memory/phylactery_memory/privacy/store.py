"""Erasure of one user in SQL: count, remove, and recognise the user in a restored database.

Every table with columns tenant and subject belongs to a user; tables that reference it are removed with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.erasure.service import ErasureTable
from phylactery_chassis.errors import STORE_FAILED, Unavailable
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.outputs.objects import OutputObjects, doom, erase_doomed
from phylactery_memory.privacy.model import Erasure, ErasureCounts
from phylactery_memory.tables import (
    erasures,
    memory_owners,
    memory_postings,
    memory_profile,
    memory_records,
    memory_vectors,
    messages,
    metadata,
    output_objects,
    outputs,
    profile_owners,
    threads,
    user_memory,
)

_KEYS = "user_keys"


class PrivacyStore(ErasureTable[Erasure]):
    """Erases users. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, objects: OutputObjects | None = None) -> None:
        super().__init__(database, erasures, Erasure)
        self._objects = objects

    async def erase(self, owner: Principal, erasure_id: str, done: Callable[[ErasureCounts], Erasure]) -> Erasure:
        """Remove everything of the owner and store the record in one transaction; return it once it is durable.

        If another replica, which found the erasure in the log at its start, already carried it out, its record is kept.
        """

        def work(connection: Connection) -> Erasure:
            standing = self.carried_out(connection, erasure_id)
            if standing is not None:
                return standing
            erasure = done(remove_all(connection, owner, erasure_id))
            note_removed(connection)
            self.keep(connection, erasure)
            return erasure

        try:
            return await self._database.write(work)
        except IntegrityError:  # that replica did so between our read and our insert
            return await self._database.write(work)

    async def users(self) -> frozenset[tuple[str, str]]:
        """Return tenant and subject of every user with stored data."""

        def work(connection: Connection) -> frozenset[tuple[str, str]]:
            rows = (connection.execute(sa.select(t.c.tenant, t.c.subject).distinct()) for t in users_tables())
            return frozenset((row.tenant, row.subject) for found in rows for row in found)

        return await self._database.read(work)

    async def threads(self, owner: Principal) -> list[str]:
        """Return the ids of the owner's threads."""
        wanted = sa.select(threads.c.thread_id).where(*_of(threads, owner)).order_by(threads.c.thread_id)
        return await self._database.read(lambda connection: list(connection.scalars(wanted)))

    async def forget_objects(self, erasure_id: str) -> None:
        """Remove an erased user's objects from the object store. Raise Unavailable if it is unavailable."""
        if self._objects is None:
            return
        try:
            await self._objects.remove_doomed(output_objects.c.erasure_id == erasure_id)
        except STORE_FAILED:
            raise Unavailable(
                "STORE_UNAVAILABLE",
                "everything in the database is erased, with the key of what lies in the object store, which did not "
                "answer; it is removed as soon as it does: ask again with the same request_id to see that it is",
            ) from None


def users_tables() -> Iterator[sa.Table]:
    """Yield the tables that name a user, referenced tables last: a key is removed before what it opens."""
    for table in reversed(metadata.sorted_tables):
        if "tenant" in table.c and "subject" in table.c:
            yield table


def remove_all(connection: Connection, owner: Principal, erasure_id: str) -> ErasureCounts:
    """Remove everything of the owner and return the counts; wait for concurrent writers first.

    The key is removed first: an output being stored meanwhile finds it missing and is not stored. The user's objects
    that wait to be removed are assigned to this erasure.
    """
    for table in (metadata.tables[_KEYS], threads, memory_owners, profile_owners):
        connection.execute(sa.select(table.c.tenant).where(*_of(table, owner)).with_for_update())
    counts = _count(connection, owner)
    key_ids = _key_ids(connection, owner)
    tables = sorted(users_tables(), key=lambda table: table.name != _KEYS)
    for table in tables:
        if table is outputs:
            doom(connection, *_of(outputs, owner))
        connection.execute(sa.delete(table).where(*_of(table, owner)))
    erase_doomed(connection, key_ids, erasure_id)
    return counts


def _key_ids(connection: Connection, owner: Principal) -> set[str]:
    """Return the ids of the keys the owner's texts are sealed under."""
    tables = (metadata.tables[_KEYS], outputs)
    found = (connection.scalars(sa.select(table.c.key_id).distinct().where(*_of(table, owner))) for table in tables)
    return {key_id for some in found for key_id in some if key_id}


def _count(connection: Connection, owner: Principal) -> ErasureCounts:
    owner_id = sa.select(memory_owners.c.owner_id).where(*_of(memory_owners, owner)).scalar_subquery()

    def rows(table: sa.Table) -> int:
        wanted = [table.c.owner_id == owner_id] if "owner_id" in table.c else _of(table, owner)
        return connection.execute(sa.select(sa.func.count()).select_from(table).where(*wanted)).scalar_one()

    return ErasureCounts(
        threads=rows(threads),
        messages=rows(messages),
        memories=rows(user_memory),
        postings=sum(rows(table) for table in (memory_postings, memory_records, memory_vectors)),
        profile_fields=rows(memory_profile),
        outputs=rows(outputs),
        keys=rows(metadata.tables[_KEYS]) if _KEYS in metadata.tables else 0,
    )


def _of(table: sa.Table, owner: Principal) -> list[sa.ColumnElement[bool]]:
    return [table.c.tenant == owner.tenant, table.c.subject == owner.subject]
