"""All data that the database holds about a user: queries for what is open, and removal in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.erasure.erasures import ErasureRecord
from phylactery_chassis.erasure.service import ErasureTable
from phylactery_chassis.errors import Unavailable
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.checkpoints.tables import BLOBS, CHECKPOINTS, WRITES
from phylactery_agent.checkpoints.write_buffer import require_written
from phylactery_agent.ports import EffectState
from phylactery_agent.runtime.effects.ledger import close_open_effects
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import (
    ERASURES,
    ESCALATION_ENTRIES,
    ESCALATIONS,
    EVENTS,
    FORM_SESSIONS,
    FORM_SUBMISSIONS,
    INBOX,
    LIFTS,
    MODEL_CALLS,
    OUTBOX,
    RUNS,
    SCHEDULES,
    SHARES,
    STEPS,
    THREADS,
    TOOL_CALLS,
)
from phylactery_agent.tools.executor import part_key

T = TypeVar("T")

_BEGUN = (RunStatus.RUNNING, RunStatus.SUSPENDED)
"""Statuses of a run that may have an open request at RiskGate."""
_SETTLED_BY_ERASURE = ("transcript", "memory", "observation", "task_end")
"""Outbox kinds that erasure makes obsolete: memory and RiskGate erase the data themselves, and tasks end."""


@dataclass(frozen=True, slots=True)
class ErasureCounts:
    """Numbers of removed rows; see the contract."""

    threads: int = 0
    runs: int = 0
    turns: int = 0
    events: int = 0
    tool_calls: int = 0
    parcels: int = 0
    """Outbox messages, by the name that the contract and stored receipts have for them."""
    checkpoints: int = 0
    files: int = 0
    """Files of the person's workspace, which is no row: they are removed before the rows are."""


@dataclass(frozen=True, slots=True)
class Erasure(ErasureRecord[ErasureCounts]):
    """The record of one erasure; see the contract."""

    counts: ErasureCounts = ErasureCounts()

    @classmethod
    def counts_of(cls, fields: dict[str, int]) -> ErasureCounts:
        """Return the agent's counts. Raise TypeError if the fields are not counts."""
        return ErasureCounts(**fields)


@dataclass(frozen=True, slots=True)
class Removed:
    """An erased user: the record, and the unhandled turns, so that those waiting for them can be notified."""

    erasure: Erasure
    unhandled: Sequence[str]


class ErasureStore(ErasureTable[Erasure]):
    """Store for the erasure of users. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, clock: Clock) -> None:
        super().__init__(database, ERASURES, Erasure)
        self._clock = clock

    async def users(self) -> Sequence[Owner]:
        """Return all users with a thread, or with outstanding messages about one: nothing is kept about any others."""

        def work(connection: Connection) -> Sequence[Owner]:
            waiting = sa.select(OUTBOX.c.tenant, OUTBOX.c.user_id).where(OUTBOX.c.state == "waiting")
            rows = connection.execute(sa.union(sa.select(THREADS.c.tenant, THREADS.c.user_id), waiting))
            return [Owner(row.tenant, row.user_id) for row in rows]

        return await self._database.read(work)

    async def threads(self, owner: Owner) -> frozenset[str]:
        """Return the keys of the owner's threads, and of deleted ones with outstanding messages."""
        return await self._database.read(lambda connection: _threads(connection, owner))

    async def open_runs(self, owner: Owner) -> frozenset[str]:
        """Return the owner's runs that may wait for something at RiskGate."""

        def work(connection: Connection) -> frozenset[str]:
            query = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key.in_(_keys(owner)), RUNS.c.status.in_(_BEGUN))
            return frozenset(connection.scalars(query))

        return await self._database.read(work)

    async def effects(self, owner: Owner) -> Sequence[str]:
        """Return the keys of every effect that the owner's runs performed or began."""

        def work(connection: Connection) -> Sequence[str]:
            runs = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key.in_(_keys(owner)))
            return effect_keys(connection, TOOL_CALLS.c.run_id.in_(runs))

        return await self._database.read(work)

    async def give_up(self, owner: Owner) -> None:
        """Mark started but unfinished effects as in doubt, queue their reports, and drop obsolete outbox messages.

        The owner's threads must be held: no other process may be serving them.
        """

        def work(connection: Connection) -> None:
            begun = sa.select(RUNS).join(TOOL_CALLS, TOOL_CALLS.c.run_id == RUNS.c.run_id)
            wanted = begun.where(
                RUNS.c.thread_key.in_(_keys(owner)), TOOL_CALLS.c.state == EffectState.STARTED
            ).distinct()
            for row in connection.execute(wanted).all():
                lease = Lease(row.run_id, row.turn_id, row.thread_id, owner, row.lease_owner, row.fence)
                close_open_effects(connection, lease, self._clock.now_us())
            connection.execute(
                sa.delete(OUTBOX).where(
                    OUTBOX.c.tenant == owner.tenant,
                    OUTBOX.c.user_id == owner.user_id,
                    OUTBOX.c.kind.in_(_SETTLED_BY_ERASURE),
                    OUTBOX.c.state == "waiting",
                )
            )

        await self._database.write(work)

    async def erase(
        self, owner: Owner, held: Collection[str], done: Callable[[ErasureCounts], Erasure]
    ) -> Removed | None:
        """Remove everything of the owner and store the record, in one transaction; return once it is durable.

        Return None, removing nothing, if the owner has a thread that is not among those held.
        """

        def work(connection: Connection) -> Removed | None:
            active = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key.in_(_keys(owner)), RUNS.c.status.in_(ACTIVE))
            connection.execute(active.order_by(RUNS.c.run_id).with_for_update()).all()  # lock order as when a run ends
            keys = lock_threads(connection, THREADS.c.tenant == owner.tenant, THREADS.c.user_id == owner.user_id)
            if not _threads(connection, owner) | set(keys) <= set(held):
                return None
            waiting = sa.select(INBOX.c.turn_id).where(INBOX.c.thread_key.in_(keys), INBOX.c.state == "waiting")
            unhandled = list(connection.scalars(waiting))
            erasure = done(_remove_all(connection, owner, keys))
            note_removed(connection)
            self.keep(connection, erasure)
            return Removed(erasure, unhandled)

        return await self._database.write(work)


def effect_keys(connection: Connection, which: sa.ColumnElement[bool]) -> Sequence[str]:
    """Return the keys of effects, and those under which an undo took them back."""
    query = sa.select(TOOL_CALLS.c.effect_key, TOOL_CALLS.c.undone_by).where(which, TOOL_CALLS.c.effect_key != "")
    rows = connection.execute(query.distinct()).all()
    return [row.effect_key for row in rows] + [part_key(row.undone_by, row.effect_key) for row in rows if row.undone_by]


async def forget_noted(forget: Callable[[Iterable[str]], None], effects: Iterable[str], *, of: str) -> None:
    """Drop what tools recorded about effects, by their keys; ``of`` names the scope. Raise Unavailable on failure."""
    await remove_files(lambda: forget(effects), of=of)


async def remove_files(remove: Callable[[], T], *, of: str) -> T:
    """Run a removal of files that tools keep; ``of`` names the scope. Raise Unavailable on failure."""
    try:
        return await asyncio.to_thread(remove)
    except OSError as error:
        raise Unavailable(
            "STORE_UNAVAILABLE",
            f"what tools kept of the {of}'s effects cannot be removed ({error.strerror}); "
            "look at the data folder, and ask again",
        ) from None


def of_user(owner: Owner, keys: Collection[str]) -> Iterator[tuple[str, sa.Table, sa.ColumnElement[bool]]]:
    """Yield each table with data about a user: its name among the counts, and the condition for the user's rows.

    keys are all of the user's threads, locked: each statement sees what was committed before it, and a thread opened
    meanwhile must be in all of them or in none. Tables whose rows belong to rows already counted have an empty name.
    Tables through which others are found come last.
    """
    opened_since = _keys(owner).where(THREADS.c.thread_key.not_in(keys))
    for table in (LIFTS, SHARES, FORM_SUBMISSIONS):  # whoever comes back is nobody we know
        yield "", table, sa.and_(table.c.tenant == owner.tenant, table.c.user_id == owner.user_id)
    for name, table, theirs in of_threads(keys):
        if table is OUTBOX:  # outbox messages about a deleted thread outlive it
            whose = table.c.tenant == owner.tenant, table.c.user_id == owner.user_id
            yield name, table, sa.and_(*whose, table.c.thread_key.not_in(opened_since))
        else:
            yield name, table, theirs


def of_threads(keys: Collection[str]) -> Iterator[tuple[str, sa.Table, sa.ColumnElement[bool]]]:
    """Yield the same for threads, by their keys."""
    runs = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key.in_(keys))
    yield "tool_calls", TOOL_CALLS, TOOL_CALLS.c.run_id.in_(runs)
    yield "", MODEL_CALLS, MODEL_CALLS.c.run_id.in_(runs)
    yield "", STEPS, STEPS.c.run_id.in_(runs)
    yield "", BLOBS, BLOBS.c.thread_id.in_(runs)
    yield "", WRITES, WRITES.c.thread_id.in_(runs)
    yield "checkpoints", CHECKPOINTS, CHECKPOINTS.c.thread_id.in_(runs)
    yield "", SCHEDULES, SCHEDULES.c.thread_key.in_(keys)
    escalations = sa.select(ESCALATIONS.c.escalation_id).where(ESCALATIONS.c.thread_key.in_(keys))
    yield "", ESCALATION_ENTRIES, ESCALATION_ENTRIES.c.escalation_id.in_(escalations)
    yield "", ESCALATIONS, ESCALATIONS.c.thread_key.in_(keys)
    yield "", FORM_SESSIONS, FORM_SESSIONS.c.thread_key.in_(keys)
    yield "parcels", OUTBOX, OUTBOX.c.thread_key.in_(keys)
    yield "events", EVENTS, EVENTS.c.thread_key.in_(keys)
    yield "turns", INBOX, INBOX.c.thread_key.in_(keys)
    yield "runs", RUNS, RUNS.c.thread_key.in_(keys)
    yield "threads", THREADS, THREADS.c.thread_key.in_(keys)


def lock_threads(connection: Connection, *which: sa.ColumnElement[bool]) -> Sequence[str]:
    """Lock threads until the commit, and return their keys; over SQLite there is no concurrent writer."""
    query = sa.select(THREADS.c.thread_key).where(*which).order_by(THREADS.c.thread_key)
    return list(connection.scalars(query.with_for_update()))


def remove_threads(connection: Connection, keys: Collection[str]) -> None:
    """Remove everything of threads except what is still to be sent to other services."""
    require_written(connection, None)  # a checkpoint pending in this commit is known by its run, not by its thread
    for _, table, theirs in of_threads(keys):
        if table is not OUTBOX:
            connection.execute(sa.delete(table).where(theirs))


def _remove_all(connection: Connection, owner: Owner, keys: Collection[str]) -> ErasureCounts:
    counts = ErasureCounts()
    require_written(connection, None)
    for name, table, theirs in of_user(owner, keys):
        removed = connection.execute(sa.delete(table).where(theirs)).rowcount
        counts = replace(counts, **{name: removed}) if name else counts
    return counts


def _keys(owner: Owner) -> sa.Select[Any]:
    return sa.select(THREADS.c.thread_key).where(THREADS.c.tenant == owner.tenant, THREADS.c.user_id == owner.user_id)


def _threads(connection: Connection, owner: Owner) -> frozenset[str]:
    theirs = OUTBOX.c.tenant == owner.tenant, OUTBOX.c.user_id == owner.user_id
    messages = sa.select(OUTBOX.c.thread_key).where(OUTBOX.c.state == "waiting", *theirs)
    return frozenset(connection.scalars(sa.union(_keys(owner), messages)))
