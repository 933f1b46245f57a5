"""What people submitted by forms: each once, under an id that follows from its effect, sealed; read by the team."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.dispatch.leases import require_lease
from phylactery_agent.runtime.forms.catalog import FormCatalog
from phylactery_agent.runtime.runs.queries import before, page_of
from phylactery_agent.runtime.storage.records import Lease, Owner, Page
from phylactery_agent.runtime.storage.schema import FORM_SUBMISSIONS
from phylactery_agent.runtime.storage.sealing import Sealer

_ID_DIGITS: Final = 32
"""Hexadecimal digits of an id: 128 bits, so that no two effects share one."""


@dataclass(frozen=True, slots=True)
class StoredSubmission:
    """One submission; values are canonical, by field, and sensitive names those that the person is not shown again."""

    submission_id: str
    owner: Owner
    thread_id: str
    run_id: str
    form: str
    version: str
    created_us: int
    values: Mapping[str, str] = field(repr=False)
    sensitive: frozenset[str]


_SUBMISSION = Columns(StoredSubmission, FORM_SUBMISSIONS, besides=("owner", "values", "sensitive"))


def submission_id(effect_key: str) -> str:
    """Return the id of the submission of an effect."""
    return "sub_" + sha256(effect_key).removeprefix("sha256:")[:_ID_DIGITS]


class FormSubmissions:
    """Store of submissions. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, clock: Clock, sealer: Sealer, catalog: FormCatalog) -> None:
        self._database, self._clock, self._sealer, self._catalog = database, clock, sealer, catalog

    def of_turn(self, lease: Lease) -> TurnSubmissions:
        """Return what the turn's person submits by."""
        return TurnSubmissions(self, lease)

    async def store(self, lease: Lease, form: str, version: str, values: Mapping[str, str], *, key: str) -> str:
        """Store a submission of the lease's person, once per key, and return its id. Raise LeaseLostError."""
        this = submission_id(key)
        answers = {"values": dict(values), "sensitive": sorted(self._sensitive(form, values))}
        sealed = self._sealer.cover(json.dumps(answers, ensure_ascii=False).encode(), of=this)

        def work(connection: Connection) -> None:
            now = self._clock.now_us()
            require_lease(connection, lease, now)
            there = sa.select(FORM_SUBMISSIONS.c.submission_id).where(FORM_SUBMISSIONS.c.submission_id == this)
            if connection.execute(there).one_or_none() is not None:
                return
            connection.execute(
                sa.insert(FORM_SUBMISSIONS).values(
                    submission_id=this,
                    tenant=lease.owner.tenant,
                    user_id=lease.owner.user_id,
                    thread_id=lease.thread_id,
                    run_id=lease.run_id,
                    form=form,
                    version=version,
                    answers=sealed,
                    created_us=now,
                )
            )

        await self._database.write(work)
        return this

    async def page(self, tenant: str, *, form: str, size: int, token: str) -> Page[StoredSubmission]:
        """Return some of a tenant's submissions, the newest first. Raise InvalidArgument for a foreign token."""
        query = sa.select(FORM_SUBMISSIONS).where(FORM_SUBMISSIONS.c.tenant == tenant)
        if form:
            query = query.where(FORM_SUBMISSIONS.c.form == form)
        if token:
            query = query.where(before(token, FORM_SUBMISSIONS.c.created_us, FORM_SUBMISSIONS.c.submission_id))
        order = FORM_SUBMISSIONS.c.created_us.desc(), FORM_SUBMISSIONS.c.submission_id.desc()
        query = query.order_by(*order).limit(size + 1)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return page_of([self._read(row) for row in rows], size, lambda one: (one.created_us, one.submission_id))

    async def of_runs(self, owner: Owner, run_ids: Sequence[str]) -> Mapping[str, StoredSubmission]:
        """Return what a person submitted in some of their runs, by run; a run submits at most once."""
        theirs = FORM_SUBMISSIONS.c.tenant == owner.tenant, FORM_SUBMISSIONS.c.user_id == owner.user_id
        query = sa.select(FORM_SUBMISSIONS).where(*theirs, FORM_SUBMISSIONS.c.run_id.in_(run_ids))
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.run_id: self._read(row) for row in rows}

    def _sensitive(self, form: str, values: Mapping[str, str]) -> set[str]:
        """Return the fields that are sensitive by the form as it is now, or that it no longer knows."""
        found = self._catalog.get(form)
        known = {} if found is None else found.by_id
        return {name for name in values if name not in known or known[name].sensitive}

    def _read(self, row: Row[Any]) -> StoredSubmission:
        answers = json.loads(self._sealer.uncover(row.answers, of=row.submission_id))
        owner, sensitive = Owner(row.tenant, row.user_id), frozenset(answers["sensitive"])
        return _SUBMISSION.read(row, owner=owner, values=answers["values"], sensitive=sensitive)


@dataclass(frozen=True, slots=True)
class TurnSubmissions:
    """Implementation of ports.Submissions for one turn."""

    _shared: FormSubmissions
    _lease: Lease

    async def store(self, form: str, version: str, values: Mapping[str, str], *, key: str) -> str:
        """Store a submission and return its id, once per key. Raise LeaseLostError, Unavailable."""
        return await self._shared.store(self._lease, form, version, values, key=key)
