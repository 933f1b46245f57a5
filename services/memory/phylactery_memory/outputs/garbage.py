"""Garbage collection for all users: expired outputs, and chunks without an output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log
from sqlalchemy.engine import Connection

from phylactery_memory.outputs.objects import OutputObjects
from phylactery_memory.outputs.rows import delete
from phylactery_memory.tables import output_chunks, outputs

_AT_ONCE = 100
"""Outputs removed per transaction, so that no caller waits long behind it."""


class Garbage:
    """Removes unreachable data. Every method raises Unavailable STORE_UNAVAILABLE if a store fails."""

    def __init__(self, database: Database, objects: OutputObjects | None = None, grace_us: int = 0) -> None:
        """``grace_us`` is how long an object may wait for its output, in microseconds."""
        self._database = database
        self._objects, self._grace_us = objects, grace_us

    async def remove_expired(self, now_us: int) -> int:
        """Remove expired outputs and return their number; safe to run on several replicas at once."""
        some = sa.select(outputs.c.pointer).where(outputs.c.expire_us <= now_us).limit(_AT_ONCE)
        removed = 0
        while pointers := await self._database.read(lambda connection: connection.scalars(some).all()):
            removed += await self._database.write(partial(_remove, pointers=pointers, now_us=now_us))
        return removed

    async def remove_orphans(self) -> int:
        """Remove chunks without an output and return their number.

        The foreign key prevents them; a tool that changes the file without it may still leave some.
        """
        lost = ~sa.exists().where(outputs.c.pointer == output_chunks.c.pointer)
        if await self._database.read(
            lambda connection: connection.execute(sa.select(output_chunks.c.pointer).where(lost).limit(1)).first()
        ):
            return await self._database.write(
                lambda connection: connection.execute(sa.delete(output_chunks).where(lost)).rowcount
            )
        return 0

    async def remove_objects(self, *, sweep: bool) -> int:
        """Remove objects of removed outputs and return their number; a sweep also finds those without one."""
        if self._objects is None:
            return 0
        removed = await self._objects.remove_doomed()
        if sweep and await self._objects.doom_orphans(self._grace_us):
            removed += await self._objects.remove_doomed()
        return removed

    async def forget(self) -> None:
        """Remove deleted rows from SQLite's log too."""
        await forget_log(self._database)


def _remove(connection: Connection, pointers: Sequence[str], now_us: int) -> int:
    return delete(connection, outputs.c.pointer.in_(pointers), outputs.c.expire_us <= now_us)
