"""Sealed texts of outputs in a bucket: one object per output, and one row per object.

An object is put before the transaction that creates its output, and removed after the one that deletes it. Leftovers of
a crash in between are found again: a doomed row names an object still to be removed, and an object without a row is one
whose output was never created. An output whose upload took more than half the grace period is refused, because a sweep
may be over; so no object that an output needs is removed while clocks differ by less than half the grace period.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import STORE_FAILED, StartError, Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.outputs.bucket import Bucket, BucketRefused
from phylactery_memory.outputs.model import corrupt
from phylactery_memory.outputs.sealing import SealedChunk, Span
from phylactery_memory.tables import object_stores, output_objects, outputs

_MARK = "phylactery"
"""A marker object that claims the folder for the database. It is created before every other object."""
_AT_ONCE = 500
_POINTER = re.compile(r"out_[a-z2-7]{1,60}")
_log = get_logger("objects")


class OutputObjects:
    """Stores bodies in the database's exclusive folder of a bucket.

    Every method raises Unavailable STORE_UNAVAILABLE if the bucket or the database fails.
    """

    def __init__(self, database: Database, bucket: Bucket, clock: Clock, grace_us: int) -> None:
        """``grace_us`` is the age from which a sweep may remove an object without a row."""
        self._database, self._bucket, self._clock, self._grace_us = database, bucket, clock, grace_us
        self._opening: asyncio.Task[str] | None = None

    async def start(self) -> None:
        """Find the folder; if the store is unavailable, log it and retry when it is needed.

        Raise StartError if the bucket refuses this service, or is not the one that holds the database's objects.
        """
        try:
            await self._opened()
        except BucketRefused as error:
            raise StartError(error.message) from None
        except STORE_FAILED as error:
            _log.warning("outputs cannot be stored or read yet", why=error.message)

    def now_us(self) -> int:
        """Return the time before an object is put, for refuse_late."""
        return self._clock.now_us()

    def refuse_late(self, begun_us: int) -> None:
        """Raise Unavailable if an object was put so long ago that a sweep may have removed it.

        Call it inside the transaction that creates the output, after claim: from then on a sweep waits for that row.
        """
        if self._clock.now_us() - begun_us > self._grace_us // 2:
            raise _too_late()

    async def put(self, pointer: str, chunks: Sequence[SealedChunk]) -> Sequence[SealedChunk]:
        """Put the bodies into an output's object, durable on return; return the chunks without them."""
        await self._bucket.put(await self._name(pointer), [chunk.body for chunk in chunks])
        start, placed = 0, []
        for chunk in chunks:
            placed.append(replace(chunk, body=b"", span=Span(start, len(chunk.body))))
            start += len(chunk.body)
        return placed

    async def fill(self, pointer: str, chunks: Sequence[SealedChunk]) -> Sequence[SealedChunk] | None:
        """Return consecutive chunks with their bodies from the object; None if the output has been removed.

        Raise DataLoss OUTPUT_CORRUPT if the object is missing or too short.
        """
        spans = [chunk.span for chunk in chunks if chunk.span is not None]
        if not spans:
            return chunks
        start, size = spans[0].start, sum(span.size for span in spans)
        if (
            len(spans) != len(chunks)
            or start < 0
            or any(span.size < 1 for span in spans)
            or any(span.start + span.size != after.start for span, after in pairwise(spans))
        ):
            raise corrupt(pointer)
        body = await self._bucket.range(await self._name(pointer), start, size)
        if body is None or len(body) != size:
            if await self._gone(pointer):
                return None
            raise corrupt(pointer)
        return [
            replace(chunk, body=body[span.start - start : span.start - start + span.size])
            for chunk, span in zip(chunks, spans, strict=True)
        ]

    async def discard(self, pointer: str) -> None:
        """Remove the object of an output that was not created; if that fails, the next sweep removes it."""
        try:
            await self._bucket.delete([await self._name(pointer)])
        except Unavailable:
            _log.info("object kept until the next sweep")

    async def remove_doomed(self, *which: sa.ColumnElement[bool]) -> int:
        """Remove the objects of removed outputs, all or the selected ones, and return their number.

        None of them is left on return.
        """
        removed = 0
        wanted = sa.select(output_objects.c.pointer).where(output_objects.c.doomed, *which).limit(_AT_ONCE)
        while pointers := await self._database.read(lambda connection: connection.scalars(wanted).all()):
            await self._bucket.delete([await self._name(pointer) for pointer in pointers])
            await self._database.write(partial(_forget, pointers=pointers))
            removed += len(pointers)
        return removed

    async def doom_orphans(self, grace_us: int) -> int:
        """Doom objects without an output that are older than grace_us; return their number.

        This includes objects whose output was deleted by a tool that does not know about objects.
        """
        doomed = await self._database.write(_doom_widowed)
        before = datetime.fromtimestamp((self._clock.now_us() - grace_us) / MICROSECONDS, tz=UTC)
        folder = await self._opened()
        async for names in self._bucket.older(folder, before):
            found = {name.rpartition("/")[2] for name in names}
            pointers = {one for one in found if _POINTER.fullmatch(one)}  # skip the marker and foreign objects
            if pointers:
                doomed += await self._doom_unknown(pointers)
        return doomed

    async def _doom_unknown(self, pointers: Iterable[str]) -> int:
        known = sa.select(output_objects.c.pointer).where(output_objects.c.pointer.in_(sorted(pointers)))

        def work(connection: Connection) -> int:
            unknown = sorted(set(pointers) - set(connection.scalars(known)))
            for pointer in unknown:
                connection.execute(sa.insert(output_objects).values(pointer=pointer, doomed=True))
            return len(unknown)

        try:
            return await self._database.write(work)
        except IntegrityError:  # a concurrent change won: the next sweep handles it
            return 0

    async def _gone(self, pointer: str) -> bool:
        """Return True if a missing object's output is removed too. Raise Unavailable if the whole folder is lost."""
        alive = sa.select(output_objects.c.pointer).where(
            output_objects.c.pointer == pointer, output_objects.c.doomed.is_(False)
        )
        if await self._database.read(lambda connection: connection.execute(alive).first()) is None:
            return True
        if await self._bucket.size(await self._name(_MARK)) is None:
            raise _another_bucket()
        return False

    async def _name(self, pointer: str) -> str:
        return f"{await self._opened()}/{pointer}"

    async def _opened(self) -> str:
        """Return the folder. While unknown, all callers wait for one shared attempt; a failed one is retried later."""
        task = self._opening
        if task is None or (task.done() and (task.cancelled() or task.exception() is not None)):
            task = self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(task)

    async def _open(self) -> str:
        """Return the folder after creating or checking its marker."""
        folder, used = await self._own_folder()
        if await self._bucket.size(f"{folder}/{_MARK}") is None:
            if used:
                raise _another_bucket()
            await self._mark(folder)
        return folder

    async def _mark(self, folder: str) -> None:
        try:
            await self._bucket.put(f"{folder}/{_MARK}", [b""])
        except Unavailable:  # a replica that starts at the same time may have been first
            if await self._bucket.size(f"{folder}/{_MARK}") is None:
                raise

    async def _own_folder(self) -> tuple[str, bool]:
        """Return the database's folder, named now if it has none, and whether it has objects."""
        try:
            return await self._database.write(self._folder_row)
        except IntegrityError:  # a replica named it concurrently
            return await self._database.write(self._folder_row)

    def _folder_row(self, connection: Connection) -> tuple[str, bool]:
        used = connection.execute(sa.select(output_objects.c.pointer).limit(1)).first() is not None
        folder = connection.scalars(sa.select(object_stores.c.folder)).first()
        if folder is None:
            folder = new_id("mem")
            connection.execute(sa.insert(object_stores).values(slot=1, folder=folder, create_us=self._clock.now_us()))
        return folder, used


async def refuse_without_bucket(database: Database) -> None:
    """Raise StartError if outputs are in a bucket and none is configured."""
    some = sa.select(output_objects.c.pointer).limit(1)
    if await database.read(lambda connection: connection.execute(some).first()) is not None:
        raise StartError("the texts of some outputs are in an object store; set MEMORY_OBJECT_STORE_URL")


def _doom_widowed(connection: Connection) -> int:
    """Doom objects that have a row but no output: both rows were created in one transaction."""
    widowed = ~output_objects.c.doomed, ~sa.exists().where(outputs.c.pointer == output_objects.c.pointer)
    return connection.execute(sa.update(output_objects).where(*widowed).values(doomed=True)).rowcount


def _forget(connection: Connection, pointers: Sequence[str]) -> None:
    """Delete the rows of removed objects."""
    connection.execute(sa.delete(output_objects).where(output_objects.c.pointer.in_(pointers), output_objects.c.doomed))


def claim(connection: Connection, pointer: str) -> None:
    """Mark an object as needed. Raise Unavailable if it was given up as lost in the meantime."""
    if connection.execute(sa.select(output_objects).where(output_objects.c.pointer == pointer)).first() is not None:
        raise _too_late()
    connection.execute(sa.insert(output_objects).values(pointer=pointer, doomed=False))


def doom(connection: Connection, *which: sa.ColumnElement[bool]) -> None:
    """Doom the objects of the selected outputs, which still exist."""
    picked = sa.select(outputs.c.pointer).where(*which)
    key_id = sa.select(outputs.c.key_id).where(outputs.c.pointer == output_objects.c.pointer).scalar_subquery()
    connection.execute(
        sa.update(output_objects).where(output_objects.c.pointer.in_(picked)).values(doomed=True, key_id=key_id)
    )


def erase_doomed(connection: Connection, key_ids: Iterable[str], erasure_id: str) -> None:
    """Assign doomed objects whose texts were sealed under a user's keys to the erasure of that user."""
    theirs = output_objects.c.doomed, output_objects.c.key_id.in_(sorted(key_ids))
    connection.execute(sa.update(output_objects).where(*theirs).values(erasure_id=erasure_id))


def _too_late() -> Unavailable:
    return Unavailable("STORE_UNAVAILABLE", "storing the output took too long and nothing was stored; send it again")


def _another_bucket() -> BucketRefused:
    return BucketRefused(
        "STORE_UNAVAILABLE",
        "the database's outputs lie in another bucket or prefix than MEMORY_OBJECT_STORE_URL names; "
        "name that one, or copy the whole folder over",
    )
