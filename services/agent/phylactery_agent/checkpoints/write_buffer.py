"""Write buffer for the checkpoints of one transaction, written together at its end.

Without it, each job of many concurrent threads would send its own statements and wait for each answer of a possibly
remote server. Gathered, all of them need only a few statements, and no job needs a savepoint: a failing job removes its
own rows, and if the statements fail each job runs once more, alone.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.pending_statements import run_each
from phylactery_chassis.db.statements import ManyInsert
from phylactery_chassis.db.unit import ConflictError, Unit, unit_of
from sqlalchemy.engine import Connection

from phylactery_agent.checkpoints.tables import BLOBS, CHECKPOINTS, WRITES

_HEAD_COLUMNS: Final = ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_id", "run_id", "body", "metadata")
_AGAIN: Final = (
    "ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id) DO UPDATE"
    " SET parent_id = excluded.parent_id, run_id = excluded.run_id, body = excluded.body, metadata = excluded.metadata"
)
_NEXT: Final = (
    "(SELECT coalesce(max(sequence), 0) + 1 FROM agent_checkpoints"
    " WHERE thread_id = {thread} AND checkpoint_ns = {namespace})"
)
_PUT_HEADS: Final = ManyInsert(
    CHECKPOINTS,
    *_HEAD_COLUMNS,
    otherwise=_AGAIN,
    found={"sequence": _NEXT.format(thread="given.thread_id", namespace="given.checkpoint_ns")},
)
# PostgreSQL needs an explicit type for a parameter used in two places.
_PLACE: Final = {"thread": "CAST({m} AS VARCHAR)", "namespace": "CAST({m} AS VARCHAR)"}
_PUT_HEAD: Final = (
    f"INSERT INTO {CHECKPOINTS.name} ({', '.join(_HEAD_COLUMNS)}, sequence)"  # noqa: S608 - names of our own
    f" VALUES ({_PLACE['thread']}, {_PLACE['namespace']}, {{m}}, {{m}}, {{m}}, {{m}}, {{m}}, {_NEXT.format(**_PLACE)})"
    f" {_AGAIN}"
)
_PUT_HEAD_BY_MARK: Final = {mark: _PUT_HEAD.format(m=mark) for mark in ("?", "%s")}
PUT_BLOBS: Final = ManyInsert(
    BLOBS, "thread_id", "checkpoint_ns", "channel", "version", "body", otherwise="ON CONFLICT DO NOTHING"
)
WRITE_COLUMNS: Final = (
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "task_id",
    "position",
    "task_path",
    "channel",
    "body",
)
ADD_WRITES: Final = ManyInsert(WRITES, *WRITE_COLUMNS, otherwise="ON CONFLICT DO NOTHING")

Head = tuple[str, str, str, str, str, bytes, bytes]
"""A checkpoint: thread, namespace, id, parent id, run, body and metadata."""
Blob = tuple[str, str, str, str, bytes]
"""A value: thread, namespace, channel, version and body."""


@dataclass(slots=True)
class Gathered:
    """The unit of work's Part for the saver's rows."""

    heads: list[Head] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    writes: list[tuple[Any, ...]] = field(default_factory=list)

    def mark(self) -> tuple[int, int, int]:
        """Return the current position, for undo."""
        return len(self.heads), len(self.blobs), len(self.writes)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Discard what was added after the mark."""
        heads, blobs, writes = mark
        del self.heads[heads:], self.blobs[blobs:], self.writes[writes:]

    def flush(self, connection: Connection) -> None:
        """Write all rows. Raise IntegrityError if another process wrote to one of the threads first."""
        PUT_BLOBS.later(connection, self.blobs)
        put_heads(connection, self.heads)
        ADD_WRITES.later(connection, self.writes)

    def settle(self, *, committed: bool) -> None:
        """Do nothing, because no state outlives the transaction."""

    def holds(self, thread_ids: Collection[str] | None) -> bool:
        """Return True if unwritten rows of these threads, or of any thread, exist."""
        rows = (*self.heads, *self.writes)
        return any(thread_ids is None or row[0] in thread_ids for row in rows)


def gathered(connection: Connection) -> Gathered | None:
    """Return the transaction's write buffer, or None if rows are written at once."""
    unit: Unit | None = unit_of(connection)
    return None if unit is None or unit.alone else unit.part(Gathered, Gathered)


def require_written(connection: Connection, thread_ids: Collection[str] | None) -> None:
    """Ensure that a read or delete sees all rows of these threads, or of all threads for None.

    Raise ConflictError if rows are still buffered: each job of the transaction then runs alone.
    """
    unit = unit_of(connection)
    waiting: Gathered | None = None if unit is None else unit.find(Gathered)
    if waiting is not None and waiting.holds(thread_ids):
        raise ConflictError


def put_heads(connection: Connection, heads: list[Head]) -> None:
    """Store checkpoints, each as the newest of its line; the same id again replaces the stored one."""
    if not dialect_of(connection).is_server:
        _put_each(connection, heads)
        return
    rest = heads
    while rest:
        lines: set[tuple[str, str]] = set()
        now: list[Head] = []
        later: list[Head] = []
        for head in rest:
            # A statement does not see its own rows, so each statement can assign the next sequence to one row per line
            # only.
            (later if head[:2] in lines else now).append(head)
            lines.add(head[:2])
        if len(now) == 1:
            _put_each(connection, now)
        else:
            _PUT_HEADS.later(connection, now)
        rest = later


def _put_each(connection: Connection, heads: list[Head]) -> None:
    unit = unit_of(connection)
    if unit is not None and heads:
        unit.protect()
    mark = dialect_of(connection).mark
    run_each(connection, _PUT_HEAD_BY_MARK[mark], [(*head, *head[:2]) for head in heads])
