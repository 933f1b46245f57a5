"""The outward log: one gap-free sequence per thread, every event stored before it is sent."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Change, Query, RowInsert
from sqlalchemy.engine import Connection

from phylactery_agent.ports import LeaseLostError, Told
from phylactery_agent.runtime.storage.records import Lease, StoredEvent, ThreadTail
from phylactery_agent.runtime.storage.schema import EVENTS, THREADS
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites

_PAGE = 50
_PAGE_CHARACTERS = 64 * 1024
"""Maximum size of one page in characters, unless one event is longer: a slow reader keeps it in memory."""
_NEVER_STORED = frozenset({"code", "arguments", "why", "stakes"})
"""Fields of approval_required that are fetched when the event is sent and never stored."""
SPOKEN = frozenset({"message", "message_delta", "approval_required", "file"})
"""Events by which the agent says something. None is stored while a person has the thread."""
SILENT = 0
"""What append_event returns for an event that was not stored for that reason."""


_EVENT = Columns(StoredEvent, EVENTS, forms={"payload": Form(json.loads)})
_TOLD = Query(
    sa.select(EVENTS.c.sequence).where(
        EVENTS.c.run_id == sa.bindparam("run_id"),
        EVENTS.c.turn_id == sa.bindparam("turn_id"),
        EVENTS.c.once == sa.bindparam("once"),
    )
)
_COUNT = Change(
    sa.update(THREADS)
    .where(THREADS.c.thread_key == sa.bindparam("of_thread"))
    .values(last_sequence=THREADS.c.last_sequence + 1, updated_us=sa.bindparam("now_us"))
    .returning(THREADS.c.last_sequence)
)
_COUNT_SPOKEN = Change(
    sa.update(THREADS)
    .where(THREADS.c.thread_key == sa.bindparam("of_thread"))
    .values(
        last_sequence=THREADS.c.last_sequence + sa.case((THREADS.c.handed_off, 0), else_=1),
        updated_us=sa.bindparam("now_us"),
    )
    .returning(THREADS.c.last_sequence, THREADS.c.handed_off)
)
_IN_ORDER = sa.select(EVENTS).where(EVENTS.c.sequence > sa.bindparam("after")).order_by(EVENTS.c.sequence).limit(_PAGE)
_OF_TURN = Query(_IN_ORDER.where(EVENTS.c.turn_id == sa.bindparam("of_turn")))
_OF_THREAD = Query(_IN_ORDER.where(EVENTS.c.thread_key == sa.bindparam("of_thread")))
_THREAD = Query(
    sa.select(THREADS.c.created_us, THREADS.c.first_sequence, THREADS.c.last_sequence).where(
        THREADS.c.thread_key == sa.bindparam("of_thread")
    )
)
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
    """Store an event and return its sequence; one already stored under (run, turn, once) keeps its sequence.

    Return SILENT, and store nothing, for words of the agent in a thread that a person has at this moment. This is read
    in the row that a claim of the thread writes, so no word follows a claim.
    """
    there = _TOLD.one(connection, {"run_id": lease.run_id, "turn_id": lease.turn_id, "once": once})
    if there is not None:
        return int(there[0])
    spoken = kind in SPOKEN
    count = _COUNT_SPOKEN if spoken else _COUNT
    counted = count.one(connection, {"of_thread": lease.thread_key, "now_us": now_us})
    if counted is None:
        raise LeaseLostError(f"the thread of run {lease.run_id} was erased")
    if spoken and counted.handed_off:
        return SILENT
    sequence = int(counted.last_sequence)
    kept = {name: value for name, value in payload.items() if name not in _NEVER_STORED}
    shown = json.dumps(kept if kind == "approval_required" else dict(payload))
    place = (lease.thread_key, lease.thread_id, sequence, lease.run_id, lease.turn_id)
    _ADD.later(connection, [(*place, once, kind, shown, now_us)])
    return sequence


class ThreadEvents:
    """Implementation of ports.Events for one turn, under its lease."""

    def __init__(self, writes: TurnWrites) -> None:
        self._writes = writes

    async def emit(self, *told: Told) -> None:
        """Store each event once, in order and in one commit, with the turn's next write; see turn.unit_of_work."""
        lease = self._writes.lease

        def work(connection: Connection, now: int) -> None:
            for event in told:
                append_event(connection, lease, event.kind, event.payload, once=event.key, now_us=now)

        self._writes.hold(work)


class EventLog:
    """Reader of the stored events."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def of_turn(self, turn_id: str, *, after: int = 0) -> Sequence[StoredEvent]:
        """Return a page of a turn's events after a sequence, in order."""
        of_it = {"of_turn": turn_id, "after": after}
        return await self._database.read_quickly(lambda connection: _page(_OF_TURN, connection, of_it), one=True)

    async def of_thread(self, thread_key: str, *, after: int) -> ThreadTail | None:
        """Return a page of a thread's events after a sequence, or None if there is no such thread."""

        def work(connection: Connection) -> ThreadTail | None:
            of_it = {"of_thread": thread_key, "after": after}
            thread = _THREAD.one(connection, of_it)
            if thread is None:
                return None
            events = _page(_OF_THREAD, connection, of_it)
            return ThreadTail(thread.created_us, thread.first_sequence, thread.last_sequence, events)

        return await self._database.read(work)

    async def newest(self, run_id: str, kind: str) -> StoredEvent | None:
        """Return a run's newest event of a kind, or None."""

        def work(connection: Connection) -> StoredEvent | None:
            row = connection.execute(
                sa.select(EVENTS)
                .where(EVENTS.c.run_id == run_id, EVENTS.c.kind == kind)
                .order_by(EVENTS.c.sequence.desc())
                .limit(1)
            ).one_or_none()
            return None if row is None else _EVENT.read(row)

        return await self._database.read(work)


def _page(query: Query, connection: Connection, values: Mapping[str, Any]) -> Sequence[StoredEvent]:
    """Return the next events in order: bounded by number and total size, but at least one."""
    events: list[StoredEvent] = []
    left = _PAGE_CHARACTERS
    with contextlib.closing(query.each(connection, values)) as rows:
        for row in rows:
            left -= len(row.payload)
            if events and left < 0:
                break
            events.append(_EVENT.read(row))
    return events
