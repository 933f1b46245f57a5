"""The inbox: every incoming message once, in each thread's order. After its commit a message cannot be lost."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Change, Query, Record, RowInsert, Update
from phylactery_chassis.errors import AlreadyExists, FailedPrecondition, NotFound, ResourceExhausted, Unavailable
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id
from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.retraction import read_retraction
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_agent.rules.commands import read_command, stops_at_once
from phylactery_agent.rules.intents import parse_reply
from phylactery_agent.runtime.dispatch.leases import require_unheld
from phylactery_agent.runtime.guests.shares import NO_LIMITS, SILENT, Kind, Shares
from phylactery_agent.runtime.intake.rows import FORM_GRAPH, find_turn, insert_run, insert_turn, turn_of
from phylactery_agent.runtime.runs.status import SERVED, RunStatus
from phylactery_agent.runtime.storage.records import APPROVALS_SOURCE, Incoming, Owner, StoredRun, StoredTurn
from phylactery_agent.runtime.storage.schema import FORM_SESSIONS, INBOX, IS_ACTIVE, RUNS, THREADS

T = TypeVar("T")
MAX_QUEUED = 100
_TRIES = 5

_BY_ID = Query(sa.select(INBOX).where(INBOX.c.turn_id == sa.bindparam("of_turn")))
_ACTIVE_RUNS = Query(
    sa.select(RUNS.c.run_id, RUNS.c.status, RUNS.c.graph)
    .where(RUNS.c.thread_key == sa.bindparam("of_thread"), IS_ACTIVE)
    .order_by(RUNS.c.run_id)
    .with_for_update()
)
_ACTIVE_NOW = Query(
    sa.select(RUNS.c.run_id, RUNS.c.status).where(RUNS.c.thread_key == sa.bindparam("of_thread"), IS_ACTIVE)
)
_WAITING = Query(
    sa.select(sa.func.count().label("waiting")).where(
        INBOX.c.thread_key == sa.bindparam("of_thread"), INBOX.c.state == "waiting"
    )
)
_NEXT_POSITION = Change(
    sa.update(THREADS)
    .where(THREADS.c.thread_key == sa.bindparam("of_thread"))
    .values(last_position=THREADS.c.last_position + 1, updated_us=sa.bindparam("now_us"))
    .returning(THREADS.c.last_position, THREADS.c.graph)
)
_OPEN_THREAD = RowInsert(
    THREADS,
    "thread_key",
    "tenant",
    "user_id",
    "thread_id",
    "last_sequence",
    "last_position",
    "created_us",
    "updated_us",
    "graph",
    "first_sequence",
)
_INTERRUPT = Update(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("of_run"), sa.or_(RUNS.c.cancel_us == 0, RUNS.c.cancel_reason != ""))
    .values(cancel_us=sa.bindparam("now_us"), cancel_reason="")
)


_LONGEST_ANSWER: Final = 300
"""The most characters of a message that may be nothing but an answer, or words that stop."""
_GOING_ON: Final = (
    sa.select(THREADS.c.thread_key)
    .where(
        THREADS.c.thread_key == sa.bindparam("of_thread"),
        sa.or_(
            THREADS.c.handed_off,
            sa.exists().where(FORM_SESSIONS.c.thread_key == THREADS.c.thread_key, FORM_SESSIONS.c.ended_us == 0),
        ),
    )
    .limit(1)
)
"""Whether a person or a form has the thread."""


class InboxStore:
    """Store of incoming messages."""

    def __init__(self, database: Database, clock: Clock, shares: Shares = NO_LIMITS) -> None:
        """``shares`` limits what each person may send a day."""
        self._database, self._clock, self._shares = database, clock, shares

    async def accept(self, incoming: Incoming) -> StoredTurn:
        """Commit a message, or return the earlier one with the same id.

        Raise AlreadyExists REQUEST_CONFLICT (another body), ResourceExhausted TOO_MANY_QUEUED, FailedPrecondition
        GRAPH_CONFLICT (another graph than the thread's) and THREAD_BUSY (on_busy is REJECT).
        """
        return (await self.accept_and(incoming, lambda _connection, _turn, _now: None))[0]

    async def accept_and(
        self, incoming: Incoming, then: Callable[[Connection, StoredTurn, int], T]
    ) -> tuple[StoredTurn, T | None]:
        """Do the same as accept, and call ``then`` in the same transaction for a turn that just opened a run.

        ``then`` receives the time in microseconds; it may run twice, so it must change nothing but the database. The
        second value is its result, or None if the turn opened no run.
        """
        clock = self._clock

        def work(connection: Connection) -> tuple[StoredTurn, T | None]:
            now = clock.now_us()
            turn = _accept(connection, incoming, now, self._shares)
            opens = turn.turn_id == incoming.turn_id and turn.run_id != ""
            return turn, then(connection, turn, now) if opens else None

        reach("agent.inbox.before")
        return await self._write(work)

    async def find(self, owner: Owner, message_id: str, body_hash: str) -> StoredTurn | None:
        """Return the user's earlier message with this id, or None. Raise AlreadyExists, as accept."""

        def work(connection: Connection) -> StoredTurn | None:
            there = find_turn(connection, owner.tenant, owner.user_id, message_id)
            return None if there is None else _same_request(there, body_hash)

        return await self._database.read_quickly(work, one=True)

    async def note_approval_decided(self, run: StoredRun, state: str) -> StoredTurn | None:
        """Commit that a suspended run's approval is no longer PENDING at RiskGate; return None if the run moved on.

        The message id contains the run's fence, so each resumption of the run is recorded once, and a later one can be
        recorded again. Raise LeaseLostError while another process keeps the thread from being served.
        """
        clock = self._clock

        def work(connection: Connection) -> StoredTurn | None:
            now = clock.now_us()
            current = connection.execute(
                sa.select(RUNS.c.status, RUNS.c.approval_id, RUNS.c.fence).where(RUNS.c.run_id == run.run_id)
            ).one_or_none()
            if current is None or tuple(current) != (RunStatus.SUSPENDED, run.approval_id, run.fence):
                return None
            require_unheld(connection, run.thread_key)
            message_id = f"{run.approval_id}:{state}:{run.fence}"
            if find_turn(connection, run.owner.tenant, APPROVALS_SOURCE, message_id) is not None:
                return None
            turn_id = new_id("tu")
            incoming = Incoming(
                owner=run.owner,
                message_id=message_id,
                thread_id=run.thread_id,
                body_hash="",
                text="",
                language=run.language,
                turn_id=turn_id,
            )
            position = next_position(connection, incoming.thread_key, now)
            return insert_turn(
                connection,
                incoming,
                now,
                position=position,
                source=APPROVALS_SOURCE,
                approval_id=run.approval_id,
                run_id=run.run_id,
            )

        return await self._write(work)

    async def get(self, turn_id: str) -> StoredTurn:
        """Return a turn that was accepted. Raise NotFound THREAD_NOT_FOUND if its user was erased since."""

        def work(connection: Connection) -> StoredTurn:
            row = _BY_ID.one(connection, {"of_turn": turn_id})
            if row is None:
                raise NotFound("THREAD_NOT_FOUND", "this thread was erased while its turn was served")
            return turn_of(row)

        return await self._database.read_quickly(work, one=True)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        for _ in range(_TRIES):
            with contextlib.suppress(
                IntegrityError, _StaleError
            ):  # another process accepted the same message; a retry sees it
                return await self._database.write(work)
        raise Unavailable("STORE_UNAVAILABLE", "write conflict on this thread; retry in a moment")

    async def threads_with_work(self) -> Sequence[str]:
        """Return every thread in which a turn waits to be handled."""

        def work(connection: Connection) -> Sequence[str]:
            query = sa.select(INBOX.c.thread_key).where(INBOX.c.state == "waiting").distinct()
            return list(connection.execute(query).scalars())

        return await self._database.read(work)


def _accept(connection: Connection, incoming: Incoming, now: int, shares: Shares = NO_LIMITS) -> StoredTurn:
    owner = incoming.owner
    there = find_turn(connection, owner.tenant, owner.user_id, incoming.message_id)
    if there is not None:
        return _same_request(there, incoming.body_hash)
    thread = {"of_thread": incoming.thread_key}
    active = _ACTIVE_RUNS.all(connection, thread)  # before the thread: the order used to end a run
    position = _open_thread(connection, incoming, now)
    counted = _WAITING.one(connection, thread)
    waiting = 0 if counted is None else int(counted.waiting)
    if waiting >= MAX_QUEUED:
        raise ResourceExhausted(
            "TOO_MANY_QUEUED",
            f"{MAX_QUEUED} messages wait in this thread already; wait for their answers",
            metadata={"limit": str(MAX_QUEUED)},
        )
    served = next((run for run in active if run.status in SERVED), None)
    over = _over_share(connection, incoming, shares, now, under_way=bool(active) or waiting > 0)
    incoming = replace(incoming, over_share=over, form="" if over else incoming.form)
    in_form = served is not None and served.graph == FORM_GRAPH
    if _stops(incoming) and (waiting or served is not None) and not (in_form and not waiting):
        _require_seen(connection, incoming, active)
        _apply_on_busy(connection, incoming, None if in_form else served, waiting=waiting > 0, now=now, stops=True)
        incoming = replace(incoming, on_busy="interrupt")
    else:
        _apply_on_busy(connection, incoming, served, waiting=waiting > 0, now=now)
    # next to a run that waits for the person, the claim decides whether this message opens another
    run_id = "" if waiting or active else insert_run(connection, incoming, now)
    return insert_turn(
        connection, incoming, now, position=position, source=owner.user_id, approval_id="", run_id=run_id
    )


def _over_share(connection: Connection, incoming: Incoming, shares: Shares, now: int, *, under_way: bool) -> str:
    """Count a message; return which share of the person it passes, SILENT if that was told today, else nothing.

    Answers to approvals, words that stop and a wish for a person, which has a share of its own, are never refused here.
    Where something is under way or is taken back, or a person has the thread, messages have another share.
    """
    text, owner = incoming.text, incoming.owner
    short = text if len(text) <= _LONGEST_ANSWER else ""  # to read a long one would hold up every other write
    if parse_reply(short) is not None or read_answer(short) != "unclear":
        return ""
    if read_command(short) in {"stop", "hold", "person"}:
        return ""
    going_on = (
        under_way
        or read_retraction(short) is not None
        or connection.execute(_GOING_ON, {"of_thread": incoming.thread_key}).first() is not None
    )
    kind: Kind = "answers" if going_on else "turns"
    if not shares.take(connection, owner, kind, now, told=incoming.level):
        return kind if shares.tells(connection, owner, kind) else SILENT
    if incoming.form and not shares.take(connection, owner, "forms", now, told=incoming.level):
        return "forms" if shares.tells(connection, owner, "forms") else SILENT
    return ""


def _same_request(there: Record, body_hash: str) -> StoredTurn:
    """Return the turn of an earlier, identical request. Raise AlreadyExists REQUEST_CONFLICT if its body differs."""
    if there.body_hash != body_hash:
        raise AlreadyExists(
            "REQUEST_CONFLICT",
            f"request_id '{there.message_id}' came with another body before; use a new one",
            metadata={"request_id": there.message_id},
        )
    return turn_of(there)


def _open_thread(connection: Connection, incoming: Incoming, now: int) -> int:
    """Open the thread, or lock it until the commit so that concurrent messages see each other.

    Return the message's position in it. Raise FailedPrecondition GRAPH_CONFLICT.
    """
    key, graph = incoming.thread_key, incoming.graph or incoming.opens_graph
    there = _NEXT_POSITION.one(connection, {"of_thread": key, "now_us": now})
    if there is None:
        owner = incoming.owner
        new = (key, owner.tenant, owner.user_id, incoming.thread_id, 0, 1, now, now, graph, 1)
        _OPEN_THREAD.later(connection, [new])
        return 1
    if incoming.graph not in ("", there.graph):
        raise FailedPrecondition(
            "GRAPH_CONFLICT",
            f"the graph '{there.graph}' serves this thread; leave graph empty, or open another thread for another "
            "graph",
            metadata={"graph": there.graph},
        )
    return int(there.last_position)


def next_position(connection: Connection, thread_key: str, now: int) -> int:
    """Return the next position in an existing thread, and lock the thread until the commit."""
    there = _NEXT_POSITION.one(connection, {"of_thread": thread_key, "now_us": now})
    assert there is not None, "a run's thread is there as long as the run"
    return int(there.last_position)


def _stops(incoming: Incoming) -> bool:
    """Return True for words that stop what is served or waits to be. In a form they may be an answer: it decides."""
    waits = incoming.on_busy in {"enqueue", "coalesce"} and not incoming.attachments
    return waits and stops_at_once(incoming.text, incoming.message_starts)


class _StaleError(Exception):
    """Another process took a turn of the thread between two reads of a transaction, which is repeated then."""


def _require_seen(connection: Connection, incoming: Incoming, active: Sequence[Record]) -> None:
    """Raise _StaleError if another run is served by now than the one that was read before the thread was locked."""
    now = _ACTIVE_NOW.all(connection, {"of_thread": incoming.thread_key})
    if {(one.run_id, one.status) for one in now} != {(one.run_id, one.status) for one in active}:
        raise _StaleError


def _apply_on_busy(
    connection: Connection,
    incoming: Incoming,
    served: Record | None,
    *,
    waiting: bool,
    now: int,
    stops: bool = False,
) -> None:
    """Apply on_busy, or words that stop, if a turn waits or runs: a suspended run is not busy. Raise THREAD_BUSY.

    Which messages are coalesced is decided when they are claimed; see the coalescing module.
    """
    if incoming.on_busy == "reject" and (waiting or served is not None):
        raise FailedPrecondition(
            "THREAD_BUSY",
            f"a turn of thread '{incoming.thread_id}' waits or runs, and this message was not to wait; "
            "send it again once that is answered, or with another on_busy",
            metadata={"thread_id": incoming.thread_id},
        )
    interrupts = stops or incoming.on_busy == "interrupt"
    if interrupts and served is not None and served.status == RunStatus.RUNNING:
        _INTERRUPT.later(connection, {"of_run": served.run_id, "now_us": now})
