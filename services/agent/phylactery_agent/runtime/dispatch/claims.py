"""Claims of turns: each thread's oldest unhandled turn, under a lease with a growing fence, by one process at a time.

Over PostgreSQL several processes claim at once. A claim locks the turn first and then its run, and waits for neither: a
locked row is being claimed or ended by another process at that moment, so there is other work to do.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Change, Query, Record, Update
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_agent.ports import LeaseLostError
from phylactery_agent.rules.commands import stops_at_once
from phylactery_agent.runtime.dispatch.leases import (
    LEASE_NOW,
    LEASE_SECONDS,
    hold_of,
    lease_now,
    require_unheld,
    shared,
)
from phylactery_agent.runtime.handoff.queue import STOPPED_FOR_PERSON
from phylactery_agent.runtime.intake.coalescing import coalesce
from phylactery_agent.runtime.intake.rows import FORM_GRAPH, FORM_IS_OPEN, FORM_RUN, insert_run, turn_of
from phylactery_agent.runtime.intake.waiting import LAST_REPLY, SPOKE_AT, run_for
from phylactery_agent.runtime.privacy.erasure_store import lock_threads, remove_threads
from phylactery_agent.runtime.runs.status import ACTIVE, SERVED, RunStatus, advance
from phylactery_agent.runtime.runs.store import run_of
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Claim, Lease, StoredRun, StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, IS_ACTIVE, NAMED_LEASES, RUNS, THREADS, to_text

_BUSY_SECONDS = 0.05
"""Pause, in seconds, before retrying a row locked by another process: a transaction takes less."""
_SET_ASIDE = 100
"""Maximum number of turns that one claim sets aside because they no longer need to be served."""

_THREAD = Query(
    sa.select(
        THREADS.c.thread_key,
        THREADS.c.handed_off,
        FORM_IS_OPEN.label("form_open"),
        sa.func.coalesce(FORM_RUN, "").label("form_run"),
    )
    .where(THREADS.c.thread_key == sa.bindparam("of_thread"))
    .with_for_update()
)
_GOING_FIRST = Query(
    sa.select(INBOX.c.position, INBOX.c.text, INBOX.c.message_starts, INBOX.c.created_us)
    .where(INBOX.c.thread_key == sa.bindparam("of_thread"), INBOX.c.state == "waiting", INBOX.c.on_busy == "interrupt")
    .order_by(INBOX.c.position)
)
"""The messages of a thread that are to go before what is served: read once the thread is locked, for one that was
accepted while this waited for the lock is not in what was read with it."""
_STOP = Update(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("of_run"), RUNS.c.cancel_us == 0)
    .values(cancel_us=sa.bindparam("at_us", type_=sa.BigInteger))
)
_IN_THREAD = (INBOX.c.thread_key == sa.bindparam("of_thread"), INBOX.c.state == "waiting")
_first = sa.select(INBOX.c.turn_id).where(*_IN_THREAD).order_by(INBOX.c.position).limit(1)
_HEAD = Query(
    sa.select(INBOX)
    .where(*_IN_THREAD, INBOX.c.turn_id == _first.correlate(None).scalar_subquery())
    .with_for_update(skip_locked=True)
)
"""A thread's oldest unhandled turn, locked until the commit; no row either if another process has locked it."""
_FIRST = Query(_first)
_ANY = Query(sa.select(INBOX.c.turn_id).where(INBOX.c.state == "waiting").limit(1))
_OF_THREAD = (RUNS.c.thread_key == sa.bindparam("of_thread"), IS_ACTIVE)
_each = RUNS.alias()
_active = sa.select(sa.func.count()).where(
    _each.c.thread_key == sa.bindparam("of_thread"),
    _each.c.status.in_([sa.literal_column(f"'{status}'") for status in ACTIVE]),
)
_ACTIVE_RUNS = Query(
    sa.select(
        RUNS,
        (RUNS.c.lease_until_us - LEASE_NOW).label("left_us"),
        (RUNS.c.due_us - LEASE_NOW).label("wait_us"),
        SPOKE_AT.label("spoke_at"),
        LAST_REPLY.label("last_reply"),
        _active.scalar_subquery().label("active"),
    )
    .where(*_OF_THREAD)
    .with_for_update(of=RUNS, skip_locked=True)
)
"""A thread's active runs, locked until the commit, and their number including those locked by another process."""
_ANY_ACTIVE_RUN = Query(sa.select(RUNS.c.run_id).where(*_OF_THREAD).limit(1))
_STOP_IS_OVER = sa.and_(
    RUNS.c.cancel_reason == STOPPED_FOR_PERSON,
    sa.or_(RUNS.c.status == RunStatus.SUSPENDED, sa.not_(sa.bindparam("silent", type_=sa.Boolean))),
)
"""Whether what a run was stopped for is over: it went on to wait, or the person who had the thread has gone."""
_TAKE_RUN = Change(
    sa.update(RUNS)
    .where(RUNS.c.run_id == sa.bindparam("of_run"))
    .values(
        status=sa.bindparam("as_status"),
        turn_id=sa.bindparam("for_turn"),
        fence=sa.bindparam("under_fence", type_=sa.BigInteger),
        attempt=sa.bindparam("the_attempt", type_=sa.BigInteger),
        lease_owner=sa.bindparam("holder"),
        lease_until_us=LEASE_NOW + sa.bindparam("lease_for_us", type_=sa.BigInteger),
        due_us=0,
        cancel_us=sa.case((_STOP_IS_OVER, 0), else_=RUNS.c.cancel_us),
        cancel_reason=sa.case((_STOP_IS_OVER, ""), else_=RUNS.c.cancel_reason),
        updated_us=sa.bindparam("now_us"),
    )
    .returning(RUNS)
)
_TAKE_TURN = Update(
    sa.update(INBOX)
    .where(INBOX.c.turn_id == sa.bindparam("of_turn"))
    .values(run_id=sa.bindparam("for_run"), resumed=sa.bindparam("goes_on"))
)

_log = get_logger("claiming")


class HeldError(LeaseLostError):
    """The thread's next turn cannot be claimed now; ``seconds`` is the time until a retry."""

    def __init__(self, what: str, seconds: float) -> None:
        super().__init__(what)
        self.seconds = seconds


class ClaimStore:
    """Store that hands out claims on turns and takes back those that were not ended."""

    def __init__(self, database: Database, clock: Clock, *, lease_seconds: float = LEASE_SECONDS) -> None:
        self._database, self._clock, self._lease_seconds = database, clock, lease_seconds

    async def claim_next(self, thread_key: str, holder: str, *, waited: bool = False) -> Claim | None:
        """Claim the thread's oldest unhandled turn and append its run_started event; return None if there is none.

        Raise HeldError while another process serves the thread or it is not due yet, and Unavailable. waited means that
        the pause has elapsed regardless of the clock, which may have been set back.
        """

        def work(connection: Connection) -> Claim | None:
            now = self._clock.now_us()
            for _ in range(_SET_ASIDE):
                head = _head_of(connection, thread_key)
                if head is None:
                    return None
                claim = self._claim(connection, turn_of(head), holder, now, waited=waited)
                if claim is not None:
                    return claim
            raise HeldError(f"thread {thread_key} has more to set aside", 0)

        reach("agent.claim.before")
        return await self._write(work, thread_key)

    def claim_opened(self, connection: Connection, turn: StoredTurn, holder: str, now: int) -> Claim | None:
        """Claim a turn in the transaction that accepts it and opens its run; return None while its thread is held."""
        reach("agent.claim.before")
        try:
            return self._claim(connection, turn, holder, now)
        except HeldError:
            return None

    async def claim_any(self, holder: str, *, but: Collection[str] = ()) -> Claim | None:
        """Claim the oldest turn that no process serves, preferring users with the fewest runs in progress.

        Return None if every turn is being served. ``but`` names threads to skip. Raise Unavailable. For PostgreSQL
        only: over SQLite nothing is left over.
        """

        def work(connection: Connection) -> Claim | None:
            now = self._clock.now_us()
            for _ in range(_SET_ASIDE):
                head = connection.execute(_any_head(lease_now(connection, now), but)).one_or_none()
                if head is None:
                    return None
                claim = self._claim(connection, turn_of(head), holder, now)
                if claim is not None:
                    return claim
            return None

        # usually nothing waits, which a single query without a transaction shows
        if not await self._database.read(lambda connection: _ANY.all(connection, {}), one=True):
            return None
        try:
            return await self._write(work, "")
        except HeldError:
            return None

    async def give_back(self, claim: Claim, *, pause_seconds: float, counted: bool = True) -> None:
        """Free a claim that could not be served to its end, so that any process may claim it again after a pause.

        counted means that the attempt counts towards the limit at which a turn is given up. If another process holds it
        by now, nothing changes. Raise Unavailable.
        """
        lease, clock = claim.lease, self._clock

        def work(connection: Connection) -> None:
            now = clock.now_us()
            values: dict[str, Any] = {"lease_owner": "", "lease_until_us": 0, "updated_us": now}
            values["due_us"] = lease_now(connection, now) + round(pause_seconds * MICROSECONDS)
            if not counted:
                values["attempt"] = RUNS.c.attempt - 1
            mine = (RUNS.c.run_id == lease.run_id, RUNS.c.fence == lease.fence, RUNS.c.lease_owner == lease.holder)
            connection.execute(sa.update(RUNS).where(*mine, RUNS.c.status == RunStatus.RUNNING).values(**values))

        await self._database.write(work)

    async def settle(self, thread_keys: Collection[str]) -> None:
        """Wait until every claim and run write in progress in these threads has been committed or rolled back.

        A claim that begins afterwards sees what was durable before. Raise Unavailable.
        """
        runs = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key.in_(tuple(thread_keys)), RUNS.c.status.in_(ACTIVE))

        def work(connection: Connection) -> None:
            connection.execute(runs.order_by(RUNS.c.run_id).with_for_update()).all()
            lock_threads(connection, THREADS.c.thread_key.in_(tuple(thread_keys)))

        await self._database.write(work)

    async def served(self, thread_keys: Collection[str], holder: str) -> bool:
        """Return True if a process other than the holder has a live lease on a run of one of the threads."""

        def work(connection: Connection) -> bool:
            theirs = sa.select(RUNS.c.run_id).where(
                RUNS.c.thread_key.in_(tuple(thread_keys)),
                RUNS.c.status == RunStatus.RUNNING,
                RUNS.c.lease_owner.not_in(("", holder)),
                RUNS.c.lease_until_us > lease_now(connection, self._clock.now_us()),
            )
            return connection.execute(theirs.limit(1)).first() is not None

        return await self._database.read(work)

    async def release_all(self) -> int:
        """Free every lease, since the folder's lock proves that their holders are dead. Return how many there were.

        For SQLite only; over PostgreSQL the holders may be alive: see leases.free_leases.
        """

        def work(connection: Connection) -> int:
            freed = connection.execute(
                sa.update(RUNS).where(RUNS.c.lease_owner != "").values(lease_owner="", lease_until_us=0)
            )
            return freed.rowcount

        return await self._database.write(work)

    async def _write(self, work: Any, thread_key: str) -> Claim | None:
        try:
            claim: Claim | None = await self._database.write(work)
        except IntegrityError:  # another process gave the thread a run at the same moment
            raise HeldError(f"thread {thread_key} is being claimed by another process", _BUSY_SECONDS) from None
        if claim is not None:
            reach("agent.claim")
        return claim

    def _claim(
        self, connection: Connection, turn: StoredTurn, holder: str, now: int, *, waited: bool = False
    ) -> Claim | None:
        """Claim a locked turn; return None if it needed no serving and was set aside. Raise HeldError."""
        runs = _active_runs(connection, turn.thread_key, now)
        thread = _THREAD.one(connection, {"of_thread": turn.thread_key})
        _require_unheld(connection, turn.thread_key)  # only after the thread is locked: see settle
        if thread is None:
            _log.warning("remains of a deleted thread removed", thread=turn.thread_key)
            remove_threads(connection, [turn.thread_key])
            return None
        silent = bool(thread.handed_off)
        # what others wrote answers no question of a run
        hearing = [run for run in runs if run.approval_id or run.status in SERVED] if turn.wordless else runs
        active = run_for(turn, hearing, handed_off=silent, form_open=bool(thread.form_open), form_run=thread.form_run)
        if turn.kind == "approval_decided" and not _still_awaits(turn, active):
            _set_aside(connection, turn.turn_id, now)
            return None
        if active is None:
            run_id = insert_run(connection, turn, now)
            opened = _active_runs(connection, turn.thread_key, now)
            active = next((run for run in opened if run.run_id == run_id), None)
            assert active is not None, "what was just written is there"
        if stopped_us := _stopped_us(connection, turn, active):
            _STOP.run(connection, {"of_run": active.run_id, "at_us": stopped_us})
        if active.status == RunStatus.RUNNING and active.lease_owner not in ("", holder) and active.left_us > 0:
            raise HeldError(f"run {active.run_id} is held by another process", active.left_us / MICROSECONDS)
        if active.wait_us > 0 and not waited:
            raise HeldError(f"run {active.run_id} is not due yet", active.wait_us / MICROSECONDS)
        beside = tuple(run_of(run) for run in runs if run.run_id != active.run_id)
        return self._take(connection, turn, active, holder, now, beside=beside, silent=silent)

    def _take(
        self,
        connection: Connection,
        turn: StoredTurn,
        active: Record,
        holder: str,
        now: int,
        *,
        beside: tuple[StoredRun, ...],
        silent: bool,
    ) -> Claim:
        again = active.status == RunStatus.RUNNING
        attempt = active.attempt + 1 if again else 1
        resumed = turn.resumed if again else active.status == RunStatus.SUSPENDED
        taken = _TAKE_RUN.one(
            connection,
            {
                "of_run": active.run_id,
                "as_status": advance(RunStatus(active.status), RunStatus.RUNNING),
                "for_turn": turn.turn_id,
                "under_fence": active.fence + 1,
                "the_attempt": attempt,
                "holder": holder,
                "lease_for_us": round(self._lease_seconds * MICROSECONDS),
                "now_us": now,
                "lease_now_us": now,
                "silent": silent,
            },
        )
        assert taken is not None, "what is locked is there"
        _TAKE_TURN.later(connection, {"of_turn": turn.turn_id, "for_run": active.run_id, "goes_on": resumed})
        lease = Lease(
            run_id=active.run_id,
            turn_id=turn.turn_id,
            thread_id=turn.thread_id,
            owner=turn.owner,
            holder=holder,
            fence=active.fence + 1,
            traceparent=turn.traceparent,
        )
        started = {"resumed": resumed, "graph": active.graph}
        append_event(connection, lease, "run_started", started, once="run_started", now_us=now)
        stored = replace(turn, run_id=active.run_id, resumed=resumed)
        if again or not (resumed and active.approval_id):  # an answer to an approval is not coalesced
            stored = coalesce(connection, stored, active.run_id, again=again)
        return Claim(stored, run_of(taken), lease, attempt, beside, silent)


def _stopped_us(connection: Connection, turn: StoredTurn, active: Record) -> int:
    """Return when a message behind this one said to stop, 0 if none did: nothing of this one is begun any more.

    In a form those words may be an answer, so what was said before them there is served.
    """
    if active.graph == FORM_GRAPH or stops_at_once(turn.text):
        return 0
    behind = (
        one for one in _GOING_FIRST.all(connection, {"of_thread": turn.thread_key}) if one.position > turn.position
    )
    stops = (one for one in behind if stops_at_once(to_text(one.text), json.loads(one.message_starts or "[]")))
    return next((int(one.created_us) for one in stops), 0)


def _head_of(connection: Connection, thread_key: str) -> Record | None:
    """Return the thread's oldest unhandled turn, locked until the commit. Raise HeldError if another process has it."""
    thread = {"of_thread": thread_key}
    head = _HEAD.one(connection, thread)
    if head is None and shared(connection) and (first := _FIRST.one(connection, thread)) is not None:
        raise HeldError(f"turn {first.turn_id} is being claimed or ended by another process", _BUSY_SECONDS)
    return head


def _any_head(now: sa.ColumnElement[int], but: Collection[str]) -> sa.Select[Any]:
    """Return the query for one turn to claim, the oldest of its thread, which it locks."""
    older, theirs, held = INBOX.alias(), RUNS.alias(), NAMED_LEASES.alias()
    first = sa.select(sa.func.min(older.c.position)).where(
        older.c.thread_key == INBOX.c.thread_key, older.c.state == "waiting"
    )
    served = sa.exists().where(
        RUNS.c.thread_key == INBOX.c.thread_key,
        RUNS.c.status.in_(ACTIVE),
        sa.or_(sa.and_(RUNS.c.status == RunStatus.RUNNING, RUNS.c.lease_until_us > now), RUNS.c.due_us > now),
    )
    kept = sa.exists().where(held.c.name == hold_of("") + INBOX.c.thread_key, held.c.until_us > now)
    under_way = (
        sa.select(sa.func.count())
        .where(
            theirs.c.tenant == INBOX.c.tenant,
            theirs.c.user_id == INBOX.c.user_id,
            theirs.c.status == RunStatus.RUNNING,
            theirs.c.lease_until_us > now,
        )
        .scalar_subquery()
    )
    return (
        sa.select(INBOX)
        .where(
            INBOX.c.state == "waiting",
            INBOX.c.position == first.scalar_subquery(),
            INBOX.c.thread_key.not_in(tuple(but)),
            ~served,
            ~kept,
        )
        .order_by(under_way, INBOX.c.created_us, INBOX.c.turn_id)
        .limit(1)
        .with_for_update(of=INBOX, skip_locked=True)
    )


def _active_runs(connection: Connection, thread_key: str, now: int) -> list[Record]:
    """Return the thread's unfinished runs, locked until the commit, with the remaining time of lease and pause.

    Raise HeldError if another process has locked one, before anything it may wait for is locked here.
    """
    thread = {"of_thread": thread_key, "lease_now_us": now}
    runs = _ACTIVE_RUNS.all(connection, thread)
    missing = runs[0].active != len(runs) if runs else shared(connection) and _ANY_ACTIVE_RUN.one(connection, thread)
    if missing:
        raise HeldError(f"a run of thread {thread_key} is being written by another process", _BUSY_SECONDS)
    return runs


def _require_unheld(connection: Connection, thread_key: str) -> None:
    try:
        require_unheld(connection, thread_key)
    except LeaseLostError as error:
        raise HeldError(str(error), 1.0) from None


def _still_awaits(turn: StoredTurn, active: Record | None) -> bool:
    """Return True if the run still waits for the approval that was decided, or is already being served for it."""
    if active is None or active.run_id != turn.run_id:
        return False
    if active.status == RunStatus.RUNNING:
        return bool(active.turn_id == turn.turn_id)
    return bool(active.status == RunStatus.SUSPENDED and active.approval_id == turn.approval_id)


def _set_aside(connection: Connection, turn_id: str, now: int) -> None:
    connection.execute(
        sa.update(INBOX)
        .where(INBOX.c.turn_id == turn_id)
        .values(state="handled", run_id="", run_reason="NOTHING_AWAITED", handled_us=now)
    )
