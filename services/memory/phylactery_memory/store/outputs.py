"""Outputs and their chunks in SQL. Every query names tenant and subject, so no caller reaches another's row."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from phylactery_chassis import crashpoints
from phylactery_chassis.database import Database
from phylactery_chassis.errors import Aborted, AlreadyExists, ResourceExhausted, Unavailable
from phylactery_chassis.identity import Principal
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import IntegrityError

from phylactery_memory.domain.chunks import Place
from phylactery_memory.domain.outputs import OutputRecord, OutputSpec, over_quota
from phylactery_memory.domain.sealing import SealedChunk, Span
from phylactery_memory.store import keys as key_rows
from phylactery_memory.store.keys import UserKey
from phylactery_memory.store.log import forget_log
from phylactery_memory.store.output_objects import OutputObjects, claim, doom
from phylactery_memory.store.tables import output_chunks, outputs, user_keys

_NO_SPAN = Span(0, 0)


@dataclass(frozen=True, slots=True)
class SealedOutput:
    """A record with its seal, the id of the key it lies under (empty: older than sealing), and that key if it is."""

    record: OutputRecord
    seal: bytes
    key_id: str
    key: UserKey | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Which outputs to list: those before a position, None from the newest; empty ids mean any."""

    thread_id: str
    run_id: str
    size: int
    before: tuple[int, str] | None = None


class OutputStore:
    """Keeps outputs of their owners. Every method raises Unavailable STORE_UNAVAILABLE where the database fails.

    So does every method that answers chunks where the object store fails; DataLoss OUTPUT_CORRUPT is its lost object.
    """

    def __init__(self, database: Database, objects: OutputObjects | None = None) -> None:
        """Takes the database, and what keeps new texts; None keeps them in the database."""
        self._database = database
        self._objects = objects

    async def put(
        self, owner: Principal, output: SealedOutput, chunks: Sequence[SealedChunk], quota_bytes: int
    ) -> SealedOutput:
        """Answers the output once it is durable with all its chunks, or the one that stands with the same text.

        Raises AlreadyExists OUTPUT_CONFLICT where the tool_call_id of the run has another text, Aborted
        OUTPUT_KEY_CHANGED where the owner's key is another by now, ResourceExhausted OUTPUT_QUOTA or STORE_FULL.
        """
        if self._objects is None or not chunks:
            return await self._put(owner, output, chunks, quota_bytes)
        pointer = output.record.pointer
        placed = await self._objects.put(pointer, chunks)
        crashpoints.reach("memory.output.object")
        try:
            kept = await self._put(owner, output, placed, quota_bytes)
        except (Aborted, AlreadyExists, ResourceExhausted):
            await self._objects.discard(pointer)  # nothing was committed; after any other fault nobody knows that
            raise
        if kept.record.pointer != pointer:
            await self._objects.discard(pointer)
        return kept

    async def get(self, owner: Principal, pointer: str, now_us: int) -> SealedOutput | None:
        """Answers the owner's output, unless it has expired."""
        return await self._database.read(lambda connection: _get(connection, owner, pointer, now_us))

    async def range(
        self, owner: Principal, pointer: str, now_us: int, offset: int, limit: int
    ) -> tuple[SealedOutput, Sequence[SealedChunk]] | None:
        """Answers the owner's output with the chunks that hold the characters asked for, in order."""

        def work(connection: Connection) -> tuple[SealedOutput, Sequence[SealedChunk]] | None:
            found = _get(connection, owner, pointer, now_us)
            return None if found is None else (found, _range(connection, found.record, offset, limit))

        found = await self._database.read(work)
        chunks = None if found is None else await self._filled(pointer, found[1])
        return None if found is None or chunks is None else (found[0], chunks)

    async def before_line(
        self, owner: Principal, pointer: str, now_us: int, line: int
    ) -> tuple[SealedOutput, SealedChunk | None] | None:
        """Answers the owner's output with the chunk that holds the line feed before a line, None for the first."""

        def work(connection: Connection) -> tuple[SealedOutput, SealedChunk | None] | None:
            found = _get(connection, owner, pointer, now_us)
            return None if found is None else (found, _before_line(connection, pointer, line))

        found = await self._database.read(work)
        if found is None or found[1] is None:
            return found
        chunks = await self._filled(pointer, [found[1]])
        return None if chunks is None else (found[0], chunks[0])

    async def chunks_from(self, pointer: str, first_char: int, count: int) -> Sequence[SealedChunk]:
        """Answers count chunks of an output from the one that holds first_char; none where it is gone by now.

        The owner was checked before.
        """
        chunks = await self._database.read(
            lambda connection: _select(
                connection, pointer, output_chunks.c.first_char >= _holding(pointer, first_char), count
            )
        )
        return await self._filled(pointer, chunks) or ()

    async def page(self, owner: Principal, now_us: int, page: Page) -> Sequence[SealedOutput]:
        """Answers the owner's outputs that have not expired, newest first."""

        def work(connection: Connection) -> Sequence[SealedOutput]:
            key = key_rows.find(connection, owner)
            query = sa.select(outputs).where(*_own(owner), outputs.c.expire_us > now_us)
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
            return [_sealed(row, key) for row in connection.execute(query)]

        return await self._database.read(work)

    async def delete(self, owner: Principal, pointer: str) -> bool:
        """Removes the owner's output, from the log too, and answers whether it was there.

        Its object goes now, or as soon as the object store answers again.
        """
        which = outputs.c.pointer == pointer, *_own(owner)
        deleted = await self._database.write(lambda connection: delete(connection, *which) > 0)
        if deleted:
            if self._objects is not None:
                with contextlib.suppress(Unavailable):
                    await self._objects.remove_doomed()
            await forget_log(self._database)
        return deleted

    async def _put(
        self, owner: Principal, output: SealedOutput, chunks: Sequence[SealedChunk], quota_bytes: int
    ) -> SealedOutput:
        def work(connection: Connection) -> SealedOutput:
            return _put(connection, owner, output, chunks, quota_bytes)

        try:
            return await self._database.write(work)
        except IntegrityError:
            # Another replica stored the same call between our look and our insert: now its row can be seen.
            return await self._database.write(work)

    async def _filled(self, pointer: str, chunks: Sequence[SealedChunk]) -> Sequence[SealedChunk] | None:
        """Answers the chunks with their bodies, wherever those lie; None where the output is gone by now."""
        if all(chunk.span is None for chunk in chunks):
            return chunks
        if self._objects is None:
            raise Unavailable("STORE_UNAVAILABLE", "the text lies in an object store; set MEMORY_OBJECT_STORE_URL")
        return await self._objects.fill(pointer, chunks)


def delete(connection: Connection, *which: sa.ColumnElement[bool]) -> int:
    """Removes outputs with their chunks, gives their users the room back, and answers how many there were."""
    doom(connection, *which)
    gone = connection.execute(
        sa.delete(outputs)
        .where(*which)
        .returning(outputs.c.tenant, outputs.c.subject, outputs.c.size_bytes, outputs.c.stored)
    ).all()
    freed: dict[tuple[str, str], int] = {}
    for tenant, subject, size_bytes, stored in gone:
        freed[tenant, subject] = freed.get((tenant, subject), 0) + (size_bytes if stored else 0)
    for (tenant, subject), size_bytes in sorted(freed.items()):
        connection.execute(
            sa.update(user_keys)
            .where(user_keys.c.tenant == tenant, user_keys.c.subject == subject)
            .values(used_bytes=user_keys.c.used_bytes - size_bytes)
        )
    return len(gone)


def _put(
    connection: Connection,
    owner: Principal,
    output: SealedOutput,
    chunks: Sequence[SealedChunk],
    quota_bytes: int,
) -> SealedOutput:
    record = output.record
    standing = _standing(connection, owner, record)
    if standing is not None:
        return standing
    _take_room(connection, owner, output, quota_bytes)
    connection.execute(
        sa.insert(outputs).values(
            pointer=record.pointer,
            tenant=owner.tenant,
            subject=owner.subject,
            thread_id=record.spec.thread_id,
            run_id=record.spec.run_id,
            tool_call_id=record.spec.tool_call_id,
            tool_name=record.spec.tool_name,
            size_chars=record.size_chars,
            size_bytes=record.size_bytes,
            size_lines=record.size_lines,
            sha256=record.sha256,
            create_us=record.create_us,
            expire_us=record.expire_us,
            stored=record.stored,
            key_id=output.key_id,
            seal=output.seal,
        )
    )
    if any(chunk.span for chunk in chunks):
        claim(connection, record.pointer)
    if chunks:
        connection.execute(sa.insert(output_chunks), [_chunk_row(record.pointer, chunk) for chunk in chunks])
    return output


def _standing(connection: Connection, owner: Principal, record: OutputRecord) -> SealedOutput | None:
    """Answers the output the call has already, None where it has none or one that expired. Raises AlreadyExists."""
    call = outputs.c.run_id == record.spec.run_id, outputs.c.tool_call_id == record.spec.tool_call_id
    delete(connection, *_own(owner), *call, outputs.c.expire_us <= record.create_us)
    row = connection.execute(sa.select(outputs).where(*_own(owner), *call)).first()
    if row is None:
        return None
    if row.sha256 == record.sha256 and row.stored == record.stored:
        return _sealed(row, key_rows.find(connection, owner))
    raise AlreadyExists(
        "OUTPUT_CONFLICT",
        f"tool call '{record.spec.tool_call_id}' of run '{record.spec.run_id}' has another output already; "
        "a new output needs a new tool_call_id",
        metadata={"tool_call_id": record.spec.tool_call_id},
    )


def _take_room(connection: Connection, owner: Principal, output: SealedOutput, quota_bytes: int) -> None:
    """Counts an output against its owner's quota, under the key it was sealed with. Raises Aborted, ResourceExhausted.

    The row stays locked until the commit, so neither another replica nor an erasure comes between.
    """
    size = output.record.size_bytes if output.record.stored else 0
    own_key = *key_rows.own(owner), user_keys.c.key_id == output.key_id
    taken = connection.execute(
        sa.update(user_keys)
        .where(*own_key, user_keys.c.used_bytes <= quota_bytes - size)
        .values(used_bytes=user_keys.c.used_bytes + size)
    ).rowcount
    if taken:
        return
    if connection.execute(sa.select(user_keys.c.key_id).where(*own_key)).first() is not None:
        raise over_quota(quota_bytes)
    raise Aborted(
        "OUTPUT_KEY_CHANGED",
        "the user's data was erased while the output came in, so nothing was stored; send it again to keep it",
    )


def _get(connection: Connection, owner: Principal, pointer: str, now_us: int) -> SealedOutput | None:
    asked = {"pointer": pointer, "tenant": owner.tenant, "subject": owner.subject, "now_us": now_us}
    row = connection.execute(_THE_OUTPUT, asked).first()
    return None if row is None else _sealed(row, key_rows.find(connection, owner))


def _own(owner: Principal) -> tuple[sa.ColumnElement[bool], ...]:
    return outputs.c.tenant == owner.tenant, outputs.c.subject == owner.subject


def _holding(pointer: str | sa.BindParameter[str], char: int | sa.BindParameter[int]) -> sa.ScalarSelect[int]:
    """Answers where the chunk begins that holds a character."""
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
    return [_chunk(row) for row in connection.execute(_THE_RANGE, asked)]


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
    return [_chunk(row) for row in rows]


def _chunk(row: Row[Any]) -> SealedChunk:
    return SealedChunk(
        Place(row.first_char, row.chars, row.first_break, row.breaks, row.line_start),
        bytes(row.body),
        bytes(row.digest),
        Span(row.object_start, row.object_bytes) if row.object_bytes else None,
    )


def _chunk_row(pointer: str, chunk: SealedChunk) -> dict[str, object]:
    span, place = chunk.span or _NO_SPAN, chunk.place
    return {
        "pointer": pointer,
        "first_char": place.first_char,
        "chars": place.chars,
        "first_break": place.first_break,
        "breaks": place.breaks,
        "line_start": place.line_start,
        "body": chunk.body,
        "digest": chunk.digest,
        "object_start": span.start,
        "object_bytes": span.size,
    }


def _sealed(row: Row[tuple[object, ...]], key: UserKey | None) -> SealedOutput:
    columns = row._mapping  # noqa: SLF001 - the documented way to read a row by name
    record = OutputRecord(
        spec=OutputSpec(columns["thread_id"], columns["run_id"], columns["tool_call_id"], columns["tool_name"]),
        size_chars=columns["size_chars"],
        size_bytes=columns["size_bytes"],
        size_lines=columns["size_lines"],
        sha256=columns["sha256"],
        pointer=columns["pointer"],
        create_us=columns["create_us"],
        expire_us=columns["expire_us"],
        stored=columns["stored"],
    )
    return SealedOutput(record, bytes(columns["seal"] or b""), columns["key_id"], key)


# Every read runs these: built once, for building one takes longer than running it.
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
