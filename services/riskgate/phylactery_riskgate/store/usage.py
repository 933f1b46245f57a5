"""Store of budget counters: one row per call and one per recipient, under the key of a budget.

Times are the counters' own: never before the newest count of the same key, whatever the clock says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import row_of, usage_calls, usage_recipients

_HALF = 32
_LOW = 2**_HALF - 1
_KEYS_AT_ONCE = 100

# built once: building a statement costs several times what SQLite takes to run it
_TABLES = (usage_calls, usage_recipients)


def _of_key(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(table.c[name] == sa.bindparam(f"at_{name}") for name in ("tenant", "budget", "key"))


_NEWEST = sa.select(sa.func.max(usage_calls.c.count_us)).where(*_of_key(usage_calls))


def _sum(part: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    same = usage_calls.c.currency == sa.bindparam("currency")
    return sa.func.coalesce(sa.func.sum(sa.case((same, part), else_=0)), 0)


# two sums of half the bits each: amounts fit into 64 bits, but their sum may not
_COUNTED = sa.select(
    sa.func.count(),
    _sum(usage_calls.c.amount.bitwise_rshift(sa.literal_column(str(_HALF)))),
    _sum(usage_calls.c.amount.bitwise_and(sa.literal_column(str(_LOW)))),
).where(*_of_key(usage_calls), usage_calls.c.count_us > sa.bindparam("since_us"))
_RECIPIENTS = sa.select(sa.func.count()).where(
    *_of_key(usage_recipients), usage_recipients.c.count_us > sa.bindparam("since_us")
)
_KNOWN = _RECIPIENTS.where(usage_recipients.c.recipient.in_(sa.bindparam("recipients", expanding=True)))
_ADD_CALL, _ADD_RECIPIENT = sa.insert(usage_calls), sa.insert(usage_recipients)
_FORGET = tuple(
    sa.delete(table).where(*_of_key(table), table.c.count_us <= sa.bindparam("since_us")) for table in _TABLES
)
_RENEW = sa.delete(usage_recipients).where(
    *_of_key(usage_recipients), usage_recipients.c.recipient == sa.bindparam("at_recipient")
)
_PRUNE = tuple(
    (
        sa.select(table.c.tenant, table.c.budget, table.c.key)
        .where(table.c.end_us < sa.bindparam("before_us"))
        .distinct()
        .limit(_KEYS_AT_ONCE),
        sa.delete(table).where(*_of_key(table), table.c.end_us < sa.bindparam("before_us")),
    )
    for table in _TABLES
)


@dataclass(frozen=True, slots=True)
class CounterKey:
    """The key of a budget's counters; ``key`` is a hash of what the budget counts separately."""

    tenant: str
    budget: str
    key: str


@dataclass(frozen=True, slots=True)
class Counted:
    """Counts under a key: calls, the sum of one currency's amounts in ten-thousandths, distinct recipients.

    ``known`` is how many of the requested recipients are among them.
    """

    calls: int
    amount: int
    recipients: int
    known: int


def lock(connection: Connection, at: CounterKey) -> None:
    """Lock a key's counters until the commit. Raise BusyError."""
    locks.take(connection, _lock_name(at))


def counter_time(connection: Connection, at: CounterKey, now_us: int) -> int:
    """Return the time of a key's counters: now, or its newest count if that is later."""
    return max(now_us, connection.execute(_NEWEST, _place(at)).scalar_one() or 0)


def counted_since(
    connection: Connection, at: CounterKey, since_us: int, currency: str, recipients: Sequence[str]
) -> Counted:
    """Return what was counted after a time."""
    values = {**_place(at), "since_us": since_us}
    calls, high, low = connection.execute(_COUNTED, {**values, "currency": currency}).one()
    distinct = connection.execute(_RECIPIENTS, values).scalar_one()
    known = connection.execute(_KNOWN, {**values, "recipients": list(recipients)}).scalar_one() if recipients else 0
    return Counted(calls, (int(high) << _HALF) + int(low), distinct, known)


@dataclass(frozen=True, slots=True)
class CallCount:
    """One call to count: its receipt, time and amount, and when it leaves the window."""

    receipt_id: str
    count_us: int
    end_us: int
    currency: str
    amount: int


def count_call(connection: Connection, at: CounterKey, call: CallCount, recipients: Sequence[str]) -> None:
    """Add a call to a key's counters."""
    connection.execute(_ADD_CALL, {**row_of(at), **row_of(call)})
    if recipients:
        connection.execute(_RENEW, [{**_place(at), "at_recipient": one} for one in recipients])
        times = {"count_us": call.count_us, "end_us": call.end_us}
        connection.execute(_ADD_RECIPIENT, [{**row_of(at), **times, "recipient": one} for one in recipients])


def forget_before(connection: Connection, at: CounterKey, since_us: int) -> None:
    """Delete a key's counts up to a time."""
    for statement in _FORGET:
        connection.execute(statement, {**_place(at), "since_us": since_us})


def prune(connection: Connection, before_us: int) -> int:
    """Delete counts that ended before a time, under at most 100 unlocked keys of any tenants; return how many."""
    dropped = 0
    for ended, drop in _PRUNE:
        for row in connection.execute(ended, {"before_us": before_us}).all():
            at = CounterKey(row.tenant, row.budget, row.key)
            if locks.try_take(connection, _lock_name(at)):
                dropped += connection.execute(drop, {**_place(at), "before_us": before_us}).rowcount
    return dropped


def _place(at: CounterKey) -> dict[str, str]:
    return {"at_tenant": at.tenant, "at_budget": at.budget, "at_key": at.key}


def _lock_name(at: CounterKey) -> str:
    return f"riskgate-usage\x00{at.tenant}\x00{at.budget}\x00{at.key}"
