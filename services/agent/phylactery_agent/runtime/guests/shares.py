"""What one person may use of a day: turns, forms begun, people called, tokens of a model.

A day is one of UTC. A use is counted in the transaction of what it is for, in one statement that also checks the limit,
so that no number of replicas passes it together. What was under way goes on, and the person is told once a day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

import sqlalchemy as sa
from phylactery_chassis.auth.levels import GUEST, is_of_channel
from phylactery_chassis.errors import ResourceExhausted
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.instruments import each, meter, start_at_zero
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.guests.lifts import level_in, told_level
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import SHARES

Kind: TypeAlias = Literal["turns", "answers", "forms", "escalations", "tokens"]
"""``answers`` are messages of a conversation in which something is under way; they have a share of their own."""
OVER_SHARE: Final = "DAILY_LIMIT"
"""How a turn ends whose message came after the share was used up."""
SILENT: Final = "silent"
"""The share that such a message passed, where the person was told before."""
_DAY_US: Final = 86_400 * MICROSECONDS

_spent = start_at_zero(
    meter().create_counter(
        "agent.shares_spent", unit="{use}", description="uses refused because a person's share was used up"
    ),
    each({semconv.SHARE: get_args(Kind)}),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of each kind a person may use a day; 0 does not limit."""

    turns: int = 0
    forms: int = 0
    escalations: int = 0
    tokens: int = 0

    def of(self, kind: Kind) -> int:
        """Return the limit of a kind."""
        return self.turns if kind == "answers" else int(getattr(self, kind))


@dataclass(frozen=True, slots=True)
class Shares:
    """The limits of guests and of everybody else. Its functions run within the transaction of what is counted."""

    guest: Limits = field(default_factory=Limits)
    user: Limits = field(default_factory=Limits)

    def take(
        self, connection: Connection, owner: Owner, kind: Kind, now: int, *, told: str = "", amount: int = 1
    ) -> bool:
        """Count a use; return False, counting nothing, if it would pass the person's limit.

        ``told`` is the level that came with the person's message, as in ``Lifts.level_of``.
        """
        level = level_in(connection, owner, told, now)
        limit = (self.guest if level == GUEST else self.user).of(kind)
        if not limit:
            return True
        if amount > limit:
            _spent.add(1, {semconv.SHARE: kind})
            return False
        day, fresh = now // _DAY_US, SHARES.c.day < now // _DAY_US  # a clock set back begins no new day
        row = insert(SHARES).values(
            tenant=owner.tenant, user_id=owner.user_id, kind=kind, day=day, used=amount, told=False
        )
        counted = row.on_conflict_do_update(
            index_elements=[SHARES.c.tenant, SHARES.c.user_id, SHARES.c.kind],
            set_={
                "day": sa.case((fresh, day), else_=SHARES.c.day),
                "used": sa.case((fresh, amount), else_=SHARES.c.used + amount),
                "told": sa.case((fresh, sa.false()), else_=SHARES.c.told),
            },
            where=sa.or_(fresh, SHARES.c.used + amount <= limit),
        ).returning(SHARES.c.used)
        if connection.execute(counted).first() is not None:
            return True
        _spent.add(1, {semconv.SHARE: kind})
        return False

    def take_for_turn(self, connection: Connection, lease: Lease, kind: Kind, now: int, *, amount: int = 1) -> bool:
        """Count a use within a turn; the same as take, with the level that came with the turn."""
        owner = lease.owner
        if not self._counts(owner):
            return True
        return self.take(connection, owner, kind, now, told=told_level(connection, lease), amount=amount)

    def give_back(self, connection: Connection, owner: Owner, kind: Kind, now: int, amount: int) -> None:
        """Return what was counted and not used, if the day is still the same."""
        if not amount or not self._counts(owner):
            return
        left = sa.case((SHARES.c.used > amount, SHARES.c.used - amount), else_=0)
        which = (*_of(owner, kind), SHARES.c.day >= now // _DAY_US)
        connection.execute(sa.update(SHARES).where(*which).values(used=left))

    def tells(self, connection: Connection, owner: Owner, kind: Kind) -> bool:
        """Return True the first time of a day: whoever writes on is not answered each time."""
        first = sa.update(SHARES).where(*_of(owner, kind), sa.not_(SHARES.c.told)).values(told=True)
        return connection.execute(first).rowcount == 1

    def _counts(self, owner: Owner) -> bool:
        return self.guest != Limits() or (self.user != Limits() and not is_of_channel(owner.user_id))


NO_LIMITS: Final = Shares()


def spent_error(kind: Kind) -> ResourceExhausted:
    """Return the error for a program that asks for more than a person's share."""
    return ResourceExhausted(
        "DAILY_LIMIT",
        f"this person has used up their {kind} of today; what is under way goes on",
        metadata={"of": kind},
    )


def _of(owner: Owner, kind: Kind) -> tuple[sa.ColumnElement[bool], ...]:
    return SHARES.c.tenant == owner.tenant, SHARES.c.user_id == owner.user_id, SHARES.c.kind == kind
