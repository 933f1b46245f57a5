"""The outbox: what other services must be told, committed with what made it so, delivered in order, at least once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowInsert, Update
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.ports.effects import EffectEvent, after, before
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import OUTBOX, TOOL_CALLS
from phylactery_agent.runtime.turn.canned_replies import CANCELLED, GATE_UNAVAILABLE

OutboxKind = Literal["transcript", "memory", "outcome", "observation", "task_end", "withdrawal"]

PAGE = 100
"""Messages that are read at once."""
RUN_ENDED = "RUN_ENDED"
"""Why an effect is in doubt that its run had begun and did not end."""
NOT_REDEEMED = "NOT_REDEEMED"
"""Why such an effect did not happen after all."""

_NOT_RUN = (RUN_ENDED, CANCELLED, GATE_UNAVAILABLE)
"""Codes of ours of an effect that was begun and, as far as its turn could tell, never run.

After them RiskGate alone knows whether it was redeemed.
"""

_TOLD_IN_ANY_CASE = ("outcome", "withdrawal", "task_end")
_THREAD_DELETED = "THREAD_DELETED"
"""Marks, while it waits, what outlives its thread."""
_FULL = "MESSAGE_LIMIT"
"""What memory refuses messages with where a thread, or a user, has as many as it keeps."""
_KEPT_OF_RESULTS = ("task_id", "tool", "tool_call_id", "failed")


@dataclass(frozen=True, slots=True)
class OutboxMessage:
    """One thing to deliver; once names it, for SQLite gives the number of a row that is gone to another."""

    outbox_id: int
    once: str
    kind: OutboxKind
    thread_key: str
    thread_id: str
    run_id: str
    owner: Owner
    traceparent: str
    of_deleted: bool
    """Its thread was deleted: once it is settled nothing of it is kept."""
    payload: Mapping[str, Any] = field(repr=False)


_MESSAGE = Columns(OutboxMessage, OUTBOX, forms={"payload": Form(json.loads)}, besides=("owner", "of_deleted"))
_OF_THREAD = (
    sa.select(*_MESSAGE.columns, OUTBOX.c.tenant, OUTBOX.c.user_id, OUTBOX.c.refusal)
    .where(
        OUTBOX.c.state == "waiting",
        OUTBOX.c.kind == sa.bindparam("kind"),
        OUTBOX.c.thread_key == sa.bindparam("thread_key"),
    )
    .order_by(OUTBOX.c.outbox_id)
    .limit(PAGE)
)
_WAITING = Query(_OF_THREAD)
_WAITING_OF_RUN = Query(_OF_THREAD.where(OUTBOX.c.run_id == sa.bindparam("run_id")))
_REFUSED = Query(
    sa.select(OUTBOX.c.outbox_id)
    .where(
        OUTBOX.c.state == "refused",
        OUTBOX.c.kind == sa.bindparam("kind"),
        OUTBOX.c.thread_key == sa.bindparam("thread_key"),
        OUTBOX.c.run_id == sa.bindparam("run_id"),
    )
    .limit(1)
)
_QUEUED = Query(sa.select(OUTBOX.c.outbox_id).where(OUTBOX.c.once == sa.bindparam("once")))
_LANES = Query(sa.select(OUTBOX.c.kind, OUTBOX.c.thread_key).where(OUTBOX.c.state == "waiting").distinct())
_SETTLE = Update(
    sa.text(
        "UPDATE agent_outbox SET state = :state, refusal = :refusal, payload = :payload, settled_us = :now_us"
        " WHERE outbox_id = :outbox_id AND once = :once AND state = 'waiting'"
    ).bindparams(sa.bindparam("payload", type_=OUTBOX.c.payload.type))
)
_FORGET = Update(sa.text("DELETE FROM agent_outbox WHERE outbox_id = :outbox_id AND once = :once"))
_ADD = RowInsert(
    OUTBOX,
    "kind",
    "once",
    "thread_key",
    "thread_id",
    "run_id",
    "tenant",
    "user_id",
    "payload",
    "traceparent",
    "state",
    "refusal",
    "created_us",
    "settled_us",
)


def queue_outcome(connection: Connection, lease: Lease, report: Mapping[str, Any], *, now_us: int) -> None:
    """Queue a report for RiskGate, once per execution and outcome."""
    _queue(connection, lease, "outcome", f"{report['execution_id']}:{report['outcome']}", report, now_us=now_us)


def queue_told(connection: Connection, lease: Lease, execution_id: str, *, now_us: int) -> None:
    """Queue that the person was told of an effect that ran without a question: after the report about it.

    Each by itself: RiskGate refuses one that was never redeemed, and what it refuses is settled.
    """
    _queue(connection, lease, "outcome", f"told:{execution_id}", {"told": [execution_id]}, now_us=now_us)


def queue_transcript(
    connection: Connection, lease: Lease, messages: Sequence[Mapping[str, Any]], *, now_us: int, once: str = ""
) -> None:
    """Queue messages for memory's transcript; each has id, role, text and create_us. once is the turn's by itself."""
    _queue(connection, lease, "transcript", once or lease.turn_id, {"messages": list(messages)}, now_us=now_us)


def queue_memory(connection: Connection, lease: Lease, said: Mapping[str, Any], *, now_us: int) -> None:
    """Queue what the person said in a turn for memory's write policy: id, text and create_us, as the transcript's."""
    _queue(connection, lease, "memory", lease.turn_id, said, now_us=now_us)


def queue_observation(connection: Connection, lease: Lease, shown: Mapping[str, Any], *, now_us: int) -> None:
    """Queue a tool's result for the task at RiskGate, once per call."""
    _queue(connection, lease, "observation", _once_shown(shown), shown, now_us=now_us)


def is_queued(connection: Connection, shown: Mapping[str, Any]) -> bool:
    """Return whether a result was queued for the task before, delivered or not."""
    return _QUEUED.one(connection, {"once": f"observation:{_once_shown(shown)}"}) is not None


def _once_shown(shown: Mapping[str, Any]) -> str:
    return f"{shown['task_id']}:{shown['tool_call_id']}"


def queue_task_end(
    connection: Connection, lease: Lease, task_id: str, *, now_us: int, keep_seconds: int = 0, once: str = ""
) -> None:
    """Queue the end of a task at RiskGate; others may go on from it for keep_seconds. once is the task by itself."""
    end = {"task_id": task_id, "keep_seconds": keep_seconds}
    _queue(connection, lease, "task_end", once or task_id, end, now_us=now_us)


def queue_withdrawal(connection: Connection, lease: Lease, *, now_us: int) -> None:
    """Queue the withdrawal of a run's pending approvals."""
    _queue(connection, lease, "withdrawal", lease.run_id, {}, now_us=now_us)


def queue_deletion(connection: Connection, lease: Lease, request_id: str, *, now_us: int) -> None:
    """Queue that memory deletes a thread, and keep of what waits for it what RiskGate must still be told.

    It goes the way of the transcript, so it comes after what was said before it and before what is said since.
    """
    of_thread = OUTBOX.c.thread_key == lease.thread_key
    kept = sa.and_(OUTBOX.c.state == "waiting", OUTBOX.c.kind.in_(_TOLD_IN_ANY_CASE))
    connection.execute(sa.delete(OUTBOX).where(of_thread, sa.not_(kept)))
    _queue(connection, lease, "transcript", f"deleted:{request_id}", {"delete": request_id}, now_us=now_us)
    connection.execute(sa.update(OUTBOX).where(of_thread).values(refusal=_THREAD_DELETED))


def _queue(
    connection: Connection, lease: Lease, kind: OutboxKind, once: str, payload: Mapping[str, Any], *, now_us: int
) -> None:
    to = (lease.thread_key, lease.thread_id, lease.run_id, lease.owner.tenant, lease.owner.user_id)
    sealed = (json.dumps(payload), lease.traceparent, "waiting", "", now_us, 0)
    _ADD.later(connection, [(kind, f"{kind}:{once}", *to, *sealed)])


def _message(row: Record) -> OutboxMessage:
    return _MESSAGE.read(row, owner=Owner(row.tenant, row.user_id), of_deleted=row.refusal == _THREAD_DELETED)


def _is_known_full(connection: Connection, message: OutboxMessage) -> bool:
    """Return whether memory refused a message of the thread for this before."""
    refused = sa.select(OUTBOX.c.outbox_id).where(
        OUTBOX.c.state == "refused",
        OUTBOX.c.kind == message.kind,
        OUTBOX.c.thread_key == message.thread_key,
        OUTBOX.c.refusal == _FULL,
    )
    return connection.execute(refused.limit(1)).first() is not None


def _tell_full(connection: Connection, message: OutboxMessage, now_us: int) -> None:
    """Tell, in the thread itself, that what is said in it from this turn on is not kept by memory any more."""
    turn_id = message.once.removeprefix(f"{message.kind}:")
    lease = Lease(message.run_id, turn_id, message.thread_id, message.owner, holder="", fence=0)
    told = {"reason": "TRANSCRIPT_FULL"}
    append_event(connection, lease, "notice", told, once="notice:TRANSCRIPT_FULL", now_us=now_us)


class OutboxStore:
    """Reads what waits and writes what became of it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def waiting(self, kind: OutboxKind, thread_key: str, run_id: str = "") -> Sequence[OutboxMessage]:
        """Return what waits for one thread and destination, oldest first, a bounded page; or one run's."""
        query = _WAITING_OF_RUN if run_id else _WAITING
        values = {"kind": kind, "thread_key": thread_key, **({"run_id": run_id} if run_id else {})}
        return await self._database.read_quickly(
            lambda connection: [_message(row) for row in query.all(connection, values)], one=True
        )

    async def refused(self, kind: OutboxKind, thread_key: str, run_id: str) -> bool:
        """Return whether something of a run was refused for good."""
        values = {"kind": kind, "thread_key": thread_key, "run_id": run_id}
        return await self._database.read_quickly(
            lambda connection: _REFUSED.one(connection, values) is not None, one=True
        )

    async def lanes(self) -> Sequence[tuple[OutboxKind, str]]:
        """Return every destination and thread for which something waits."""
        return await self._database.read(
            lambda connection: [(kind, thread_key) for kind, thread_key in _LANES.all(connection, {})], one=True
        )

    async def note_not_redeemed(self, message: OutboxMessage) -> bool:
        """Take RiskGate's word that it never saw the execution a report is about; say whether that settles it.

        It does for an effect that was given up because its run ended, was cancelled or met no RiskGate, and of which no
        person has spoken: nothing runs before it was redeemed, so nothing happened, and nothing can any more.
        """
        report, clock = message.payload, self._clock
        if (
            message.kind != "outcome"
            or "told" in report
            or report["outcome"] == "SUCCEEDED"
            or report["error_code"] not in _NOT_RUN
        ):
            return False

        def work(connection: Connection) -> None:
            connection.execute(
                sa.update(TOOL_CALLS)
                .where(
                    TOOL_CALLS.c.run_id == message.run_id,
                    TOOL_CALLS.c.execution_id == report["execution_id"],
                    TOOL_CALLS.c.state.in_(before(EffectEvent.VOID)),
                    TOOL_CALLS.c.error_code == report["error_code"],
                    TOOL_CALLS.c.resolution == "",
                )
                .values(
                    state=after(EffectEvent.VOID),
                    error_code=NOT_REDEEMED,
                    status="",
                    output=None,
                    undo="",
                    told="",
                    updated_us=clock.now_us(),
                )
            )

        await self._database.write(work)
        return True

    async def settle(self, message: OutboxMessage, *, refusal: str = "") -> None:
        """Write that it was delivered, which drops its payload, or refused for good, which keeps it for a person.

        A tool's result is not kept even then: it is in the ledger, or in memory.
        """
        clock = self._clock
        this = {"outbox_id": message.outbox_id, "once": message.once}
        kept: Mapping[str, Any] = message.payload if refusal else {}
        if refusal and message.kind == "observation":
            kept = {name: message.payload[name] for name in _KEPT_OF_RESULTS}
        state = "refused" if refusal else "delivered"
        values = {"state": state, "refusal": refusal[:64], "payload": json.dumps(kept)}

        def work(connection: Connection) -> None:
            if message.of_deleted:
                _FORGET.later(connection, this)
                return
            full = refusal == _FULL and message.kind == "transcript" and not _is_known_full(connection, message)
            if _SETTLE.run(connection, {**this, "now_us": clock.now_us(), **values}) and full:
                _tell_full(connection, message, clock.now_us())

        await self._database.write(work)
