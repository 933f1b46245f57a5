"""The outward log: one gap-free sequence per thread, every event stored before it is sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.statements import Query, RowInsert, Update
from sqlalchemy.engine import Connection, Row

from phylactery_agent.ports import LeaseLostError, Told
from phylactery_agent.runtime.model import Lease, StoredEvent, ThreadTail
from phylactery_agent.runtime.schema import EVENTS, THREADS
from phylactery_agent.runtime.writes import TurnWrites

_PAGE = 50
_PAGE_CHARACTERS = 64 * 1024
"""How much is read at once: whoever reads a stream slowly, or not at all, has this held for them, or one event."""
_NEVER_STORED = frozenset({"code", "arguments"})
"""Fields of approval_required that are fetched when the event is sent, and are in no store."""


_TOLD = Query(
    sa.select(EVENTS.c.sequence).where(
        EVENTS.c.run_id == sa.bindparam("run_id"),
        EVENTS.c.turn_id == sa.bindparam("turn_id"),
        EVENTS.c.once == sa.bindparam("once"),
    )
)
_THREAD = THREADS.c.thread_key == sa.bindparam("thread_key")
_COUNT = Update(
    sa.text(
        "UPDATE agent_threads SET last_sequence = last_sequence + 1, updated_us = :now_us"
        " WHERE thread_key = :thread_key"
    )
)
_COUNTED = Query(sa.select(THREADS.c.last_sequence).where(_THREAD))
_ADD = RowInsert(
    EVENTS,
    "thread_key",
    "thread_id",
    "sequence",
    "run_id",
    "turn_id",
    "once",
    "kind",
    "payload",
    "created_us",
)


def append_event(
    connection: Connection, lease: Lease, kind: str, payload: Mapping[str, Any], *, once: str, now_us: int
) -> int:
    """Stores an event and answers its sequence; one that is already there (run, turn, once) keeps its own."""
    there = _TOLD.one(connection, {"run_id": lease.run_id, "turn_id": lease.turn_id, "once": once})
    if there is not None:
        return int(there[0])
    _COUNT.run(connection, {"thread_key": lease.thread_key, "now_us": now_us})
    counted = _COUNTED.one(connection, {"thread_key": lease.thread_key})
    if counted is None:
        raise LeaseLostError(f"the thread of run {lease.run_id} was erased")
    sequence = int(counted[0])
    kept = {name: value for name, value in payload.items() if name not in _NEVER_STORED}
    shown = json.dumps(kept if kind == "approval_required" else dict(payload))
    place = (lease.thread_key, lease.thread_id, sequence, lease.run_id, lease.turn_id)
    _ADD.run(connection, [(*place, once, kind, shown, now_us)])
    return sequence


class ThreadEvents:
    """ports.Events for one turn, under its lease."""

    def __init__(self, writes: TurnWrites) -> None:
        self._writes = writes

    async def emit(self, *told: Told) -> None:
        """Stores each event once, in order and in one commit, with the turn's next write; see runtime.writes."""
        lease = self._writes.lease

        def work(connection: Connection, now: int) -> None:
            for event in told:
                append_event(connection, lease, event.kind, event.payload, once=event.key, now_us=now)

        self._writes.hold(work)


class EventLog:
    """Reads what was stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_turn(self, turn_id: str, *, after: int = 0) -> Sequence[StoredEvent]:
        """Answers a turn's events past a sequence, in order, a bounded page of them."""
        of_it = EVENTS.c.turn_id == turn_id
        return await self._database.read_quickly(lambda connection: _page(connection, of_it, after))

    async def of_thread(self, thread_key: str, *, after: int) -> ThreadTail | None:
        """Answers a thread's events past a sequence, a bounded page of them; None where there is no such thread."""

        def work(connection: Connection) -> ThreadTail | None:
            thread = connection.execute(sa.select(THREADS).where(THREADS.c.thread_key == thread_key)).one_or_none()
            if thread is None:
                return None
            events = _page(connection, EVENTS.c.thread_key == thread_key, after)
            return ThreadTail(thread.created_us, thread.first_sequence, thread.last_sequence, events)

        return await self._database.read(work)

    async def newest(self, run_id: str, kind: str) -> StoredEvent | None:
        """Answers a run's newest event of a kind."""

        def work(connection: Connection) -> StoredEvent | None:
            row = connection.execute(
                sa.select(EVENTS)
                .where(EVENTS.c.run_id == run_id, EVENTS.c.kind == kind)
                .order_by(EVENTS.c.sequence.desc())
                .limit(1)
            ).one_or_none()
            return None if row is None else _event(row)

        return await self._database.read(work)


def _page(connection: Connection, which: sa.ColumnElement[bool], after: int) -> Sequence[StoredEvent]:
    """Answers the next events, in order: some, or what is little enough of them, and one in any case."""
    query = sa.select(EVENTS).where(which, EVENTS.c.sequence > after).order_by(EVENTS.c.sequence).limit(_PAGE)
    events: list[StoredEvent] = []
    left = _PAGE_CHARACTERS
    with connection.execute(query) as rows:
        for row in rows:
            left -= len(row.payload)
            if events and left < 0:
                break
            events.append(_event(row))
    return events


def _event(row: Row[Any]) -> StoredEvent:
    return StoredEvent(
        thread_id=row.thread_id,
        run_id=row.run_id,
        turn_id=row.turn_id,
        sequence=row.sequence,
        kind=row.kind,
        payload=json.loads(row.payload),
        created_us=row.created_us,
    )
