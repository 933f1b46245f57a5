"""Outputs and their chunks in SQL. Every query names tenant and subject, so no caller reaches another's row."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.errors import AlreadyExists
from phylactery_chassis.identity import Principal
from sqlalchemy.engine import Connection, Row
from sqlalchemy.exc import IntegrityError

from phylactery_memory.domain.outputs import Chunk, OutputRecord, OutputSpec
from phylactery_memory.store.tables import output_chunks, outputs


class OutputStore:
    """Keeps outputs of their owners. Every method raises Unavailable STORE_UNAVAILABLE where the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, owner: Principal, record: OutputRecord, chunks: Sequence[Chunk]) -> OutputRecord:
        """Answers the record once it is durable with all its chunks, or the one that stands with the same text.

        Raises AlreadyExists OUTPUT_CONFLICT where the tool_call_id of the run has another text.
        """
        try:
            return await self._database.write(lambda connection: _put(connection, owner, record, chunks))
        except IntegrityError:
            # Another replica stored the same call between our look and our insert: now its row can be seen.
            return await self._database.write(lambda connection: _put(connection, owner, record, chunks))

    async def get(self, owner: Principal, pointer: str) -> OutputRecord | None:
        """Answers the owner's output."""
        return await self._database.read(lambda connection: _get(connection, owner, pointer))

    async def read(
        self, owner: Principal, pointer: str, offset: int, limit: int
    ) -> tuple[OutputRecord, Sequence[Chunk]] | None:
        """Answers the owner's output with the chunks that hold the characters asked for, in order."""

        def work(connection: Connection) -> tuple[OutputRecord, Sequence[Chunk]] | None:
            record = _get(connection, owner, pointer)
            if record is None:
                return None
            return record, _chunks(connection, record, offset, limit)

        return await self._database.read(work)


def _put(connection: Connection, owner: Principal, record: OutputRecord, chunks: Sequence[Chunk]) -> OutputRecord:
    standing = connection.execute(
        sa.select(outputs).where(
            outputs.c.tenant == owner.tenant,
            outputs.c.subject == owner.subject,
            outputs.c.run_id == record.spec.run_id,
            outputs.c.tool_call_id == record.spec.tool_call_id,
        )
    ).first()
    if standing is not None:
        if standing.sha256 == record.sha256:
            return _record(standing)
        raise AlreadyExists(
            "OUTPUT_CONFLICT",
            f"tool call '{record.spec.tool_call_id}' of run '{record.spec.run_id}' has another output already; "
            "a new output needs a new tool_call_id",
            metadata={"tool_call_id": record.spec.tool_call_id},
        )
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
            sha256=record.sha256,
            create_us=record.create_us,
        )
    )
    connection.execute(
        sa.insert(output_chunks),
        [
            {
                "pointer": record.pointer,
                "first_char": chunk.first_char,
                "chars": chunk.chars,
                "digest": chunk.digest,
                "body": chunk.body,
            }
            for chunk in chunks
        ],
    )
    return record


def _get(connection: Connection, owner: Principal, pointer: str) -> OutputRecord | None:
    row = connection.execute(
        sa.select(outputs).where(
            outputs.c.pointer == pointer, outputs.c.tenant == owner.tenant, outputs.c.subject == owner.subject
        )
    ).first()
    return None if row is None else _record(row)


def _chunks(connection: Connection, record: OutputRecord, offset: int, limit: int) -> Sequence[Chunk]:
    end = min(offset + limit, record.size_chars)
    if offset >= end:
        return ()
    own = output_chunks.c.pointer == record.pointer
    first = (
        sa.select(sa.func.max(output_chunks.c.first_char))
        .where(own, output_chunks.c.first_char <= offset)
        .scalar_subquery()
    )
    rows = connection.execute(
        sa.select(output_chunks)
        .where(own, output_chunks.c.first_char >= first, output_chunks.c.first_char < end)
        .order_by(output_chunks.c.first_char)
    )
    return [Chunk(row.first_char, row.chars, bytes(row.body), bytes(row.digest)) for row in rows]


def _record(row: Row[tuple[object, ...]]) -> OutputRecord:
    columns = row._mapping  # noqa: SLF001 - the documented way to read a row by name
    return OutputRecord(
        OutputSpec(columns["thread_id"], columns["run_id"], columns["tool_call_id"], columns["tool_name"]),
        columns["size_chars"],
        columns["size_bytes"],
        columns["sha256"],
        columns["pointer"],
        columns["create_us"],
    )
