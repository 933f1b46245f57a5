"""Decisions: one row for every (tenant, user, run, tool_call_id, counted approval)."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.domain.model import Decision, Reason
from phylactery_riskgate.store.tables import decisions, from_json, row_of, to_json

# Built once: building a statement costs several times what SQLite takes to run it.
_INSERT = sa.insert(decisions)
_BY_CALL = sa.select(decisions).where(
    decisions.c.tenant == sa.bindparam("tenant"),
    decisions.c.subject == sa.bindparam("subject"),
    decisions.c.run_id == sa.bindparam("run_id"),
    decisions.c.tool_call_id == sa.bindparam("tool_call_id"),
    decisions.c.counted_approval_id == sa.bindparam("counted_approval_id"),
)
_BY_ID = sa.select(decisions).where(decisions.c.tenant == sa.bindparam("tenant"), decisions.c.id == sa.bindparam("id"))


@dataclass(frozen=True, slots=True)
class CallKey:
    """The place of one call: whose it is, and where in a run. There is one decision for it, and one redemption."""

    tenant: str
    subject: str
    run_id: str
    tool_call_id: str


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A decision as the store keeps it.

    ``counted_approval_id`` is the approval it was asked with, ``approval_id`` the one it created; either may be empty.
    ``args_hash`` is empty where binding failed. ``permit_us`` is when the newest permit was issued, 0 for none.
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


def insert_decision(connection: Connection, record: DecisionRecord) -> None:
    """Adds a decision. Raises IntegrityError when another process added it first."""
    values = row_of(record)
    values["decision"] = str(record.decision)
    values["reasons"] = to_json([[r.code, r.message, r.message_es, r.path, r.policy_id] for r in record.reasons])
    values["policy_ids"] = to_json(record.policy_ids)
    connection.execute(_INSERT, values)


def find_call(connection: Connection, key: CallKey, counted_approval_id: str) -> DecisionRecord | None:
    """Answers the decision about this place, whatever its arguments were."""
    row = connection.execute(_BY_CALL, {**row_of(key), "counted_approval_id": counted_approval_id}).one_or_none()
    return None if row is None else _record(row)


def find_decision(connection: Connection, tenant: str, decision_id: str) -> DecisionRecord | None:
    """Answers a decision by its id."""
    row = connection.execute(_BY_ID, {"tenant": tenant, "id": decision_id}).one_or_none()
    return None if row is None else _record(row)


def renew_permit(connection: Connection, tenant: str, decision_id: str, permit_id: str, now_us: int) -> None:
    """Notes which permit of a decision is the newest."""
    connection.execute(
        sa.update(decisions)
        .where(decisions.c.tenant == tenant, decisions.c.id == decision_id)
        .values(permit_id=permit_id, permit_us=now_us)
    )


def _record(row: Row[tuple[object, ...]]) -> DecisionRecord:
    values = row._asdict()
    values["decision"] = Decision(values["decision"])
    values["reasons"] = tuple(Reason(*parts) for parts in from_json(values["reasons"]))
    values["policy_ids"] = tuple(from_json(values["policy_ids"]))
    return DecisionRecord(**values)
