"""RiskGateService's messages."""

from __future__ import annotations

from google.rpc import code_pb2
from phylactery.riskgate.v1 import error_reason_pb2, riskgate_pb2, types_pb2
from phylactery_chassis.errors import DomainError
from phylactery_chassis.status import MAX_MESSAGE, REASON_PREFIX
from phylactery_chassis.timestamps import to_timestamp

from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.encoding.approvals import approval
from phylactery_riskgate.encoding.types import bound_call, reason, risk
from phylactery_riskgate.evaluation import Evaluated
from phylactery_riskgate.redemption import Redeemed

_OUTCOMES = {
    riskgate_pb2.OUTCOME_SUCCEEDED: "SUCCEEDED",
    riskgate_pb2.OUTCOME_FAILED: "FAILED",
    riskgate_pb2.OUTCOME_IN_DOUBT: "IN_DOUBT",
}
_DECISIONS = {one: types_pb2.Decision.Value(f"DECISION_{one}") for one in Decision}


def outcome_field(outcome: riskgate_pb2.Outcome.ValueType) -> str:
    """Answers the outcome's name; a number that is none stays a number, which the edge refuses."""
    return _OUTCOMES.get(outcome, str(outcome))


def evaluated(answer: Evaluated) -> riskgate_pb2.EvaluateResponse:
    """Encodes a decision."""
    record = answer.record
    return riskgate_pb2.EvaluateResponse(
        decision_id=record.id,
        decision=_DECISIONS[record.decision],
        reasons=[reason(one) for one in record.reasons],
        permit=answer.permit,
        policy_ids=record.policy_ids,
        bundle_revision=record.bundle_revision,
        risk=risk(record.risk),
        audit_log=record.audit_log,
        audit_index=record.audit_index,
        replayed=answer.replayed,
        bound_call=None if answer.bound is None else bound_call(answer.bound),
        permit_expire_time=to_timestamp(answer.permit_expire_us) if answer.permit else None,
        approval=None if answer.approval is None else approval(answer.approval),
    )


def result(answer: Evaluated | DomainError) -> riskgate_pb2.EvaluateResult:
    """Encodes the answer to one request of a batch."""
    if isinstance(answer, Evaluated):
        return riskgate_pb2.EvaluateResult(response=evaluated(answer))
    error = riskgate_pb2.RequestError(
        code=code_pb2.Code.Value(answer.code),
        reason=error_reason_pb2.ErrorReason.Value(REASON_PREFIX + answer.reason),
        message=answer.message[:MAX_MESSAGE],
        metadata=answer.metadata,
    )
    for violation in answer.violations:
        error.field_violations.add(field=violation.field, description=violation.description)
    return riskgate_pb2.EvaluateResult(error=error)


def redeemed(answer: Redeemed) -> riskgate_pb2.RedeemResponse:
    """Encodes a redemption."""
    return riskgate_pb2.RedeemResponse(
        receipt=answer.receipt,
        bound_call=bound_call(answer.bound),
        redeem_time=to_timestamp(answer.redeem_us),
        repeated_redeem=answer.repeated,
    )
