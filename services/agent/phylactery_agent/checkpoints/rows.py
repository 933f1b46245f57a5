"""SQL statements of the saver, executed on the driver's own cursor and identical for both stores."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.pending_statements import run_text
from phylactery_chassis.db.statements import Query, RowInsert, Update
from sqlalchemy.engine import Connection

from phylactery_agent.checkpoints.tables import BLOBS, CHECKPOINTS, TABLES, WRITES
from phylactery_agent.checkpoints.write_buffer import (
    ADD_WRITES,
    PUT_BLOBS,
    WRITE_COLUMNS,
    gathered,
    put_heads,
    require_written,
)

NEWEST: Final = 2**62
"""A sequence above that of any checkpoint."""
_PAGE = 100


@dataclass(frozen=True, slots=True)
class Place:
    """A line of checkpoints: a thread, and a namespace within it, empty for the main graph."""

    thread_id: str
    namespace: str

    @property
    def values(self) -> dict[str, str]:
        """Return both as statement parameters."""
        return {"thread_id": self.thread_id, "checkpoint_ns": self.namespace}


@dataclass(frozen=True, slots=True)
class Row:
    """One stored checkpoint; parent_id is empty if it has none."""

    place: Place
    sequence: int
    checkpoint_id: str
    parent_id: str
    run_id: str
    body: bytes
    metadata: bytes


@dataclass(frozen=True, slots=True)
class Write:
    """One value a task wrote to a channel, not yet part of a checkpoint."""

    task_id: str
    position: int
    task_path: str
    channel: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """A filter for listing checkpoints: None means all; ``before`` is a sequence."""

    thread_id: str | None
    namespace: str | None
    checkpoint_id: str | None
    before: int


_HERE = sa.and_(
    CHECKPOINTS.c.thread_id == sa.bindparam("thread_id"), CHECKPOINTS.c.checkpoint_ns == sa.bindparam("checkpoint_ns")
)
_ONE = sa.select(CHECKPOINTS)
_BY_ID = Query(_ONE.where(_HERE, CHECKPOINTS.c.checkpoint_id == sa.bindparam("checkpoint_id")))
_HEAD = Query(_ONE.where(_HERE).order_by(CHECKPOINTS.c.sequence.desc()).limit(1))
_SET_WRITES = RowInsert(
    WRITES,
    *WRITE_COLUMNS,
    otherwise="ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, position) DO UPDATE SET"
    " task_path = excluded.task_path, channel = excluded.channel, body = excluded.body",
)
_WRITES_OF = Query(
    sa.select(WRITES.c.task_id, WRITES.c.position, WRITES.c.task_path, WRITES.c.channel, WRITES.c.body)
    .where(
        WRITES.c.thread_id == sa.bindparam("thread_id"),
        WRITES.c.checkpoint_ns == sa.bindparam("checkpoint_ns"),
        WRITES.c.checkpoint_id == sa.bindparam("checkpoint_id"),
    )
    .order_by(WRITES.c.task_path, WRITES.c.task_id, WRITES.c.position)
)
_DROP_THREAD = [Update(sa.delete(table).where(table.c.thread_id == sa.bindparam("of_thread"))) for table in TABLES]


def _row(found: Sequence[Any]) -> Row:
    thread_id, namespace, sequence, checkpoint_id, parent_id, run_id, body, metadata = found
    return Row(Place(thread_id, namespace), sequence, checkpoint_id, parent_id, run_id, bytes(body), bytes(metadata))


def find(connection: Connection, place: Place, checkpoint_id: str) -> Row | None:
    """Return one checkpoint of a line, or the newest for an empty id."""
    require_written(connection, {place.thread_id})
    if checkpoint_id:
        found = _BY_ID.one(connection, place.values | {"checkpoint_id": checkpoint_id})
    else:
        found = _HEAD.one(connection, place.values)
    return None if found is None else _row(found)


def put(connection: Connection, row: Row, blobs: Mapping[tuple[str, str], bytes]) -> None:
    """Store a checkpoint as the newest of its line, with its new values; the row's own sequence is ignored.

    The same id again replaces the stored checkpoint and keeps its position.
    """
    line = (row.place.thread_id, row.place.namespace)
    head = (*line, row.checkpoint_id, row.parent_id, row.run_id, row.body, row.metadata)
    values = [(*line, channel, version, body) for (channel, version), body in blobs.items()]
    waiting = gathered(connection)
    if waiting is None:
        PUT_BLOBS.later(connection, values)
        put_heads(connection, [head])
        return
    waiting.blobs += values
    waiting.heads.append(head)


def put_writes(
    connection: Connection, place: Place, checkpoint_id: str, writes: Sequence[Write], *, replace: bool
) -> None:
    """Store a task's writes. Existing ones are kept, or replaced with replace."""
    head = (place.thread_id, place.namespace, checkpoint_id)
    values = [(*head, one.task_id, one.position, one.task_path, one.channel, one.body) for one in writes]
    if replace:
        require_written(connection, {place.thread_id})
        _SET_WRITES.run(connection, values)
    elif (waiting := gathered(connection)) is not None:
        waiting.writes += values
    else:
        ADD_WRITES.later(connection, values)


def writes_of(connection: Connection, place: Place, checkpoint_id: str) -> list[Write]:
    """Return the writes on top of a checkpoint, in the order LangGraph applies them."""
    require_written(connection, {place.thread_id})
    found = _WRITES_OF.all(connection, place.values | {"checkpoint_id": checkpoint_id})
    return [Write(task, position, path, channel, bytes(body)) for task, position, path, channel, body in found]


def blobs_of(connection: Connection, place: Place, wanted: Mapping[str, str]) -> dict[str, bytes]:
    """Return the values of channels at the given versions, as far as they are stored."""
    pairs = list(wanted.items())
    mark = dialect_of(connection).mark
    found: dict[str, bytes] = {}
    for at in range(0, len(pairs), _PAGE):
        some = pairs[at : at + _PAGE]
        keys = " OR ".join([f"(channel = {mark} AND version = {mark})"] * len(some))
        text = (
            "SELECT channel, body FROM agent_checkpoint_blobs"  # noqa: S608 - marks alone
            f" WHERE thread_id = {mark} AND checkpoint_ns = {mark} AND ({keys})"
        )
        values = [place.thread_id, place.namespace, *(part for pair in some for part in pair)]
        cursor = run_text(connection, text, values)
        found |= {channel: bytes(body) for channel, body in cursor.fetchall()}
        cursor.close()
    return found


def page(connection: Connection, listing: Listing, after: Row | None, limit: int) -> list[Row]:
    """Return checkpoints, newest first within their line. ``after`` is the last one of the previous page."""
    require_written(connection, None)
    query = _ONE.where(CHECKPOINTS.c.sequence < listing.before)
    if after is not None:
        later = sa.tuple_(-CHECKPOINTS.c.sequence, CHECKPOINTS.c.thread_id, CHECKPOINTS.c.checkpoint_ns)
        query = query.where(later > sa.tuple_(-after.sequence, after.place.thread_id, after.place.namespace))
    for column, name in (
        (CHECKPOINTS.c.thread_id, listing.thread_id),
        (CHECKPOINTS.c.checkpoint_ns, listing.namespace),
        (CHECKPOINTS.c.checkpoint_id, listing.checkpoint_id),
    ):
        query = query if name is None else query.where(column == name)
    order = (CHECKPOINTS.c.sequence.desc(), CHECKPOINTS.c.thread_id, CHECKPOINTS.c.checkpoint_ns)
    return [_row(found) for found in connection.execute(query.order_by(*order).limit(limit))]


def delete_thread(connection: Connection, thread_id: str) -> int:
    """Delete everything of a thread and return the number of its checkpoints."""
    require_written(connection, {thread_id})
    counts = [drop.run(connection, {"of_thread": thread_id}) for drop in _DROP_THREAD]
    return int(counts[TABLES.index(CHECKPOINTS)])


def forget_thread(connection: Connection, thread_id: str) -> None:
    """Delete everything of a thread without counting."""
    require_written(connection, {thread_id})
    for drop in _DROP_THREAD:
        drop.later(connection, {"of_thread": thread_id})


def delete_runs(connection: Connection, run_ids: Sequence[str]) -> None:
    """Delete the checkpoints of runs with the writes on top of them; their values are deleted with the thread."""
    require_written(connection, None)
    query = sa.select(CHECKPOINTS.c.thread_id, CHECKPOINTS.c.checkpoint_ns, CHECKPOINTS.c.checkpoint_id)
    gone = connection.execute(query.where(CHECKPOINTS.c.run_id.in_(run_ids), CHECKPOINTS.c.run_id != "")).all()
    for thread_id, namespace, checkpoint_id in gone:
        delete_one(connection, Place(thread_id, namespace), checkpoint_id)


def delete_one(connection: Connection, place: Place, checkpoint_id: str) -> None:
    """Delete one checkpoint with the writes on top of it; its values stay for other checkpoints."""
    for table in (CHECKPOINTS, WRITES):
        connection.execute(
            sa.delete(table).where(
                table.c.thread_id == place.thread_id,
                table.c.checkpoint_ns == place.namespace,
                table.c.checkpoint_id == checkpoint_id,
            )
        )


def lines_of(connection: Connection, thread_ids: Collection[str]) -> list[Place]:
    """Return every line of the given threads."""
    require_written(connection, thread_ids)
    query = (
        sa.select(CHECKPOINTS.c.thread_id, CHECKPOINTS.c.checkpoint_ns)
        .where(CHECKPOINTS.c.thread_id.in_(list(thread_ids)))
        .distinct()
    )
    return [Place(*found) for found in connection.execute(query)]


def keep_only(connection: Connection, place: Place, kept: Row, wanted: Mapping[str, str]) -> None:
    """Delete all checkpoints of a line except one, and all values it does not need."""
    require_written(connection, {place.thread_id})
    for table in (CHECKPOINTS, WRITES):
        connection.execute(
            sa.delete(table).where(
                table.c.thread_id == place.thread_id,
                table.c.checkpoint_ns == place.namespace,
                table.c.checkpoint_id != kept.checkpoint_id,
            )
        )
    needed = sa.tuple_(BLOBS.c.channel, BLOBS.c.version).in_(list(wanted.items()))
    connection.execute(
        sa.delete(BLOBS).where(
            BLOBS.c.thread_id == place.thread_id,
            BLOBS.c.checkpoint_ns == place.namespace,
            sa.true() if not wanted else sa.not_(needed),
        )
    )


def copy_thread(connection: Connection, source: str, target: str) -> None:
    """Copy everything of a thread under another name, in the same order."""
    require_written(connection, {source, target})
    for table in TABLES:
        others = [column for column in table.columns if column.name != "thread_id"]
        chosen = sa.select(sa.literal(target), *others).where(table.c.thread_id == source)
        connection.execute(sa.insert(table).from_select(["thread_id", *(one.name for one in others)], chosen))
