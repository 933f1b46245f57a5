"""Decision log: one line per answered decision, with its subject, policies, reasons and duration.

It contains no arguments and no names that a caller chose freely: ids are generated here, and a tool is one of the
catalog. The decision id leads to everything else in the audit log.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.telemetry.instruments import meter, start_at_zero
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_riskgate.approvals.model import Approval, Factor
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store.decisions import DecisionRecord

_NOT_IN_CATALOG = "not in the catalog"
_log = get_logger("decision")
_altered = start_at_zero(
    meter().create_counter(
        "riskgate.altered",
        unit="{record}",
        description="votes and decisions in the database that were not written by RiskGate",
    )
)


def tell_decision(
    who: Principal, engine: DecisionEngine, record: DecisionRecord, began: float, *, replayed: bool
) -> None:
    """Log an answer to Evaluate; ``began`` is when the request came, by the performance counter."""
    ids = {"approval_id": record.approval_id, "counted_approval_id": record.counted_approval_id}
    ids |= {"permit_id": record.permit_id}
    _tell_soon(
        began,
        decision_id=record.id,
        **{name: value for name, value in ids.items() if value},
        tool=_tool(engine, record.tool),
        decision=str(record.decision),
        policies=list(record.policy_ids),
        reasons=[one.code for one in record.reasons],
        bundle_revision=record.bundle_revision,
        replayed=replayed,
        tenant=who.tenant,
        subject=who.subject,
        actor=who.actor,
    )


def tell_access(who: Principal, engine: DecisionEngine, answer: Any, tool: str, began: float) -> None:
    """Log an answer to an AuthZEN question; ``who`` is the caller, and the record names the subject."""
    verdict = answer.verdict
    _tell_soon(
        began,
        evaluation_id=answer.id,
        tool=_tool(engine, tool),
        decision=str(verdict.decision),
        policies=list(verdict.policy_ids),
        reasons=[one.code for one in verdict.reasons],
        bundle_revision=verdict.bundle_revision,
        replayed=False,
        tenant=who.tenant,
        actor=who.actor,
    )


def tell_doubt(event: str, kind: Factor, **ids: Any) -> None:
    """Warn of data in the database that RiskGate did not write, and count it; ``ids`` identify it."""
    _altered.add(1, {"kind": str(kind)})
    _log.warning(event, **ids)


def tell_doubtful_votes(approval: Approval) -> None:
    """Warn of votes without a proof on an approval that a call relied on."""
    tell_doubt(
        "votes without a valid proof, possibly inserted into the database",
        Factor.VOTE,
        approval_id=approval.id,
        decision_id=approval.decision_id,
        tenant=approval.tenant,
        voters=[vote.subject for vote in approval.votes if not vote.proven],
    )


def _tool(engine: DecisionEngine, name: str) -> str:
    return name if name in engine.bundle.tools else _NOT_IN_CATALOG


def _tell_soon(began: float, **facts: Any) -> None:
    """Log in the next iteration of the event loop, when the answer is already on its way."""
    ms = round((time.perf_counter() - began) * 1_000, 2)
    asyncio.get_running_loop().call_soon(lambda: _log.info("decision", ms=ms, **facts))
