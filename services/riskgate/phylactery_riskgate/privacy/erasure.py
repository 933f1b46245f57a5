"""Erasure of argument values: the commitment stays, the value is gone, and the log still verifies.

Erasure requires an operator of the tenant: an auditor, who reads the values, must not be able to destroy them, and an
operator, who destroys them, never sees them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from phylactery_chassis.auth.identity import Principal, Role
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import ApprovalState
from phylactery_riskgate.audit.commitments import WORDS
from phylactery_riskgate.audit.entries import EntryFilter, record_of
from phylactery_riskgate.audit.log import Kind
from phylactery_riskgate.audit.requests import MAX_REFERENCES, EraseInput, FilterInput
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.store import approvals as approval_rows
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import audit_search as rows
from phylactery_riskgate.store import notices as notice_rows
from phylactery_riskgate.store.audit import Place
from phylactery_riskgate.tasks.service import Tasks

_OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)


@dataclass(frozen=True, slots=True)
class Erased:
    """The result of an erasure: entries that lost their values, entries kept for an open approval, and its records."""

    erased: int
    kept_open: int
    records: tuple[Place, ...] = ()


class Erasure:
    """The erasure use case."""

    def __init__(self, core: DecisionContext, tasks: Tasks) -> None:
        self._core, self._tasks = core, tasks

    async def erase(self, who: Principal, asked: EraseInput) -> Erased:
        """Erase values of the operator's tenant, at most 500 entries per transaction, and record each transaction.

        Tasks that match a filter by user, thread and time are ended, and their data is erased with them. Raise
        Unavailable STORE_UNAVAILABLE; what was erased until then stays erased, and is recorded.
        """
        who.require(Role.OPERATOR)
        done = Erased(0, 0)
        async for found in self._found(who, asked):
            if found:
                more = await self._core.write(partial(self._erase, who=who, asked=asked, found=found))
                records = (*done.records, *more.records)[-MAX_REFERENCES:]
                done = Erased(done.erased + more.erased, done.kept_open + more.kept_open, records)
        if asked.filter is not None:
            await self._core.write(partial(_drop_notices, who=who, wanted=asked.filter))
        while asked.filter is not None:
            ended, record = await self._core.write(partial(self._end_tasks, who=who, asked=asked, wanted=asked.filter))
            self._tasks.forget(ended)
            if record is None:
                break
            done = Erased(done.erased, done.kept_open, (*done.records, record)[-MAX_REFERENCES:])
        return done

    async def _found(self, who: Principal, asked: EraseInput) -> AsyncIterator[list[rows.FoundEntry]]:
        """Yield the named entries, then those that match the filter, in batches."""
        places = [Place(one.log, one.index) for one in asked.entries]
        yield await self._core.database.read(partial(_named, who=who, places=places))
        after: rows.Position | None = None
        wanted = None if asked.filter is None else EntryFilter(who.tenant, asked.filter)
        while wanted is not None:
            found, after = await self._core.database.read(partial(_next, who=who, wanted=wanted, after=after))
            yield found
            if after is None:
                return

    def _erase(self, connection: Connection, who: Principal, asked: EraseInput, found: list[rows.FoundEntry]) -> Erased:
        """Erase the values of these entries, and append the record of it in the same transaction."""
        there = rows.with_values(connection, who.tenant, {one.place: one for one in found})
        kept = {one.place for one in there if _is_open(connection, who, one)}
        gone = sorted((one.place for one in there if one.place not in kept), key=lambda place: (place.log, place.index))
        if not gone:
            return Erased(0, len(kept))
        for place in gone:
            log_rows.erase_values(connection, who.tenant, place.log, place.index)
        entries: dict[str, list[int]] = {}
        for place in gone:
            entries.setdefault(place.log, []).append(place.index)
        body = {"entries": entries, "erased": len(gone), "kept_open": len(kept), "selected": _selected(asked.filter)}
        now_us = self._core.clock.now_us()
        record = self._core.note(connection, Kind.VALUES_ERASED, who, now_us, body, values={WORDS: asked.reason})
        return Erased(len(gone), len(kept), (record,))

    def _end_tasks(
        self, connection: Connection, who: Principal, asked: EraseInput, wanted: FilterInput
    ) -> tuple[list[str], Place | None]:
        """End a batch of tasks that match a filter, and append the record of it; an empty batch is the last."""
        ended = self._tasks.erase_some(connection, who, wanted)
        if not ended:
            return ended, None
        body = {"entries": {}, "erased": 0, "kept_open": 0, "tasks": len(ended), "selected": _selected(wanted)}
        now_us = self._core.clock.now_us()
        return ended, self._core.note(connection, Kind.VALUES_ERASED, who, now_us, body, values={WORDS: asked.reason})


def _drop_notices(connection: Connection, who: Principal, wanted: FilterInput) -> None:
    """Drop the notices about a person all of whose values are erased, except those of approvals still open."""
    if set(_selected(wanted)) == {"subject"}:
        kept = approval_rows.find_open(connection, who.tenant, wanted.subject)
        notice_rows.erase_of(connection, who.tenant, wanted.subject, but=kept)


def _named(connection: Connection, who: Principal, places: list[Place]) -> list[rows.FoundEntry]:
    """Return the entries of the tenant among the places; other places are treated as missing."""
    found = (rows.find_entry(connection, who.tenant, place) for place in dict.fromkeys(places))
    return [one for one in found if one is not None and one.kind != Kind.VALUES_ERASED]


def _next(
    connection: Connection, who: Principal, wanted: EntryFilter, after: rows.Position | None
) -> tuple[list[rows.FoundEntry], rows.Position | None]:
    """Return the next entries that match the filter, and where to continue, or None at the end."""
    found = list(rows.scan(connection, who.tenant, wanted.bounds, after=after, oldest_first=True, limit=MAX_REFERENCES))
    entries = [one for one in found if one.kind != Kind.VALUES_ERASED and wanted.read(one) is not None]
    return entries, found[-1].position if len(found) == MAX_REFERENCES else None


def _is_open(connection: Connection, who: Principal, one: rows.FoundEntry) -> bool:
    """Return True if the call the values belong to has an open approval."""
    record = record_of(one.stored.record)
    for name in ("approval_id", "counted_approval_id"):
        approval_id = record.get(name)
        if isinstance(approval_id, str) and approval_id:
            approval = approval_rows.find_approval(connection, who.tenant, approval_id)
            if approval is not None and approval.state in _OPEN and one.kind == Kind.DECISION:
                return True
    return False


def _selected(chosen: FilterInput | None) -> dict[str, Any]:
    """Return the filter that selected the entries, for the record; empty if they were named."""
    if chosen is None:
        return {}
    return {name: value for name, value in chosen.model_dump(mode="json").items() if value}
