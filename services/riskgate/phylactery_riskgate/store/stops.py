"""Store of operator stops: freezes, one row each, and revoked decisions.

A lifted freeze keeps its row for a day: permits issued before it are void, however soon it is lifted. Which came first
is told by numbers, because the clocks of replicas differ, and because Evaluate may record a permit while a freeze
commits that it did not see.

Redeem holds a lock that a freeze and a revocation wait for, so that once either is answered, nothing it covers is
redeemed. Evaluate takes no lock: its permit still has to pass Redeem.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.statements import Query
from phylactery_chassis.db.unit import unit_of
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.engine import Connection

from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import decisions, freezes, outcomes, redemptions, row_of

EVERY_TENANT = ""
MAX_COUNTED = 1_000
_KEPT_US = 24 * 3600 * MICROSECONDS
"""How long a lifted freeze is kept, much longer than any permit is valid."""
_LOCK, _TURN = "riskgate-stops", "riskgate-stops-turn"
_KNOWN = "freezes in force"


class Scope(StrEnum):
    """The scope of a freeze."""

    ALL = "all"
    TENANT = "tenant"
    USER = "user"
    TOOL = "tool"
    ACTOR = "actor"


class Target(NamedTuple):
    """The calls a freeze applies to; an empty tenant means every tenant."""

    scope: Scope
    tenant: str
    name: str

    def means(self, who: Principal, tool: str) -> bool:
        """Return True if the target covers a call."""
        if self.tenant not in (EVERY_TENANT, who.tenant):
            return False
        named = {Scope.USER: who.subject, Scope.TOOL: tool, Scope.ACTOR: who.actor or who.subject}
        return self.scope not in named or self.name == named[self.scope]


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
    number: int = 0
    """Ascending in the order in which targets were frozen; given by insert_freeze."""
    lift_us: int = 0
    """When it was lifted, 0 while it is in force."""

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
    return [one for one in _known(connection, lock=lock) if not one.lift_us]


def newest(connection: Connection) -> int:
    """Return the number of the newest freeze, in force or lifted; 0 if there was none."""
    return max((one.number for one in _known(connection)), default=0)


def frozen_since(connection: Connection, who: Principal, tool: str, number: int) -> bool:
    """Return True if a freeze after the one of this number covers a call, in force or lifted."""
    return any(one.number > number and one.target.means(who, tool) for one in _known(connection))


def _known(connection: Connection, *, lock: bool = False) -> list[FreezeRow]:
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


def find_freeze(connection: Connection, who: Principal, tool: str, *, lock: bool = False) -> FreezeRow | None:
    """Return the oldest freeze that covers a call, or None. Raise BusyError, as in_force."""
    return next((one for one in in_force(connection, lock=lock) if one.target.means(who, tool)), None)


def keep_out(connection: Connection) -> None:
    """Exclude every Redeem until the commit, once running ones have ended. Raise BusyError.

    It waits inside the database, and only one writer at a time may; Redeem itself never waits.
    """
    locks.take(connection, _TURN)
    locks.wait_for(connection, _LOCK)
    _forget(connection)  # what was read before the wait may be outdated


def insert_freeze(connection: Connection, row: FreezeRow) -> None:
    """Insert a freeze with the next number, in place of a lifted one; keep_out orders it among others.

    Lifted ones after which no permit can still be valid are dropped. The newest number stays, so that none is reused.
    """
    number = newest(connection)
    over = sa.and_(freezes.c.lift_us != 0, freezes.c.lift_us < row.freeze_us - _KEPT_US, freezes.c.number != number)
    connection.execute(sa.delete(freezes).where(sa.or_(over, _at(row.target, by_installation=row.by_installation))))
    connection.execute(sa.insert(freezes).values(**row_of(replace(row, number=number + 1))))
    _forget(connection)


def lift_freeze(connection: Connection, target: Target, now_us: int, *, by_installation: bool) -> bool:
    """Lift a freeze; return True if there was one in force."""
    lifted = sa.update(freezes).where(_at(target, by_installation=by_installation), freezes.c.lift_us == 0)
    done = connection.execute(lifted.values(lift_us=now_us))
    _forget(connection)
    return bool(done.rowcount)


def _at(target: Target, *, by_installation: bool) -> sa.ColumnElement[bool]:
    return sa.and_(
        freezes.c.scope == str(target.scope),
        freezes.c.tenant == target.tenant,
        freezes.c.name == target.name,
        freezes.c.by_installation == by_installation,
    )


def anything_decided(connection: Connection, target: Target) -> bool:
    """Return True if there is a decision about a call of this tenant, of this user, or by this actor.

    For a tool, and for everything, return True: their existence is known otherwise.
    """
    if target.scope in (Scope.ALL, Scope.TOOL):
        return True
    query = sa.select(decisions.c.id)
    if target.tenant != EVERY_TENANT:
        query = query.where(decisions.c.tenant == target.tenant)
    if target.scope is Scope.ACTOR:
        query = query.where(_by(target.name))
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
    if target.scope in (Scope.TOOL, Scope.ACTOR):
        of_target = decisions.c.tool == target.name if target.scope is Scope.TOOL else _by(target.name)
        query = query.join(decisions, decisions.c.id == redemptions.c.decision_id).where(of_target)
    counted = query.limit(MAX_COUNTED).subquery()
    return int(connection.execute(sa.select(sa.func.count()).select_from(counted)).scalar_one())


def _by(actor: str) -> sa.ColumnElement[bool]:
    """Return the condition for decisions about calls that an identity proposed, for others or for itself."""
    return sa.or_(decisions.c.actor == actor, sa.and_(decisions.c.actor == "", decisions.c.subject == actor))


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
            row.number,
            row.lift_us,
        )
        for row in _ALL.all(connection, {})
    ]


def _forget(connection: Connection) -> None:
    unit = unit_of(connection)
    known = None if unit is None else unit.find(_KNOWN)
    if known is not None:
        known.rows = None
