"""What erasing a user is in every service; each adds how its own data is removed.

An intent is logged in a file before anything is removed. The record is kept in the transaction that removes the data.
An intent without a record is carried out at the next start: the erasure was interrupted, or the database restored.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_erased
from phylactery_chassis.erasure.erasures import ErasureRecord, may_see, not_found, subject_hash, unfinished
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id

Record = TypeVar("Record", bound=ErasureRecord[Any])


class ErasureTable(Generic[Record]):
    """The records of a database, in a table with columns for some of their fields and one for the record as JSON.

    Every method raises Unavailable STORE_UNAVAILABLE if the database fails.
    """

    def __init__(self, database: Database, table: sa.Table, record: type[Record]) -> None:
        self._database, self._erasures, self._record = database, table, record

    async def find(self, request_hash: str) -> Record | None:
        """Return the erasure of a request."""
        condition = self._erasures.c.request_hash == request_hash
        return await self._database.read(lambda connection: self._first(connection, condition))

    async def get(self, erasure_id: str) -> Record | None:
        """Return an erasure by its id."""
        return await self._database.read(lambda connection: self.carried_out(connection, erasure_id))

    async def known(self) -> frozenset[str]:
        """Return the ids of the erasures carried out in this database."""
        ids = sa.select(self._erasures.c.erasure_id)
        return await self._database.read(lambda connection: frozenset(connection.scalars(ids)), one=True)

    async def scrub_removed(self) -> None:
        """Remove deleted rows from SQLite's files. Raise Unavailable while a reader holds the log."""
        await forget_erased(self._database)

    def carried_out(self, connection: Connection, erasure_id: str) -> Record | None:
        """Return the record of an erasure, None if it was not carried out."""
        return self._first(connection, self._erasures.c.erasure_id == erasure_id)

    def keep(self, connection: Connection, erasure: Record) -> None:
        """Store a record. Raise IntegrityError if there is one of that erasure."""
        values = {name: getattr(erasure, name) for name in self._erasures.c.keys() if name != "record"}  # noqa: SIM118 - a collection of columns
        connection.execute(sa.insert(self._erasures).values(record=erasure.to_json(), **values))

    def _first(self, connection: Connection, condition: sa.ColumnElement[bool]) -> Record | None:
        record = connection.execute(sa.select(self._erasures.c.record).where(condition)).scalars().first()
        return None if record is None else self._record.from_json(record)


@dataclass(eq=False)
class Erasures(Generic[Record]):
    """The steps that are the same in every service."""

    store: ErasureTable[Record]
    log: ErasureLog[Record]
    clock: Clock

    async def get(self, caller: Principal, erasure_id: str) -> Record:
        """Return an erasure of the caller, or of their tenant for an operator.

        Raise PermissionDenied, NotFound ERASURE_NOT_FOUND, Unavailable.
        """
        caller.require(Role.CALLER)
        erasure = await self.store.get(erasure_id)
        if erasure is None or not may_see(caller, erasure):
            raise not_found(erasure_id)
        return erasure

    async def missing(self) -> list[Record]:
        """Return the logged erasures not carried out in this database, the oldest first. Raise StartError."""
        written = await asyncio.to_thread(self.log.read)  # before known(), which then includes replicas' work
        return unfinished(written, await self.store.known())

    async def begin(self, user: Principal, request_hash: str, *, by_operator: bool) -> Record:
        """Return the intent to erase a user, once it is in the log. Raise Unavailable."""
        kind = self.log.record
        intent = kind(
            erasure_id=new_id("era"),
            subject_hash=subject_hash(self.log.salt, user.tenant, user.subject),
            salt=self.log.salt,
            tenant=user.tenant,
            requested_by_operator=by_operator,
            request_us=self.clock.now_us(),
            request_hash=request_hash,
            counts=kind.counts_of({}),
        )
        await asyncio.to_thread(self.log.append, intent)
        return intent

    def completed(self, intent: Record, counts: Any) -> Record:
        """Return the record of an intent that was carried out now."""
        return replace(intent, counts=counts, erase_us=self.clock.now_us())
