"""Store of asks: the calls that used them up, and the words that took them back.

Redeem and BeginTask read and write both under one lock per task, so that a concurrent redemption and retraction are
ordered.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query, RowInsert, Update
from sqlalchemy.engine import Connection

from phylactery_riskgate.store import locks
from phylactery_riskgate.store.decisions import CallKey
from phylactery_riskgate.store.tables import ask_uses, from_json, retractions, to_json

_U, _R = ask_uses.c, retractions.c
_ADD_USE = RowInsert(ask_uses, "tenant", "subject", "task_id", "ask", "run_id", "tool_call_id", "args_hash", "use_us")
_ADD_RETRACTION = RowInsert(
    retractions, "tenant", "subject", "task_id", "by_task_id", "everything", "forbidden", "create_us"
)
_DROP = tuple(
    Update(sa.delete(table).where(table.c.task_id == sa.bindparam("at_id"))) for table in (ask_uses, retractions)
)
_DROP_USE = Update(
    sa.delete(ask_uses).where(
        *(ask_uses.c[name] == sa.bindparam(name) for name in ("tenant", "subject", "run_id", "tool_call_id"))
    )
)


@dataclass(frozen=True, slots=True)
class AskUse:
    """One use of an ask: the task whose words contain it, its name, and the keyed hash of the call's arguments."""

    task_id: str
    ask: str
    args_hash: str


@dataclass(frozen=True, slots=True)
class ForbiddenRow:
    """One part of a retraction: effects by name, nouns and targets as keyed hashes."""

    effects: frozenset[str]
    nouns: frozenset[str]
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class RetractionRow:
    """What the words of a later task took back from an earlier one."""

    task_id: str
    by_task_id: str
    everything: bool
    forbidden: tuple[ForbiddenRow, ...]


def lock(connection: Connection, tenant: str, subject: str, task_ids: Collection[str]) -> None:
    """Exclude other replicas from redeeming or retracting calls of these tasks. Raise BusyError."""
    for task_id in task_ids:
        locks.take(connection, f"riskgate-asks\x00{tenant}\x00{subject}\x00{task_id}")


def insert_use(connection: Connection, key: CallKey, ask: AskUse, now_us: int) -> None:
    """Insert the use of an ask by a redeemed call."""
    row = (key.tenant, key.subject, ask.task_id, ask.ask, key.run_id, key.tool_call_id, ask.args_hash, now_us)
    _ADD_USE.run(connection, [row])


def delete_use(connection: Connection, key: CallKey) -> bool:
    """Delete the use of an ask by a call that did nothing; return True if it was one."""
    return bool(_DROP_USE.run(connection, key._asdict()))


def uses_of(connection: Connection, tenant: str, subject: str, task_ids: Collection[str]) -> list[AskUse]:
    """Return every use of the asks of these tasks."""
    size, named = _named(task_ids)
    rows = _uses(size).all(connection, {"tenant": tenant, "subject": subject, **named})
    return [AskUse(row.task_id, row.ask, row.args_hash) for row in rows]


def insert_retraction(
    connection: Connection, tenant: str, subject: str, retraction: RetractionRow, now_us: int
) -> None:
    """Insert what later words took back from a task."""
    told = to_json([[sorted(one.effects), sorted(one.nouns), sorted(one.targets)] for one in retraction.forbidden])
    row = (tenant, subject, retraction.task_id, retraction.by_task_id, retraction.everything, told, now_us)
    _ADD_RETRACTION.run(connection, [row])


def find_retractions(
    connection: Connection, tenant: str, subject: str, task_ids: Collection[str]
) -> list[RetractionRow]:
    """Return the retractions of these tasks, the oldest first."""
    size, named = _named(task_ids)
    rows = _retractions(size).all(connection, {"tenant": tenant, "subject": subject, **named})
    return [
        RetractionRow(row.task_id, row.by_task_id, bool(row.everything), _read(bytes(row.forbidden))) for row in rows
    ]


def drop(connection: Connection, task_id: str) -> None:
    """Delete the uses and retractions of a task's asks."""
    for statement in _DROP:
        statement.run(connection, {"at_id": task_id})


def _named(task_ids: Collection[str]) -> tuple[int, dict[str, str]]:
    """Return a query's size, rounded up to a power of two for the statement cache, and its parameters."""
    ids = list(task_ids)
    size = 1 << (len(ids) - 1).bit_length()
    return size, {f"task_{number}": ids[min(number, len(ids) - 1)] for number in range(size)}


def _read(told: bytes) -> tuple[ForbiddenRow, ...]:
    return tuple(ForbiddenRow(*map(frozenset, parts)) for parts in from_json(told))


@cache
def _uses(size: int) -> Query:
    """Return the query for the uses of asks of ``size`` tasks."""
    return Query(
        sa.select(_U.task_id, _U.ask, _U.args_hash).where(
            _U.tenant == sa.bindparam("tenant"),
            _U.subject == sa.bindparam("subject"),
            _U.task_id.in_([sa.bindparam(f"task_{number}") for number in range(size)]),
        )
    )


@cache
def _retractions(size: int) -> Query:
    """Return the query for the retractions of ``size`` tasks."""
    return Query(
        sa.select(_R.task_id, _R.by_task_id, _R.everything, _R.forbidden)
        .where(
            _R.tenant == sa.bindparam("tenant"),
            _R.subject == sa.bindparam("subject"),
            _R.task_id.in_([sa.bindparam(f"task_{number}") for number in range(size)]),
        )
        .order_by(_R.create_us, _R.by_task_id)
    )
