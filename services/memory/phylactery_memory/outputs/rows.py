"""Rows of an output: inserted with its chunks and quota use in one transaction, deleted together, and decoded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.columns import Columns
from phylactery_chassis.errors import Aborted, AlreadyExists
from sqlalchemy.engine import Connection, Row

from phylactery_memory.keys import store as key_rows
from phylactery_memory.keys.store import UserKey
from phylactery_memory.outputs.chunks import Place
from phylactery_memory.outputs.model import OutputRecord, OutputSpec, over_quota
from phylactery_memory.outputs.objects import claim, doom
from phylactery_memory.outputs.sealing import SealedChunk, Span
from phylactery_memory.tables import output_chunks, outputs, user_keys

_NO_SPAN = Span(0, 0)
_SPEC, _RECORD = Columns(OutputSpec, outputs), Columns(OutputRecord, outputs, besides=("spec",))

# The statements of every call are built once, because building one takes longer than running it.
_OF_THE_CALL = sa.select(outputs).where(
    outputs.c.tenant == sa.bindparam("tenant"),
    outputs.c.subject == sa.bindparam("subject"),
    outputs.c.run_id == sa.bindparam("run_id"),
    outputs.c.tool_call_id == sa.bindparam("tool_call_id"),
)
_TAKE_ROOM = (
    sa.update(user_keys)
    .where(
        user_keys.c.tenant == sa.bindparam("its_tenant"),
        user_keys.c.subject == sa.bindparam("its_subject"),
        user_keys.c.key_id == sa.bindparam("its_key_id"),
        user_keys.c.used_bytes <= sa.bindparam("most"),
    )
    .values(used_bytes=user_keys.c.used_bytes + sa.bindparam("size"))
)
_NEW_OUTPUT, _NEW_CHUNK = sa.insert(outputs), sa.insert(output_chunks)


@dataclass(frozen=True, slots=True)
class SealedOutput:
    """A record with its seal, the id of its key (empty: from before sealing), and that key if it still exists."""

    record: OutputRecord
    seal: bytes
    key_id: str
    key: UserKey | None = None


def put(
    connection: Connection,
    owner: Principal,
    output: SealedOutput,
    chunks: Sequence[SealedChunk],
    quota_bytes: int,
) -> SealedOutput:
    """Insert an output's rows and return it, or the existing output of the same call with the same text.

    Raise AlreadyExists OUTPUT_CONFLICT, Aborted OUTPUT_KEY_CHANGED, ResourceExhausted OUTPUT_QUOTA.
    """
    record = output.record
    standing = _standing(connection, owner, record)
    if standing is not None:
        return standing
    _take_room(connection, owner, output, quota_bytes)
    connection.execute(_NEW_OUTPUT, _output_row(owner, output))
    if any(chunk.span for chunk in chunks):
        claim(connection, record.pointer)
    if chunks:
        connection.execute(_NEW_CHUNK, [_chunk_row(record.pointer, chunk) for chunk in chunks])
    return output


def delete(connection: Connection, *which: sa.ColumnElement[bool]) -> int:
    """Delete outputs with their chunks, release their quota, and return their number."""
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


def own(owner: Principal) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions that select the owner's outputs."""
    return outputs.c.tenant == owner.tenant, outputs.c.subject == owner.subject


def sealed_of(row: Row[Any], key: UserKey | None) -> SealedOutput:
    """Return the output of a row; key is its owner's."""
    record = _RECORD.read(row, spec=_SPEC.read(row))
    return SealedOutput(record, bytes(row.seal or b""), row.key_id, key)


def chunk_of(row: Row[Any]) -> SealedChunk:
    """Return the chunk of a row; its body is in the row or in the output's object."""
    return SealedChunk(
        Place(row.first_char, row.chars, row.first_break, row.breaks, row.line_start),
        bytes(row.body),
        bytes(row.digest),
        Span(row.object_start, row.object_bytes) if row.object_bytes else None,
    )


def _standing(connection: Connection, owner: Principal, record: OutputRecord) -> SealedOutput | None:
    """Return the call's existing output, None if it has none or it expired. Raise AlreadyExists."""
    call = {"run_id": record.spec.run_id, "tool_call_id": record.spec.tool_call_id}
    row = connection.execute(_OF_THE_CALL, {"tenant": owner.tenant, "subject": owner.subject, **call}).first()
    if row is None:
        return None
    if row.expire_us <= record.create_us:
        delete(connection, outputs.c.pointer == row.pointer)
        return None
    if row.sha256 == record.sha256 and row.stored == record.stored:
        return sealed_of(row, key_rows.find(connection, owner))
    raise AlreadyExists(
        "OUTPUT_CONFLICT",
        f"tool call '{record.spec.tool_call_id}' of run '{record.spec.run_id}' has another output already; "
        "a new output needs a new tool_call_id",
        metadata={"tool_call_id": record.spec.tool_call_id},
    )


def _take_room(connection: Connection, owner: Principal, output: SealedOutput, quota_bytes: int) -> None:
    """Count an output against its owner's quota, under its key. Raise Aborted, ResourceExhausted.

    The row stays locked until the commit, which excludes other replicas and erasures.
    """
    size = output.record.size_bytes if output.record.stored else 0
    its = {"its_tenant": owner.tenant, "its_subject": owner.subject, "its_key_id": output.key_id}
    if connection.execute(_TAKE_ROOM, {**its, "size": size, "most": quota_bytes - size}).rowcount:
        return
    own_key = *key_rows.own(owner), user_keys.c.key_id == output.key_id
    if connection.execute(sa.select(user_keys.c.key_id).where(*own_key)).first() is not None:
        raise over_quota(quota_bytes)
    raise Aborted(
        "OUTPUT_KEY_CHANGED",
        "the user's data was erased during the upload and nothing was stored; send it again to store it",
    )


def _output_row(owner: Principal, output: SealedOutput) -> dict[str, object]:
    record = output.record
    return {
        "tenant": owner.tenant,
        "subject": owner.subject,
        **_SPEC.named(record.spec),
        **_RECORD.named(record),
        "key_id": output.key_id,
        "seal": output.seal,
    }


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
