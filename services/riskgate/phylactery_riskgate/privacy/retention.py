"""Retention: old records of calls are emptied, while leaf hashes and signed heads stay.

An entry loses its record and its values, and the rows of its call are emptied with it; the log still verifies, because
the tree holds leaf hashes. Each step is one transaction with its own record, which names every emptied entry: an empty
entry without such a record was emptied by other means, and verify reports it. A killed process loses at most one step,
and the next run continues where entries are left.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.entries import record_of
from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, AuditLog, Entry, Kind
from phylactery_riskgate.audit.merkle import leaf_hash
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.privacy import retention_store as rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.store.audit_search import Bounds, FoundEntry, Position, scan
from phylactery_riskgate.store.decisions import CallKey
from phylactery_riskgate.store.tasks import find_task
from phylactery_riskgate.tasks.snapshot import TASK_ID

DAY_US = 86_400 * MICROSECONDS
CONTENT = frozenset(
    str(kind)
    for kind in (
        Kind.DECISION,
        Kind.ACCESS_EVALUATED,
        Kind.EVALUATE_REFUSED,
        Kind.PERMIT_RENEWED,
        Kind.APPROVAL_ANSWERED,
        Kind.APPROVAL_REFUSED,
        Kind.APPROVAL_CLOSED,
        Kind.REDEEMED,
        Kind.REDEEM_REFUSED,
        Kind.OUTCOME,
        Kind.SHADOW_DIFFERENCE,
        Kind.TASK_BEGUN,
        Kind.TASK_ENDED,
    )
)
"""Kinds of records about calls. Records of operators, bundles, keys and erasures are kept forever."""
_AT_ONCE = 100
_STEPS = 50
"""Maximum steps per run, so that a backlog is processed alongside other work."""
_SLACK_US = 3_600 * MICROSECONDS
_TRUSTED_AFTER_SECONDS = 86_400.0

_log = get_logger("retention")


@dataclass(frozen=True, slots=True)
class Step:
    """The result of one step: entries to empty with their calls, entries kept for now, and where to continue."""

    tenant: str
    places: tuple[Place, ...] = ()
    calls: tuple[CallKey, ...] = ()
    kept: int = 0
    after: Position | None = None

    @property
    def next(self) -> tuple[str, Position | None]:
        """Return where the next step begins."""
        return self.tenant, self.after


@dataclass(slots=True)
class Retained:
    """What was emptied, or would be."""

    emptied: int = 0
    calls: int = 0
    kept: int = 0
    tenants: dict[str, int] = field(default_factory=dict)

    def add(self, step: Step) -> None:
        """Add the counts of a step."""
        self.emptied += len(step.places)
        self.calls += len(step.calls)
        self.kept += step.kept
        if step.places:
            self.tenants[step.tenant] = self.tenants.get(step.tenant, 0) + len(step.places)


class SteadyClock:
    """Clock for irreversible deletion: a clock that jumped ahead is not trusted for a day."""

    def __init__(self, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._known: tuple[int, float] | None = None
        self._ahead_since: float | None = None

    def now_us(self, newest_us: int) -> int:
        """Return the time; initially at most a day after ``newest_us``, the time of the last record."""
        now_us, at = self._clock.now_us(), self._monotonic()
        known_us, since = self._known or (newest_us + DAY_US, at)
        expected_us = known_us + round((at - since) * MICROSECONDS)
        if now_us <= expected_us + _SLACK_US:
            self._ahead_since = None
        elif self._ahead_since is None:
            self._ahead_since = at
            _log.warning(
                "the clock is ahead of the newest record: retention is paused for a day; check the clock",
                seconds_ahead=(now_us - expected_us) // MICROSECONDS,
            )
        if self._ahead_since is not None and at - self._ahead_since < _TRUSTED_AFTER_SECONDS:
            now_us = expected_us
        self._known = now_us, at
        return now_us


class Retention:
    """Periodic retention in a serving RiskGate."""

    def __init__(self, core: DecisionContext, days: int, steady: SteadyClock | None = None) -> None:
        """Set the age in days at which content is emptied, 0 for never."""
        self._core, self._days = core, days
        self._steady = steady or SteadyClock(core.clock)
        self._at: tuple[str, Position | None] = ("", None)
        """Where the next run continues, so that kept entries of one tenant do not block another's."""

    async def run(self) -> Retained:
        """Empty what is old enough, at most _STEPS steps. Raise Unavailable STORE_UNAVAILABLE."""
        done = Retained()
        if not self._days:
            return done
        newest_us = await self._core.database.read(rows.newest_us)
        before_us = max(1, self._steady.now_us(newest_us) - self._days * DAY_US)
        for _ in range(_STEPS):
            work = partial(next_step, audit=self._core.audit, at=self._at, before_us=before_us, now_us=self._now_us)
            made = await self._core.write(work)
            reach("riskgate.retained")
            if made is None:
                self._at = ("", None)
                break
            done.add(made)
            self._at = made.next
        if done.emptied:
            _log.info("retention", emptied=done.emptied, calls=done.calls, kept=done.kept, before_us=before_us)
        return done

    def _now_us(self) -> int:
        return self._core.clock.now_us()


def next_step(  # noqa: PLR0917 - its callers bind all but the connection
    connection: Connection,
    audit: AuditLog | None,
    at: tuple[str, Position | None],
    before_us: int,
    now_us: Callable[[], int] = lambda: 0,
    values: Mapping[str, Any] | None = None,
) -> Step | None:
    """Empty entries older than ``before_us`` in the next batch, and record it; return None at the end.

    Without an audit log nothing is changed, and the step reports what would be. Raise BusyError.
    """
    if audit is not None:
        rows.take_turn(connection)
    tenant, after = at
    if after is None:
        tenant = rows.next_tenant(connection, tenant)
        if not tenant:
            return None
    found = list(
        scan(
            connection,
            tenant,
            Bounds(end_us=before_us),
            after=after,
            oldest_first=True,
            limit=_AT_ONCE,
            kinds=CONTENT,
        )
    )
    made = _judged(connection, tenant, found, before_us)
    if audit is not None and made.places:
        rows.empty_entries(connection, made.places)
        for key in made.calls:
            rows.empty_call(connection, key)
        body = {
            "before_us": before_us,
            "entries": _ranges(made.places),
            "emptied": len(made.places),
            "calls": len(made.calls),
        }
        audit.append(
            connection, Entry(Kind.RETENTION, now_us(), replace(SYSTEM_PRINCIPAL, tenant=tenant), body, values or {})
        )
        reach("riskgate.retain")
    return made


def _judged(connection: Connection, tenant: str, found: Sequence[FoundEntry], before_us: int) -> Step:
    """Return the entries to empty, with their calls. An altered entry stays, as evidence."""
    needs: dict[CallKey, bool] = {}
    going: list[tuple[Place, CallKey | None]] = []
    for one in found:
        record = record_of(one.stored.record)
        if record.get("tenant") != tenant or leaf_hash(one.stored.record) != one.stored.leaf:
            continue
        key = _call_of(tenant, record)
        stays = _of_open_task(connection, tenant, record, before_us)
        if key is not None:
            known = needs.get(key)
            stays = stays or (rows.needed(connection, key, before_us) if known is None else known)
            needs[key] = stays
        if not stays:
            going.append((one.place, key))
    going = [(place, key) for place, key in going if key is None or not needs[key]]
    calls = {key: None for _, key in going if key is not None}
    after = found[-1].position if len(found) == _AT_ONCE else None
    return Step(tenant, tuple(place for place, _ in going), tuple(calls), len(found) - len(going), after)


def _call_of(tenant: str, record: Mapping[str, Any]) -> CallKey | None:
    """Return the call a record is about; records of an approval name the requester, and are by the voter."""
    subject = record.get("requester") or record.get("subject")
    run, call = record.get("run_id"), record.get("tool_call_id")
    if isinstance(subject, str) and isinstance(run, str) and isinstance(call, str) and call:
        return CallKey(tenant, subject, run, call)
    return None


def _of_open_task(connection: Connection, tenant: str, record: Mapping[str, Any], before_us: int) -> bool:
    subject, task_id = record.get("requester") or record.get("subject"), record.get(TASK_ID)
    if not (isinstance(subject, str) and isinstance(task_id, str) and task_id):
        return False
    task = find_task(connection, tenant, subject, task_id)
    return task is not None and not task.end_us and task.expire_us >= before_us


def _ranges(places: Sequence[Place]) -> dict[str, list[list[int]]]:
    """Return places by log, each run of adjacent indexes as its first and last."""
    ranges: dict[str, list[list[int]]] = {}
    for place in sorted(places, key=lambda one: (one.log, one.index)):
        of_log = ranges.setdefault(place.log, [])
        if of_log and of_log[-1][1] == place.index - 1:
            of_log[-1][1] = place.index
        else:
            of_log.append([place.index, place.index])
    return ranges
