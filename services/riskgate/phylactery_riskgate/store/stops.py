"""Store of operator stops: freezes, one row each, and revoked decisions.

Redeem holds a lock that a freeze and a revocation wait for, so that once either is answered, nothing it covers is
redeemed. Evaluate takes no lock: its permit still has to pass Redeem.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from phylactery_chassis.db.unit import unit_of
from sqlalchemy.engine import Connection

from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import decisions, freezes, outcomes, redemptions, row_of

EVERY_TENANT = ""
MAX_COUNTED = 1_000
_LOCK, _TURN = "riskgate-stops", "riskgate-stops-turn"
_KNOWN = "freezes in force"


class Scope(StrEnum):
    """The scope of a freeze."""

    ALL = "all"
    TENANT = "tenant"
    USER = "user"
    TOOL = "tool"


class Target(NamedTuple):
    """The calls a freeze applies to; an empty tenant means every tenant."""

    scope: Scope
    tenant: str
    name: str

    def means(self, tenant: str, subject: str, tool: str) -> bool:
        """Return True if the target covers a call."""
        if self.tenant not in (EVERY_TENANT, tenant):
            return False
        return self.scope in (Scope.ALL, Scope.TENANT) or self.name == (subject if self.scope is Scope.USER else tool)


@dataclass(frozen=True, slots=True)
class FreezeRow:
    """One freeze; ``by_installation`` says whether the installation or the tenant can lift it."""

    scope: Scope
    tenant: str
    name: str
    by_installation: bool
    freeze_us: int
    frozen_by: str
    frozen_by_tenant: str
    reason: str

    @property
    def target(self) -> Target:
        """Return the target of the freeze."""
        return Target(self.scope, self.tenant, self.name)


_ALL = Query(sa.select(freezes).order_by(freezes.c.freeze_us, freezes.c.scope, freezes.c.tenant, freezes.c.name))


class _InForce:
    """Part of a unit of work: the freezes, read once for all its jobs, and whether they are locked."""

    def __init__(self) -> None:
        self.rows: list[FreezeRow] | None = None
        self.locked = False

    def mark(self) -> None:
        """No-op: a job's changes are discarded as a whole."""

    def undo(self, mark: None) -> None:  # noqa: ARG002 - mark returns nothing
        """Discard everything: the lock is released with its savepoint, and the job's changes are gone."""
        self.rows, self.locked = None, False

    def flush(self, connection: Connection) -> None:
        """No-op."""

    def settle(self, *, committed: bool) -> None:
        """No-op."""


def in_force(connection: Connection, *, lock: bool = False) -> list[FreezeRow]:
    """Return every freeze, oldest first; with lock, none can be added until the commit. Raise BusyError."""
    unit = unit_of(connection)
    if unit is None:
        return _read(connection)
    known = unit.part(_KNOWN, _InForce)
    if lock and not known.locked:
        locks.share(connection, _LOCK)
        known.locked, known.rows = True, None
    if known.rows is None:
        known.rows = _read(connection)
    return known.rows


def find_freeze(
    connection: Connection, tenant: str, subject: str, tool: str, *, lock: bool = False
) -> FreezeRow | None:
    """Return the oldest freeze that covers a call, or None. Raise BusyError, as in_force."""
    return next((one for one in in_force(connection, lock=lock) if one.target.means(tenant, subject, tool)), None)


def keep_out(connection: Connection) -> None:
    """Exclude every Redeem until the commit, once running ones have ended. Raise BusyError.

    It waits inside the database, and only one writer at a time may; Redeem itself never waits.
    """
    locks.take(connection, _TURN)
    locks.wait_for(connection, _LOCK)
    _forget(connection)  # what was read before the wait may be outdated


def insert_freeze(connection: Connection, row: FreezeRow) -> None:
    """Insert a freeze."""
    connection.execute(sa.insert(freezes).values(**row_of(row)))
    _forget(connection)


def delete_freeze(connection: Connection, target: Target, *, by_installation: bool) -> bool:
    """Delete a freeze; return True if there was one."""
    done = connection.execute(
        sa.delete(freezes).where(
            freezes.c.scope == str(target.scope),
            freezes.c.tenant == target.tenant,
            freezes.c.name == target.name,
            freezes.c.by_installation == by_installation,
        )
    )
    _forget(connection)
    return bool(done.rowcount)


def anything_decided(connection: Connection, target: Target) -> bool:
    """Return True if there is a decision about a call of this tenant, or of this user.

    For a tool, and for everything, return True: their existence is known otherwise.
    """
    if target.scope in (Scope.ALL, Scope.TOOL):
        return True
    query = sa.select(decisions.c.id).where(decisions.c.tenant == target.tenant)
    if target.scope is Scope.USER:
        query = query.where(decisions.c.subject == target.name)
    return connection.execute(query.limit(1)).first() is not None


def count_running(connection: Connection, target: Target) -> int:
    """Count redeemed calls of a target without a reported outcome, up to MAX_COUNTED."""
    reported = sa.exists().where(
        outcomes.c.tenant == redemptions.c.tenant,
        outcomes.c.subject == redemptions.c.subject,
        outcomes.c.execution_id == redemptions.c.execution_id,
    )
    query = sa.select(redemptions.c.execution_id).where(~reported)
    if target.tenant != EVERY_TENANT:
        query = query.where(redemptions.c.tenant == target.tenant)
    if target.scope is Scope.USER:
        query = query.where(redemptions.c.subject == target.name)
    if target.scope is Scope.TOOL:
        query = query.join(decisions, decisions.c.id == redemptions.c.decision_id).where(
            decisions.c.tool == target.name
        )
    counted = query.limit(MAX_COUNTED).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(counted)).scalar_one())


def _read(connection: Connection) -> list[FreezeRow]:
    return [
        FreezeRow(
            Scope(row.scope),
            row.tenant,
            row.name,
            bool(row.by_installation),
            row.freeze_us,
            row.frozen_by,
            row.frozen_by_tenant,
            row.reason,
        )
        for row in _ALL.all(connection, {})
    ]


def _forget(connection: Connection) -> None:
    unit = unit_of(connection)
    known = None if unit is None else unit.find(_KNOWN)
    if known is not None:
        known.rows = None
