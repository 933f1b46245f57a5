"""Store of notices and sinks. A notice is claimed with a lease, so that of several replicas one sends it.

A process that dies while it sends leaves its claim: the next start on its machine frees it, and otherwise its end does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.notices.model import NoticeRow, NoticeState, SinkRow
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import notice_sinks, notices

_DAY_US: Final = 86_400 * MICROSECONDS
_KEPT_US: Final = 7 * _DAY_US
"""How long a notice that was sent, or given up, is kept for `riskgate notices status`."""
_LEFT_US: Final = 21 * _DAY_US
"""How long one for a sink that takes none stays: longer than any approval waits and any sink is tried."""
_AT_ONCE: Final = 1_000
_N, _S = notices.c, notice_sinks.c
_OPEN: Final = str(NoticeState.OPEN)
LEFT_FILE: Final = "NOT_CONFIGURED"
"""Why a notice was dropped: its sink is not in the file any more."""


def insert_notices(connection: Connection, rows: Sequence[NoticeRow]) -> int:
    """Insert notices, except those that a sink is told already; return how many were new."""
    added = 0
    for row in rows:
        made = insert(notices).values(**asdict(row)).on_conflict_do_nothing().returning(_N.id)
        added += connection.execute(made).first() is not None
    return added


def newest_due_us(connection: Connection, sinks: Collection[str], about: str, events: Collection[str]) -> int:
    """Return the latest time at which sinks were to be told one of these events about the same, 0 for none."""
    if not sinks:
        return 0
    of = (_N.sink.in_(sinks), _N.about == about, _N.event.in_(events))
    return connection.execute(sa.select(sa.func.max(_N.due_us)).where(*of)).scalar() or 0


def anything_due(connection: Connection, sink: str, now_us: int) -> bool:
    """Return True if a notice of a sink can be claimed, or may be."""
    query = sa.select(_N.id).where(_N.sink == sink, _N.state == _OPEN, _N.next_us <= now_us, _N.lease_us <= now_us)
    return connection.execute(query.limit(1)).first() is not None


def claim(connection: Connection, sink: str, by: str, now_us: int, until_us: int) -> NoticeRow | None:
    """Claim the next due notice of a sink for a process until a time, None if there is none.

    One whose approval has an earlier open notice waits for that one.
    """
    earlier = notices.alias()
    before = sa.or_(earlier.c.due_us < _N.due_us, sa.and_(earlier.c.due_us == _N.due_us, earlier.c.id < _N.id))
    blocked = sa.exists().where(
        earlier.c.sink == _N.sink, earlier.c.about == _N.about, earlier.c.state == _OPEN, before
    )
    query = (
        sa.select(notices)
        .where(_N.sink == sink, _N.state == _OPEN, _N.next_us <= now_us, _N.lease_us <= now_us)
        .where(sa.or_(_N.about == "", ~blocked))
        .order_by(_N.due_us, _N.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=notices)
    )
    row = connection.execute(query).first()
    if row is None:
        return None
    values = {"lease_us": until_us, "claimed_by": by, "tries": row.tries + 1}
    connection.execute(sa.update(notices).where(_N.id == row.id, _N.sink == sink).values(values))
    return NoticeRow(**(row._asdict() | values))


def free_claims(connection: Connection, holders: Collection[str]) -> int:
    """Free what processes claimed that are known to have ended; return how many notices."""
    if not holders:
        return 0
    held = (_N.state == _OPEN, _N.lease_us > 0, _N.claimed_by.in_(holders))
    return connection.execute(sa.update(notices).where(*held).values(lease_us=0, claimed_by="")).rowcount


def holders(connection: Connection) -> list[str]:
    """Return the processes that claimed open notices."""
    held = (_N.state == _OPEN, _N.claimed_by != "")
    return list(connection.execute(sa.select(_N.claimed_by).distinct().where(*held)).scalars())


def end(connection: Connection, row: NoticeRow, state: NoticeState, now_us: int, error: str = "") -> bool:
    """End a claimed notice, whose detail is not needed any more; return False if another process claimed it since."""
    values: dict[str, Any] = {"state": str(state), "end_us": now_us, "lease_us": 0, "detail": b"", "error": error}
    return bool(connection.execute(sa.update(notices).where(*_claimed(row)).values(values)).rowcount)


def postpone(connection: Connection, row: NoticeRow, next_us: int, error: str) -> None:
    """Let a claimed notice be tried again at a time."""
    values: dict[str, Any] = {"next_us": next_us, "lease_us": 0, "claimed_by": "", "error": error}
    connection.execute(sa.update(notices).where(*_claimed(row)).values(values))


def _claimed(row: NoticeRow) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        _N.id == row.id,
        _N.sink == row.sink,
        _N.state == _OPEN,
        _N.claimed_by == row.claimed_by,
        _N.tries == row.tries,
    )


def begin_sink(connection: Connection, name: str, fingerprint: str) -> SinkRow:
    """Note a sink that is served; what was known of one with other settings is forgotten. Return what is known."""
    known = find_sink(connection, name)
    if known is not None and known.fingerprint == fingerprint:
        return known
    fresh = SinkRow(name, fingerprint)
    made = insert(notice_sinks).values(**asdict(fresh))
    connection.execute(made.on_conflict_do_update(index_elements=[_S.name], set_=asdict(fresh)))
    return fresh


def drop_others(connection: Connection, names: Collection[str], now_us: int) -> dict[str, int]:
    """Drop what waits for other sinks than these for a day; return how many notices by sink.

    Not at once: of replicas that are restarted one by one, some know a new sink already.
    """
    left = (_N.sink.not_in(names), _N.state == _OPEN, _N.due_us < now_us - _DAY_US)
    counted = sa.select(_N.sink, sa.func.count()).where(*left).group_by(_N.sink)
    found = {name: int(count) for name, count in connection.execute(counted)}
    if found:
        ended = {"state": str(NoticeState.DROPPED), "end_us": now_us, "lease_us": 0, "detail": b"", "error": LEFT_FILE}
        connection.execute(sa.update(notices).where(*left).values(ended))
    return found


def find_sink(connection: Connection, name: str) -> SinkRow | None:
    """Return what is known of a sink."""
    row = connection.execute(sa.select(notice_sinks).where(_S.name == name)).first()
    return None if row is None else SinkRow(**row._asdict())


def sinks_of(connection: Connection) -> list[SinkRow]:
    """Return what is known of all sinks, by name."""
    return [SinkRow(**row._asdict()) for row in connection.execute(sa.select(notice_sinks).order_by(_S.name))]


def lock_sink(connection: Connection, name: str) -> None:
    """Exclude other replicas from noting how a sink does, until the commit. Raise BusyError."""
    locks.take(connection, f"notice sink {name}")


def note_taken(connection: Connection, name: str, now_us: int) -> None:
    """Note that a sink took a notice."""
    values = {"ok_us": now_us, "fail_us": 0, "fails": 0, "error": "", "told": ""}
    connection.execute(sa.update(notice_sinks).where(_S.name == name).values(values))


def note_failed(connection: Connection, name: str, now_us: int, error: str, told: str, *, gone: bool) -> None:
    """Note that a sink did not take a notice, and why; one that is gone is disabled."""
    since = sa.case((_S.fail_us == 0, now_us), else_=_S.fail_us)
    values: dict[str, Any] = {"fail_us": since, "fails": _S.fails + 1, "error": error, "told": told[:300]}
    values |= {"disabled_us": now_us} if gone else {}
    connection.execute(sa.update(notice_sinks).where(_S.name == name).values(values))


def resume_sink(connection: Connection, name: str) -> bool:
    """Enable a disabled sink again, and let what waits for it be tried at once; return False if there is none."""
    values = {"disabled_us": 0, "fail_us": 0, "fails": 0, "error": "", "told": ""}
    known = connection.execute(sa.update(notice_sinks).where(_S.name == name).values(values)).rowcount
    connection.execute(
        sa.update(notices).where(_N.sink == name, _N.state == _OPEN, _N.tries > 0).values(next_us=_N.due_us)
    )
    return bool(known)


class Counts(NamedTuple):
    """Of one sink: notices that are due, when the oldest was, and how many were sent and given up in a week."""

    waiting: int = 0
    oldest_us: int = 0
    sent: int = 0
    failed: int = 0
    dropped: int = 0
    """Because the file has no such sink any more."""


def counts_of(connection: Connection, now_us: int) -> dict[str, Counts]:
    """Return the counts by sink."""
    due = sa.and_(_N.state == _OPEN, _N.due_us <= now_us)
    query = sa.select(
        _N.sink,
        sa.func.count().filter(due).label("waiting"),
        sa.func.min(_N.due_us).filter(due).label("oldest"),
        sa.func.count().filter(_N.state == str(NoticeState.SENT)).label("sent"),
        sa.func.count().filter(_N.state == str(NoticeState.FAILED)).label("failed"),
        sa.func.count().filter(_N.error == LEFT_FILE).label("dropped"),
    ).group_by(_N.sink)
    return {row.sink: _counts(row) for row in connection.execute(query)}


def _counts(row: Row[Any]) -> Counts:
    return Counts(row.waiting, row.oldest or 0, row.sent, row.failed, row.dropped)


def prune(connection: Connection, now_us: int) -> int:
    """Drop at most 1,000 notices that ended a week ago, or for which no sink was there; return how many.

    Return 0 if another replica does it.
    """
    if not locks.try_take(connection, "old notices"):
        return 0
    over = sa.or_(
        sa.and_(_N.end_us > 0, _N.end_us < now_us - _KEPT_US),
        sa.and_(_N.end_us == 0, _N.create_us < now_us - _LEFT_US),
    )
    some = sa.select(_N.id, _N.sink).where(over).limit(_AT_ONCE).subquery()
    found = sa.exists().where(some.c.id == _N.id, some.c.sink == _N.sink)
    return connection.execute(sa.delete(notices).where(found)).rowcount


def erase_of(connection: Connection, tenant: str, subject: str, *, but: Collection[str] = ()) -> int:
    """Drop the notices about a person, except those about these approvals; return how many."""
    of_person = (_N.tenant == tenant, _N.subject == subject, _N.about.not_in(but))
    return connection.execute(sa.delete(notices).where(*of_person)).rowcount


def erase_about(connection: Connection, tenant: str, about: Collection[str]) -> None:
    """Drop the notices about approvals or executions."""
    if about:
        connection.execute(sa.delete(notices).where(_N.tenant == tenant, _N.about.in_(about)))
