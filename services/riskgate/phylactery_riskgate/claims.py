"""What a permit says of the decision it was issued for."""

from __future__ import annotations

from typing import Any

from phylactery_chassis.util.clock import MICROSECONDS

from phylactery_riskgate.domain.model import BoundCall
from phylactery_riskgate.store.decisions import DecisionRecord


def permit_claims(record: DecisionRecord, bound: BoundCall, issuer: str, end_us: int) -> dict[str, Any]:
    """Answers what a permit says of a recorded decision about a bound call; it can be redeemed until end_us."""
    issued = record.permit_us // MICROSECONDS
    return {
        "iss": issuer,
        "aud": issuer,
        "jti": record.permit_id,
        "iat": issued,
        "nbf": issued,
        "exp": end_us // MICROSECONDS,
        "sub": record.subject,
        "tenant": record.tenant,
        "thread": record.thread_id,
        "run": record.run_id,
        "tool_call_id": record.tool_call_id,
        "tool": record.tool,
        "tool_version": record.tool_version,
        "args_hash": bound.args_hash,
        "decision_id": record.id,
        "approval_id": record.counted_approval_id,
        "bundle_revision": record.bundle_revision,
    }
