"""Runs: begun and ended under a lease, each end in one transaction, and shown to those whose they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.columns import JSON_TUPLE, Columns, Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowUpdate
from phylactery_chassis.errors import NotFound
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection, Row

from phylactery_agent.checkpoints.rows import Place
from phylactery_agent.ports import EffectState
from phylactery_agent.rules.commands import stops_at_once
from phylactery_agent.runtime.guests.shares import NO_LIMITS, Shares
from phylactery_agent.runtime.handoff.queue import STOPPED_FOR_PERSON, HandoffOverError, lock_thread
from phylactery_agent.runtime.intake.waiting import SPOKE_AT, card_of
from phylactery_agent.runtime.runs.lifecycle import end
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.storage.records import Ending, Lease, Owner, StoredRun, StoredToolCall, StoredTurn
from phylactery_agent.runtime.storage.schema import FORM_SESSIONS, INBOX, IS_ACTIVE, RUNS, TOOL_CALLS, to_text
from phylactery_agent.runtime.turn.canned_replies import CANCELLED, INTERRUPTED, apology
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_agent.tools.registry import ToolRegistry

_SLOT = "run"
_SET_RUN = RowUpdate(RUNS, "run_id")
_STOPPED_BY = Query(
    sa.select(RUNS.c.language, RUNS.c.cancel_us, RUNS.c.cancel_reason).where(RUNS.c.run_id == sa.bindparam("of_run"))
)
_begins_form, _form = INBOX.alias(), FORM_SESSIONS.alias()
FORM_TAKES = sa.or_(
    sa.exists().where(_form.c.thread_key == RUNS.c.thread_key, _form.c.ended_us == sa.literal_column("0")),
    sa.exists().where(
        _begins_form.c.thread_key == RUNS.c.thread_key,
        _begins_form.c.state == sa.literal_column("'waiting'"),
        _begins_form.c.form != sa.literal_column("''"),
    ),
)
"""Whether an open form, or one that a waiting message begins, will take what is said in the thread of a run."""
_INTERRUPTING = Query(
    sa.select(INBOX.c.text, INBOX.c.attachments, FORM_TAKES.label("form_takes"))
    .join(RUNS, RUNS.c.thread_key == INBOX.c.thread_key)
    .where(
        RUNS.c.run_id == sa.bindparam("of_run"),
        INBOX.c.on_busy == "interrupt",
        INBOX.c.created_us == RUNS.c.cancel_us,  # both are written by the same commit; a person's word is later
    )
    .limit(1)
)
_OWNED = sa.select(RUNS).where(
    RUNS.c.tenant == sa.bindparam("tenant"),
    RUNS.c.user_id == sa.bindparam("user_id"),
    RUNS.c.run_id == sa.bindparam("of_run"),
)
_RUN, _RUN_LOCKED = Query(_OWNED), Query(_OWNED.with_for_update())
_WITH_THREAD = sa.select(TOOL_CALLS, RUNS.c.thread_id).join(RUNS, RUNS.c.run_id == TOOL_CALLS.c.run_id)
_CALLS = Query(_WITH_THREAD.where(TOOL_CALLS.c.run_id == sa.bindparam("of_run")).order_by(TOOL_CALLS.c.ordinal))
_STORED_RUN = Columns(
    StoredRun, RUNS, forms={"status": Form(RunStatus), "steps": JSON_TUPLE}, besides=("owner", "card")
)
_STORED_CALL = Columns(StoredToolCall, TOOL_CALLS, forms={"state": Form(EffectState)}, besides=("thread_id",))
_AWAITING = Query(
    sa.select(RUNS).where(RUNS.c.status == RunStatus.SUSPENDED, RUNS.c.approval_id != "").order_by(RUNS.c.updated_us)
)
_AWAITING_IN = (
    sa.select(RUNS).where(RUNS.c.status == RunStatus.SUSPENDED, RUNS.c.approval_id != "").order_by(SPOKE_AT.desc())
)


class RunStore:
    """Store of runs."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        tools: ToolRegistry,
        *,
        change_seconds: int = 0,
        shares: Shares = NO_LIMITS,
    ) -> None:
        """change_seconds is how long what was asked may still be changed after its run has ended.

        shares limits how often a day each person may call a person.
        """
        self._shares = shares
        self._database, self._clock, self._tools, self._change_seconds = database, clock, tools, change_seconds

    async def end_turn(
        self,
        writes: TurnWrites,
        turn: StoredTurn,
        ending: Ending,
        *,
        active_us: int,
        silent: bool = False,
        also: Callable[[Connection, Ending, int], None] = lambda _connection, _ending, _now: None,
    ) -> Ending:
        """End a turn in one transaction: the run, the reply, its events, the transcript rows, the inbox row.

        The sealed code goes with it, and of a run that ended its state: the next one begins with every field reset.
        active_us is how long the run was served until now; silent is the claim's; ``also`` writes what else goes with
        the end, given how the turn ended and the time. Return how it ended: a run that suspends itself may have been
        cancelled. Raise LeaseLostError, and HandoffOverError for a turn that was stopped for a person who has gone
        since: the agent has to go on with it.
        """
        if ending.status not in ACTIVE:
            writes.drop(lambda slot: isinstance(slot, Place))  # where the run stood goes with its end

        def work(connection: Connection, now: int) -> Ending:
            told = ending
            if writes.cancelled or (silent and ending.status == RunStatus.SUSPENDED):
                told = _stopped(connection, writes.lease, ending)
            keep = self._change_seconds if told.status in {RunStatus.DONE, RunStatus.FAILED} else 0
            done = end(
                connection,
                writes.lease,
                RunStatus.RUNNING,  # what the lease proves
                told,
                now,
                tools=self._tools,
                shares=self._shares,
                turn=turn,
                keep_seconds=keep,
                active_us=active_us,
            )
            also(connection, done, now)
            return done

        return await writes.write(work)

    def begin_turn(self, writes: TurnWrites, *, trace_id: str, language: str, pathway: str) -> None:
        """Note the turn's trace, its pathway and the thread's language, with the turn's next write."""
        _hold(writes, trace_id=trace_id, language=language, pathway=pathway)

    def note_version(self, writes: TurnWrites, graph_version: str) -> None:
        """Note in which version of its graph a run stands, with the turn's next write."""
        _hold(writes, graph_version=graph_version)

    async def get(self, owner: Owner, run_id: str) -> StoredRun:
        """Return one of the owner's runs. Raise NotFound RUN_NOT_FOUND."""
        return await self._database.read_quickly(
            lambda connection: run_of(owned_run(connection, owner, run_id)), one=True
        )

    async def standing(self, owner: Owner, thread_id: str) -> StoredRun | None:
        """Return the run that tells where one of the owner's threads stands, None where it has none."""
        return await self._database.read(lambda connection: standing_run(connection, owner, thread_id))

    async def newest(self, owner: Owner, thread_id: str) -> StoredRun | None:
        """Return the run of the newest turn that has one, in one of the owner's threads; no clock is asked."""

        def work(connection: Connection) -> StoredRun | None:
            newest = of_owner(owner).where(RUNS.c.run_id == newest_run(owner, thread_id))
            row = connection.execute(newest).one_or_none()
            return None if row is None else run_of(row)

        return await self._database.read(work)

    async def tool_calls(self, run_id: str) -> Sequence[StoredToolCall]:
        """Return the ledger of a run, oldest first."""
        return await self._database.read_quickly(
            lambda connection: [tool_call_of(row) for row in _CALLS.all(connection, {"of_run": run_id})], one=True
        )

    async def waiting_in(self, owner: Owner, thread_id: str) -> Sequence[StoredRun]:
        """Return the runs that wait for an approval in one of the owner's threads, the one that spoke last first."""
        query = _AWAITING_IN.where(RUNS.c.thread_key == owner.thread_key(thread_id))
        return await self._database.read(lambda connection: [run_of(row) for row in connection.execute(query)])

    async def awaiting_approval(self) -> Sequence[StoredRun]:
        """Return every run that is suspended on an approval."""
        return await self._database.read(
            lambda connection: [run_of(row) for row in _AWAITING.all(connection, {})], one=True
        )


def _hold(writes: TurnWrites, **values: Any) -> None:
    """Note something in the run's row, with the turn's next write; what is noted before that goes along."""
    noted = {**(writes.held(_SLOT) or {}), **values}
    run_id = writes.lease.run_id

    def work(connection: Connection, _now: int) -> None:
        _SET_RUN.later(connection, run_id, **noted)

    writes.hold(work, slot=_SLOT, kept=noted)


def owned_run(connection: Connection, owner: Owner, run_id: str, *, lock: bool = False) -> Record:
    """Return the row of one of the owner's runs, locked until the commit if asked. Raise NotFound RUN_NOT_FOUND."""
    query = _RUN_LOCKED if lock else _RUN
    row = query.one(connection, {"tenant": owner.tenant, "user_id": owner.user_id, "of_run": run_id})
    if row is None:
        raise NotFound("RUN_NOT_FOUND", f"run '{run_id}' not found", metadata={"run_id": run_id})
    return row


def newest_run(owner: Owner, thread_id: str) -> sa.ScalarSelect[str]:
    """Return the query for the run of the newest turn that has one, in one of the owner's threads."""
    turns = sa.select(INBOX.c.run_id).where(INBOX.c.thread_key == owner.thread_key(thread_id), INBOX.c.run_id != "")
    return turns.order_by(INBOX.c.position.desc()).limit(1).scalar_subquery()


def standing_run(connection: Connection, owner: Owner, thread_id: str) -> StoredRun | None:
    """Return the run that is served in one of the owner's threads, or waits and spoke last, or else the newest."""
    active = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key == owner.thread_key(thread_id), IS_ACTIVE)
    spoke_last = active.order_by(SPOKE_AT.desc()).limit(1).scalar_subquery()
    shown = sa.func.coalesce(spoke_last, newest_run(owner, thread_id))
    row = connection.execute(of_owner(owner).where(RUNS.c.run_id == shown)).one_or_none()
    return None if row is None else run_of(row)


def of_owner(owner: Owner) -> sa.Select[Any]:
    """Return the query for an owner's runs."""
    return sa.select(RUNS).where(RUNS.c.tenant == owner.tenant, RUNS.c.user_id == owner.user_id)


def _stopped(connection: Connection, lease: Lease, ending: Ending) -> Ending:
    """Return how a run ends that was stopped: by the user, by another message, or for a person who has the thread.

    A run that is served unheard cannot ask anything either, because nobody would see the question. If that person has
    gone, the run ends as it would have without them. Raise HandoffOverError where it was cut short for them.
    """
    if ending.status in {RunStatus.FAILED, RunStatus.DEAD}:
        return ending
    row = _STOPPED_BY.one(connection, {"of_run": lease.run_id})
    cancelled = replace(ending, status=RunStatus.CANCELLED, approval_id="", card=(), escalation=None)
    if row is not None and row.cancel_us and not row.cancel_reason:
        by = _INTERRUPTING.one(connection, {"of_run": lease.run_id})
        stops = by is not None and stops_at_once(to_text(by.text))
        if by is not None and stops and not (by.form_takes or json.loads(by.attachments)):
            # the reply to that message says what was done
            return replace(cancelled, reason=CANCELLED, reply_text="")
        reason = CANCELLED if by is None else INTERRUPTED
        return replace(cancelled, reason=reason, reply_text=apology(reason, "en" if row.language == "en" else "es"))
    if (thread := lock_thread(connection, lease.thread_key)) is not None and thread.handed_off:
        return replace(cancelled, reason=STOPPED_FOR_PERSON, reply_text="")
    if ending.status == RunStatus.CANCELLED:
        raise HandoffOverError(f"turn {lease.turn_id} was stopped for a person who has handed the thread back")
    return ending


def run_of(row: Row[Any] | Record) -> StoredRun:
    """Return a run as its row says."""
    return _STORED_RUN.read(row, owner=Owner(row.tenant, row.user_id), card=card_of(row))


def with_thread() -> sa.Select[Any]:
    """Return the query for rows of the ledger with the thread of their run."""
    return _WITH_THREAD


def tool_call_of(row: Row[Any] | Record) -> StoredToolCall:
    """Return a row of with_thread."""
    return _STORED_CALL.read(row, thread_id=row.thread_id)
