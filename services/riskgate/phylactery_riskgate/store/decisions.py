"""Decisions: one row for every (tenant, user, run, tool_call_id, counted approval)."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.domain.model import Decision, Reason
from phylactery_riskgate.store.tables import decisions, from_json, to_json


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
    audit_index: int


def insert_decision(connection: Connection, record: DecisionRecord) -> None:
    """Adds a decision. Raises IntegrityError when another process added it first."""
    connection.execute(
        sa.insert(decisions).values(
            id=record.id,
            tenant=record.tenant,
            subject=record.subject,
            run_id=record.run_id,
            tool_call_id=record.tool_call_id,
            counted_approval_id=record.counted_approval_id,
            thread_id=record.thread_id,
            fingerprint=record.fingerprint,
            decision=str(record.decision),
            reasons=to_json([[r.code, r.message, r.message_es, r.path, r.policy_id] for r in record.reasons]),
            tool=record.tool,
            tool_version=record.tool_version,
            args_hash=record.args_hash,
            policy_ids=to_json(record.policy_ids),
            bundle_revision=record.bundle_revision,
            risk=record.risk,
            approval_id=record.approval_id,
            permit_id=record.permit_id,
            permit_us=record.permit_us,
            create_us=record.create_us,
            audit_index=record.audit_index,
        )
    )


def find_call(connection: Connection, key: CallKey, counted_approval_id: str) -> DecisionRecord | None:
    """Answers the decision about this place, whatever its arguments were."""
    row = connection.execute(
        sa.select(decisions).where(
            decisions.c.tenant == key.tenant,
            decisions.c.subject == key.subject,
            decisions.c.run_id == key.run_id,
            decisions.c.tool_call_id == key.tool_call_id,
            decisions.c.counted_approval_id == counted_approval_id,
        )
    ).one_or_none()
    return None if row is None else _record(row)


def find_decision(connection: Connection, tenant: str, decision_id: str) -> DecisionRecord | None:
    """Answers a decision by its id."""
    row = connection.execute(
        sa.select(decisions).where(decisions.c.tenant == tenant, decisions.c.id == decision_id)
    ).one_or_none()
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
