"""Store of decisions: one row for every (tenant, user, run, tool_call_id, counted approval)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.statements import Query, RowInsert
from phylactery_chassis.db.unit import unit_of
from sqlalchemy.engine import Connection

from phylactery_riskgate.domain.model import LOW_STAKES, Decision, Pathway, Reason, Stakes
from phylactery_riskgate.store.pending import Gathered, Keys
from phylactery_riskgate.store.tables import JSON_TUPLE, decisions, from_json, to_json


class CallKey(NamedTuple):
    """The key of one call: its user and its place in a run. Each has one decision and one redemption."""

    tenant: str
    subject: str
    run_id: str
    tool_call_id: str


PERMITS_OVER = -1


class DecisionRecord(NamedTuple):
    """A decision as stored.

    ``counted_approval_id`` is the approval the call named, ``approval_id`` the one it created; either may be empty.
    ``fingerprint`` and ``args_hash`` are keyed hashes (audit.commitments), the latter empty if binding failed;
    ``args_commitment`` is its record's commitment to that hash. ``permit_us`` is when the newest permit was issued, 0
    if there is none, and PERMITS_OVER if there will be no other; ``permit_id`` is its id: earlier ones are void.
    ``revoke_us`` is when an operator voided the decision, 0 for never. ``permit_freeze`` is the number of the newest
    freeze known when the newest permit was issued: a later one that covers the call voids it.
    """

    id: str
    tenant: str
    subject: str
    run_id: str
    tool_call_id: str
    counted_approval_id: str
    thread_id: str
    fingerprint: str
    decision: Decision
    reasons: tuple[Reason, ...]
    tool: str
    tool_version: str
    args_hash: str
    policy_ids: tuple[str, ...]
    bundle_revision: int
    risk: str
    approval_id: str
    permit_id: str
    permit_us: int
    create_us: int
    audit_log: str
    audit_index: int
    pathway: Pathway
    args_commitment: str = ""
    revoke_us: int = 0
    permit_freeze: int = 0
    actor: str = ""
    stakes: Stakes = "unspecified"

    @property
    def by_low_stakes(self) -> bool:
        """Return True if nothing but its low stakes allowed the call."""
        return self.decision is Decision.ALLOW and any(one.code == LOW_STAKES for one in self.reasons[:1])


_REASONS = Form(
    lambda data: tuple(Reason(*parts) for parts in from_json(data)),
    lambda reasons: to_json([[r.code, r.message, r.message_es, r.path, r.policy_id] for r in reasons]),
)
_RECORD = Columns(
    DecisionRecord, decisions, forms={"decision": Form(Decision, str), "reasons": _REASONS, "policy_ids": JSON_TUPLE}
)
_ALL = sa.select(*_RECORD.columns)
_BY_CALL = Query(
    _ALL.where(
        decisions.c.tenant == sa.bindparam("tenant"),
        decisions.c.subject == sa.bindparam("subject"),
        decisions.c.run_id == sa.bindparam("run_id"),
        decisions.c.tool_call_id == sa.bindparam("tool_call_id"),
        decisions.c.counted_approval_id == sa.bindparam("counted_approval_id"),
    )
)
_MOST_PER_CALL = 10
"""Maximum decisions read per tool call of a thread: few runs reuse the same call ids."""
_OF_THREAD_CALL = (
    _ALL.where(
        decisions.c.tenant == sa.bindparam("tenant"),
        decisions.c.subject == sa.bindparam("subject"),
        decisions.c.thread_id == sa.bindparam("thread_id"),
        decisions.c.tool_call_id == sa.bindparam("tool_call_id"),
    )
    .order_by(decisions.c.create_us.desc())
    .limit(_MOST_PER_CALL)
)
_BY_THREAD_CALL = Query(_OF_THREAD_CALL)
_BY_RUN_CALL = Query(_OF_THREAD_CALL.where(decisions.c.run_id == sa.bindparam("run_id")))
_BY_ID = Query(_ALL.where(decisions.c.tenant == sa.bindparam("tenant"), decisions.c.id == sa.bindparam("id")))
_REVOKED = sa.text("decisions.revoke_us != 0")
"""As in the index of revoked decisions: a parameter would hide from SQLite that the index serves the query."""
_ANY_REVOKED = Query(sa.select(decisions.c.id).where(_REVOKED).limit(1))
_REVOKED_OF_THREAD = Query(
    _ALL.where(
        decisions.c.tenant == sa.bindparam("tenant"),
        decisions.c.subject == sa.bindparam("subject"),
        decisions.c.thread_id == sa.bindparam("thread_id"),
        decisions.c.tool == sa.bindparam("tool"),
        _REVOKED,
    )
)
_INSERT = RowInsert(decisions, *_RECORD.names)
_FREE = "decisions' free places"
_SOME_REVOKED = "whether a decision is revoked"


def _keys(record: DecisionRecord) -> Keys:
    return (record.tenant, record.id), (_key_of(record), record.counted_approval_id)


def _write(connection: Connection, records: Sequence[DecisionRecord]) -> None:
    _INSERT.run(connection, [_RECORD.values(record) for record in records])


_gathered = Gathered(_keys, _write)


def insert_decision(connection: Connection, record: DecisionRecord) -> None:
    """Insert a decision, together with the rest of the unit of work at its end."""
    _gathered.add(connection, record)


def find_call(connection: Connection, key: CallKey, counted_approval_id: str) -> DecisionRecord | None:
    """Return the decision for this key, whatever its arguments were."""
    place = key, counted_approval_id
    found = _gathered.find(connection, place)
    if found is not None or place in _free_of(connection):
        return found
    at = {
        "tenant": key.tenant,
        "subject": key.subject,
        "run_id": key.run_id,
        "tool_call_id": key.tool_call_id,
        "counted_approval_id": counted_approval_id,
    }
    return _found(_BY_CALL.one(connection, at))


def decisions_of_call(connection: Connection, key: CallKey, thread_id: str) -> list[DecisionRecord]:
    """Return the newest decisions about a tool call of a thread, of any run if the key names none."""
    place = {"tenant": key.tenant, "subject": key.subject, "thread_id": thread_id, "tool_call_id": key.tool_call_id}
    if key.run_id:
        rows = _BY_RUN_CALL.all(connection, {**place, "run_id": key.run_id})
    else:
        rows = _BY_THREAD_CALL.all(connection, place)
    return [_RECORD.load(row) for row in rows]


def look_ahead(connection: Connection, keys: Sequence[CallKey]) -> None:
    """Look up which keys of one user have no decision, so that find_call need not query each of them.

    Valid for this unit of work: a faster process is detected when the rows are written, as always.
    """
    unit = unit_of(connection)
    if unit is None:
        return
    free = unit.part(_FREE, FreePlaces).places
    by_run: dict[tuple[str, str, str], list[str]] = {}
    for key in keys:
        by_run.setdefault((key.tenant, key.subject, key.run_id), []).append(key.tool_call_id)
    for (tenant, subject, run_id), calls in by_run.items():
        size = 1 << (len(calls) - 1).bit_length()  # rounded to a power of two for the statement cache
        named = {f"call_{number}": calls[min(number, len(calls) - 1)] for number in range(size)}
        at = {"tenant": tenant, "subject": subject, "run_id": run_id, "counted_approval_id": ""}
        taken = {row[0] for row in _taken(size).all(connection, at | named)}
        free.update((CallKey(tenant, subject, run_id, call), "") for call in calls if call not in taken)


class FreePlaces:
    """The keys a unit of work found without a decision; writes nothing."""

    def __init__(self) -> None:
        self.places: set[tuple[CallKey, str]] = set()

    def mark(self) -> None:
        """No-op: the stored state does not depend on the job that read it."""

    def undo(self, mark: None) -> None:
        """No-op."""

    def flush(self, connection: Connection) -> None:
        """No-op."""

    def settle(self, *, committed: bool) -> None:
        """No-op."""


def _free_of(connection: Connection) -> AbstractSet[tuple[CallKey, str]]:
    unit = unit_of(connection)
    found: FreePlaces | None = None if unit is None else unit.find(_FREE)
    return frozenset() if found is None else found.places


@cache
def _taken(size: int) -> Query:
    """Return the query for which of ``size`` calls of a run have a decision."""
    calls = decisions.c.tool_call_id.in_([sa.bindparam(f"call_{number}") for number in range(size)])
    return Query(
        sa.select(decisions.c.tool_call_id).where(
            decisions.c.tenant == sa.bindparam("tenant"),
            decisions.c.subject == sa.bindparam("subject"),
            decisions.c.run_id == sa.bindparam("run_id"),
            calls,
            decisions.c.counted_approval_id == sa.bindparam("counted_approval_id"),
        )
    )


def find_decision(connection: Connection, tenant: str, decision_id: str) -> DecisionRecord | None:
    """Return a decision by its id."""
    found = _gathered.find(connection, (tenant, decision_id))
    return found or _found(_BY_ID.one(connection, {"tenant": tenant, "id": decision_id}))


def tenants_with_decisions(connection: Connection) -> list[str]:
    """Return every tenant with decisions, for commands that work on the whole database."""
    return list(connection.execute(sa.select(decisions.c.tenant).distinct().order_by(decisions.c.tenant)).scalars())


def renew_permit(  # noqa: PLR0917 - the newest permit as it is stored
    connection: Connection, tenant: str, decision_id: str, permit_id: str, now_us: int, freeze: int = 0
) -> None:
    """Update the newest permit of a decision; ``freeze`` is the newest freeze known."""

    def renewed(record: DecisionRecord) -> DecisionRecord:
        return record._replace(permit_id=permit_id, permit_us=now_us, permit_freeze=freeze)

    if _gathered.change(connection, (tenant, decision_id), renewed):
        return
    connection.execute(
        sa.update(decisions)
        .where(decisions.c.tenant == tenant, decisions.c.id == decision_id)
        .values(permit_id=permit_id, permit_us=now_us, permit_freeze=freeze)
    )


def revoke(connection: Connection, tenant: str, decision_id: str, now_us: int) -> None:
    """Void a decision and all of its permits."""

    def revoked(record: DecisionRecord) -> DecisionRecord:
        return record._replace(permit_id="", revoke_us=now_us)

    if _gathered.change(connection, (tenant, decision_id), revoked):
        return
    connection.execute(
        sa.update(decisions)
        .where(decisions.c.tenant == tenant, decisions.c.id == decision_id)
        .values(permit_id="", revoke_us=now_us)
    )
    unit = unit_of(connection)
    some: _SomeRevoked | None = None if unit is None else unit.find(_SOME_REVOKED)
    if some is not None:
        some.known = True


def revoked_of(connection: Connection, *, tenant: str, subject: str, thread_id: str, tool: str) -> list[DecisionRecord]:
    """Return the revoked decisions about calls of a tool in a thread."""
    unit = unit_of(connection)
    some = None if unit is None else unit.part(_SOME_REVOKED, _SomeRevoked)
    if some is not None and some.known is None:  # where nothing was ever revoked, a unit of work asks once
        some.known = _ANY_REVOKED.one(connection, {}) is not None
    if some is not None and not some.known:
        return []
    place = {"tenant": tenant, "subject": subject, "thread_id": thread_id, "tool": tool}
    return [_RECORD.load(row) for row in _REVOKED_OF_THREAD.all(connection, place)]


class _SomeRevoked(FreePlaces):
    """Part of a unit of work: whether any decision is revoked, None until it was read; writes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.known: bool | None = None

    def undo(self, mark: None) -> None:  # noqa: ARG002 - mark returns nothing
        """Read it again: the job that revoked is undone."""
        self.known = None


def revoked_among(connection: Connection, tenant: str, decision_ids: Collection[str]) -> dict[str, int]:
    """Return when those of a tenant's decisions were revoked that were, by id."""
    if not decision_ids:
        return {}
    found = connection.execute(
        sa.select(decisions.c.id, decisions.c.revoke_us).where(
            decisions.c.tenant == tenant, decisions.c.id.in_(decision_ids), decisions.c.revoke_us != 0
        )
    )
    return {row.id: row.revoke_us for row in found}


def _key_of(record: DecisionRecord) -> CallKey:
    return CallKey(record.tenant, record.subject, record.run_id, record.tool_call_id)


def _found(row: Sequence[Any] | None) -> DecisionRecord | None:
    return None if row is None else _RECORD.load(row)
