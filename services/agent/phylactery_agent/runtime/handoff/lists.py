"""Reading the queue of a tenant: pages, one escalation with its entries, and the entries after a place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.rpc.paging import decode_token
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.handoff.queue import ENTRY, escalation_of
from phylactery_agent.runtime.handoff.records import Handler, QueueEntry, StoredEscalation
from phylactery_agent.runtime.handoff.status import EscalationStatus
from phylactery_agent.runtime.handoff.store import no_escalation
from phylactery_agent.runtime.handoff.texts import reads
from phylactery_agent.runtime.runs.queries import page_of
from phylactery_agent.runtime.storage.records import Page
from phylactery_agent.runtime.storage.schema import ESCALATION_ENTRIES, ESCALATION_QUEUES, ESCALATIONS

MAX_ENTRIES: Final = 200
_PAGE: Final = 50


@dataclass(frozen=True, slots=True)
class QueueTail:
    """A page of a queue's entries, in order, and the sequence of its last entry."""

    last_sequence: int
    entries: Sequence[QueueEntry]


class EscalationLists:
    """Lists of a tenant's queue."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, handler: Handler, *, statuses: Collection[str], mine: bool, policy: str, size: int, token: str
    ) -> tuple[Page[StoredEscalation], int]:
        """Return a page, the longest waiting first, and the sequence of the queue's last entry.

        Raise InvalidArgument for a token of another list.
        """
        key = (ESCALATIONS.c.opened_us, ESCALATIONS.c.escalation_id)
        query = sa.select(ESCALATIONS).where(
            ESCALATIONS.c.tenant == handler.tenant, ESCALATIONS.c.status.in_(tuple(statuses))
        )
        if mine:
            query = query.where(ESCALATIONS.c.handler == handler.subject)
        if policy:
            query = query.where(ESCALATIONS.c.policy == policy)
        if token:
            query = query.where(
                sa.tuple_(*key) > sa.tuple_(*(sa.literal(one) for one in decode_token(token, int, str)))
            )
        query = query.order_by(*key).limit(size + 1)

        def work(connection: Connection) -> tuple[Page[StoredEscalation], int]:
            last = _last(connection, handler)  # before the rows: a watch from here misses nothing that they lack
            found = [escalation_of(row) for row in connection.execute(query)]
            return page_of(found, size, lambda one: (one.opened_us, one.escalation_id)), last

        return await self._database.read(work)

    async def get(self, handler: Handler, escalation_id: str) -> tuple[StoredEscalation, Sequence[QueueEntry]]:
        """Return an escalation and its newest entries, in order. Raise NotFound ESCALATION_NOT_FOUND."""
        this = sa.select(ESCALATIONS).where(
            ESCALATIONS.c.tenant == handler.tenant, ESCALATIONS.c.escalation_id == escalation_id
        )
        of_it = sa.select(ESCALATION_ENTRIES).where(ESCALATION_ENTRIES.c.escalation_id == escalation_id)
        newest = of_it.order_by(ESCALATION_ENTRIES.c.sequence.desc()).limit(MAX_ENTRIES)

        def work(connection: Connection) -> tuple[StoredEscalation, Sequence[QueueEntry]]:
            row = connection.execute(this).one_or_none()
            if row is None:
                raise no_escalation(escalation_id)
            entries = [_entry(each, row, handler) for each in connection.execute(newest)]
            return escalation_of(row), entries[::-1]

        return await self._database.read(work)

    async def after(self, handler: Handler, sequence: int) -> QueueTail:
        """Return a page of the entries after a sequence, in order."""
        query = (
            sa.select(ESCALATION_ENTRIES, ESCALATIONS.c.status.label("now"), ESCALATIONS.c.handler)
            .join(ESCALATIONS, ESCALATIONS.c.escalation_id == ESCALATION_ENTRIES.c.escalation_id)
            .where(ESCALATION_ENTRIES.c.tenant == handler.tenant, ESCALATION_ENTRIES.c.sequence > sequence)
            .order_by(ESCALATION_ENTRIES.c.sequence)
            .limit(_PAGE)
        )

        def work(connection: Connection) -> QueueTail:
            last = _last(connection, handler)
            return QueueTail(last, [_entry(row, row, handler) for row in connection.execute(query)])

        return await self._database.read(work)


def _last(connection: Connection, handler: Handler) -> int:
    query = sa.select(ESCALATION_QUEUES.c.last_sequence).where(ESCALATION_QUEUES.c.tenant == handler.tenant)
    return int(connection.execute(query).scalar() or 0)


def _entry(row: Any, escalation: Any, viewer: Handler) -> QueueEntry:
    """Return an entry as a handler sees it, given who has its escalation now."""
    status, entry = EscalationStatus(getattr(escalation, "now", escalation.status)), ENTRY.read(row)
    return entry if reads(viewer.subject, entry.kind, status, escalation.handler) else replace(entry, text="")
