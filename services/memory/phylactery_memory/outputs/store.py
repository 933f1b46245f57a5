"""Outputs and their chunks in SQL. Every query names tenant and subject, so no caller reaches another's row."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log
from phylactery_chassis.errors import STORE_FAILED, Aborted, AlreadyExists, ResourceExhausted, Unavailable
from phylactery_chassis.util import crashpoints
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.keys import store as key_rows
from phylactery_memory.outputs.model import OutputRecord
from phylactery_memory.outputs.objects import OutputObjects
from phylactery_memory.outputs.rows import SealedOutput, chunk_of, delete, own, put, sealed_of
from phylactery_memory.outputs.sealing import SealedChunk
from phylactery_memory.tables import output_chunks, output_objects, outputs


@dataclass(frozen=True, slots=True)
class Page:
    """The outputs to list: those before a position, None for the newest; empty ids match any."""

    thread_id: str
    run_id: str
    size: int
    before: tuple[int, str] | None = None


class OutputStore:
    """The outputs of their owners. Every method raises Unavailable STORE_UNAVAILABLE if the database fails.

    Methods that return chunks also raise it if the object store fails, and DataLoss OUTPUT_CORRUPT if an object is
    lost.
    """

    def __init__(self, database: Database, objects: OutputObjects | None = None) -> None:
        """``objects`` stores new texts; None keeps them in the database."""
        self._database = database
        self._objects = objects

    async def put(
        self, owner: Principal, output: SealedOutput, chunks: Sequence[SealedChunk], quota_bytes: int
    ) -> SealedOutput:
        """Return the output once it is durable with all chunks, or the existing one with the same text.

        Raise AlreadyExists OUTPUT_CONFLICT if the run's tool_call_id has another text, Aborted OUTPUT_KEY_CHANGED if
        the owner's key has changed, ResourceExhausted OUTPUT_QUOTA or STORE_FULL.
        """
        if self._objects is None or not chunks:
            return await self._put(owner, output, chunks, quota_bytes)
        pointer, begun_us = output.record.pointer, self._objects.now_us()
        placed = await self._objects.put(pointer, chunks)
        crashpoints.reach("memory.output.object")
        try:
            kept = await self._put(owner, output, placed, quota_bytes, begun_us)
        except (Aborted, AlreadyExists, ResourceExhausted):
            await self._objects.discard(pointer)  # nothing was committed; after any other error that is unknown
            raise
        if kept.record.pointer != pointer:
            await self._objects.discard(pointer)
        return kept

    async def get(self, owner: Principal, pointer: str, now_us: int) -> SealedOutput | None:
        """Return the owner's output, unless it has expired."""
        return await self._database.read_quickly(lambda connection: _get(connection, owner, pointer, now_us))

    async def range(
        self, owner: Principal, pointer: str, now_us: int, offset: int, limit: int
    ) -> tuple[SealedOutput, Sequence[SealedChunk]] | None:
        """Return the owner's output with the chunks that hold the requested characters, in order."""

        def work(connection: Connection) -> tuple[SealedOutput, Sequence[SealedChunk]] | None:
            found = _get(connection, owner, pointer, now_us)
            return None if found is None else (found, _range(connection, found.record, offset, limit))

        found = await self._database.read(work)
        chunks = None if found is None else await self._filled(pointer, found[1])
        return None if found is None or chunks is None else (found[0], chunks)

    async def before_line(
        self, owner: Principal, pointer: str, now_us: int, line: int
    ) -> tuple[SealedOutput, SealedChunk | None] | None:
        """Return the owner's output with the chunk that holds the line feed before a line, None for the first line."""

        def work(connection: Connection) -> tuple[SealedOutput, SealedChunk | None] | None:
            found = _get(connection, owner, pointer, now_us)
            return None if found is None else (found, _before_line(connection, pointer, line))

        found = await self._database.read(work)
        if found is None or found[1] is None:
            return found
        chunks = await self._filled(pointer, [found[1]])
        return None if chunks is None else (found[0], chunks[0])

    async def chunks_from(self, pointer: str, first_char: int, count: int) -> Sequence[SealedChunk]:
        """Return ``count`` chunks of an output from the one with first_char; none if it has been removed.

        The caller must have checked the owner.
        """
        chunks = await self._database.read(
            lambda connection: _select(
                connection, pointer, output_chunks.c.first_char >= _holding(pointer, first_char), count
            )
        )
        return await self._filled(pointer, chunks) or ()

    async def page(self, owner: Principal, now_us: int, page: Page) -> Sequence[SealedOutput]:
        """Return the owner's unexpired outputs, newest first."""

        def work(connection: Connection) -> Sequence[SealedOutput]:
            key = key_rows.find(connection, owner)
            query = sa.select(outputs).where(*own(owner), outputs.c.expire_us > now_us)
            if page.thread_id:
                query = query.where(outputs.c.thread_id == page.thread_id)
            if page.run_id:
                query = query.where(outputs.c.run_id == page.run_id)
            if page.before is not None:
                create_us, pointer = page.before
                query = query.where(
                    sa.or_(
                        outputs.c.create_us < create_us,
                        sa.and_(outputs.c.create_us == create_us, outputs.c.pointer < pointer),
                    )
                )
            query = query.order_by(outputs.c.create_us.desc(), outputs.c.pointer.desc()).limit(page.size)
            return [sealed_of(row, key) for row in connection.execute(query)]

        return await self._database.read(work)

    async def delete(self, owner: Principal, pointer: str) -> bool:
        """Remove the owner's output, also from the log, and return True if it existed.

        Its object is removed now, or once the object store is available again.
        """
        which = outputs.c.pointer == pointer, *own(owner)
        deleted = await self._database.write(lambda connection: delete(connection, *which) > 0)
        if deleted:
            if self._objects is not None:
                with contextlib.suppress(*STORE_FAILED):
                    await self._objects.remove_doomed(output_objects.c.pointer == pointer)
            await forget_log(self._database)
        return deleted

    async def _put(
        self,
        owner: Principal,
        output: SealedOutput,
        chunks: Sequence[SealedChunk],
        quota_bytes: int,
        begun_us: int | None = None,
    ) -> SealedOutput:
        def work(connection: Connection) -> SealedOutput:
            kept = put(connection, owner, output, chunks, quota_bytes)
            if self._objects is not None and begun_us is not None and kept is output:
                self._objects.refuse_late(begun_us)
            return kept

        try:
            return await self._database.write(work)
        except IntegrityError:
            # Another replica stored the same call between our read and our insert: its row is visible now.
            return await self._database.write(work)

    async def _filled(self, pointer: str, chunks: Sequence[SealedChunk]) -> Sequence[SealedChunk] | None:
        """Return the chunks with their bodies, from wherever they are; None if the output has been removed."""
        if all(chunk.span is None for chunk in chunks):
            return chunks
        if self._objects is None:
            raise Unavailable("STORE_UNAVAILABLE", "the text is in an object store; set MEMORY_OBJECT_STORE_URL")
        return await self._objects.fill(pointer, chunks)


def _get(connection: Connection, owner: Principal, pointer: str, now_us: int) -> SealedOutput | None:
    asked = {"pointer": pointer, "tenant": owner.tenant, "subject": owner.subject, "now_us": now_us}
    row = connection.execute(_THE_OUTPUT, asked).first()
    return None if row is None else sealed_of(row, key_rows.find(connection, owner))


def _holding(pointer: str | sa.BindParameter[str], char: int | sa.BindParameter[int]) -> sa.ScalarSelect[int]:
    """Return the first character of the chunk that holds a character."""
    return (
        sa.select(sa.func.max(output_chunks.c.first_char))
        .where(output_chunks.c.pointer == pointer, output_chunks.c.first_char <= char)
        .scalar_subquery()
    )


def _range(connection: Connection, record: OutputRecord, offset: int, limit: int) -> Sequence[SealedChunk]:
    end = min(offset + limit, record.size_chars)
    if offset >= end:
        return ()
    asked = {"pointer": record.pointer, "offset": offset, "end": end}
    return [chunk_of(row) for row in connection.execute(_THE_RANGE, asked)]


def _before_line(connection: Connection, pointer: str, line: int) -> SealedChunk | None:
    before = output_chunks.c.first_break
    found = _select(connection, pointer, sa.and_(before <= line - 2, before + output_chunks.c.breaks > line - 2), 1)
    return found[0] if found else None


def _select(
    connection: Connection, pointer: str, which: sa.ColumnElement[bool], count: int | None
) -> Sequence[SealedChunk]:
    rows = connection.execute(
        sa.select(output_chunks)
        .where(output_chunks.c.pointer == pointer, which)
        .order_by(output_chunks.c.first_char)
        .limit(count)
    )
    return [chunk_of(row) for row in rows]


# The statements of every read are built once, because building one takes longer than running it.
_THE_OUTPUT = sa.select(outputs).where(
    outputs.c.pointer == sa.bindparam("pointer"),
    outputs.c.tenant == sa.bindparam("tenant"),
    outputs.c.subject == sa.bindparam("subject"),
    outputs.c.expire_us > sa.bindparam("now_us"),
)
_THE_RANGE = (
    sa.select(output_chunks)
    .where(
        output_chunks.c.pointer == sa.bindparam("pointer"),
        output_chunks.c.first_char >= _holding(sa.bindparam("pointer"), sa.bindparam("offset")),
        output_chunks.c.first_char < sa.bindparam("end"),
    )
    .order_by(output_chunks.c.first_char)
)
