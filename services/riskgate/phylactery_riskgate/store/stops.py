"""What operators stopped: freezes, one row each, and decisions that were revoked.

Redeem holds a lock that a freeze and a revocation wait for, so that after either is answered nothing of it is redeemed.
Evaluate takes no lock: what it answers is an invitation to Redeem.
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
    """What a freeze stops."""

    ALL = "all"
    TENANT = "tenant"
    USER = "user"
    TOOL = "tool"


class Target(NamedTuple):
    """What is frozen; an empty tenant is every tenant."""

    scope: Scope
    tenant: str
    name: str

    def means(self, tenant: str, subject: str, tool: str) -> bool:
        """Return True if a call is one of those that are frozen."""
        if self.tenant not in (EVERY_TENANT, tenant):
            return False
        return self.scope in (Scope.ALL, Scope.TENANT) or self.name == (subject if self.scope is Scope.USER else tool)


@dataclass(frozen=True, slots=True)
class FreezeRow:
    """One freeze; ``by_installation`` says who can lift it."""

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
        """What is frozen."""
        return Target(self.scope, self.tenant, self.name)


_ALL = Query(sa.select(freezes).order_by(freezes.c.freeze_us, freezes.c.scope, freezes.c.tenant, freezes.c.name))


class _InForce:
    """A part of a unit of work: what is frozen, read once for all its jobs, and whether nobody freezes meanwhile."""

    def __init__(self) -> None:
        self.rows: list[FreezeRow] | None = None
        self.locked = False

    def mark(self) -> None:
        """Have nothing to note: what a job did is forgotten as a whole."""

    def undo(self, mark: None) -> None:  # noqa: ARG002 - it has noted nothing
        """Forget everything: a lock goes with the savepoint it was taken in, and so does what the job changed."""
        self.rows, self.locked = None, False

    def flush(self, connection: Connection) -> None:
        """Have nothing to write."""

    def settle(self, *, committed: bool) -> None:
        """Have nothing to remember."""


def in_force(connection: Connection, *, lock: bool = False) -> list[FreezeRow]:
    """Return every freeze, oldest first; lock keeps further ones out until the commit. Raise BusyError."""
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
    """Return the oldest freeze that stops a call, None where none does. Raise BusyError, as in_force."""
    return next((one for one in in_force(connection, lock=lock) if one.target.means(tenant, subject, tool)), None)


def keep_out(connection: Connection) -> None:
    """Keep every Redeem out until the commit, once those that are at it have ended. Raise BusyError.

    It waits inside the database, which only one at a time may: whoever redeems never waits for anybody.
    """
    locks.take(connection, _TURN)
    locks.wait_for(connection, _LOCK)
    _forget(connection)  # what was read before the wait is old


def insert_freeze(connection: Connection, row: FreezeRow) -> None:
    """Add a freeze."""
    connection.execute(sa.insert(freezes).values(**row_of(row)))
    _forget(connection)


def delete_freeze(connection: Connection, target: Target, *, by_installation: bool) -> bool:
    """Remove a freeze; return True if there was one."""
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
    """Return True if a decision about a call of this tenant, or of this user of it, is on record.

    It says nothing of a tool, nor of everything: these are known anyhow.
    """
    if target.scope in (Scope.ALL, Scope.TOOL):
        return True
    query = sa.select(decisions.c.id).where(decisions.c.tenant == target.tenant)
    if target.scope is Scope.USER:
        query = query.where(decisions.c.subject == target.name)
    return connection.execute(query.limit(1)).first() is not None


def count_running(connection: Connection, target: Target) -> int:
    """Count redeemed calls a target means whose outcome nobody has reported, up to MAX_COUNTED."""
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
