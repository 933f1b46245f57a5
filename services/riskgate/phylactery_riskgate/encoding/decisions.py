"""RiskGateService's messages."""

from __future__ import annotations

from collections.abc import Iterable

from google.rpc import code_pb2
from phylactery.riskgate.v1 import error_reason_pb2, riskgate_pb2, types_pb2
from phylactery_chassis.errors import DomainError
from phylactery_chassis.rpc.status import MAX_MESSAGE, REASON_PREFIX
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.encoding.approvals import approval
from phylactery_riskgate.encoding.types import bound_call, fill_bound_call, reason, risk
from phylactery_riskgate.questions import Evaluated
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
    response = riskgate_pb2.EvaluateResponse()
    _fill(response, answer)
    return response


def batch(answers: Iterable[Evaluated | DomainError]) -> riskgate_pb2.EvaluateBatchResponse:
    """Encodes the answers to the requests of a batch, each where it stands: a third of what it takes to copy them."""
    response = riskgate_pb2.EvaluateBatchResponse()
    for answer in answers:
        if isinstance(answer, Evaluated):
            _fill(response.results.add().response, answer)
        else:
            response.results.add(error=_error(answer))
    return response


def _fill(response: riskgate_pb2.EvaluateResponse, answer: Evaluated) -> None:
    record = answer.record
    response.decision_id = record.id
    response.decision = _DECISIONS[record.decision]
    response.reasons.extend([reason(one) for one in record.reasons])
    response.permit = answer.permit
    response.policy_ids.extend(record.policy_ids)
    response.bundle_revision = record.bundle_revision
    response.risk = risk(record.risk)
    response.audit_log = record.audit_log
    response.audit_index = record.audit_index
    response.replayed = answer.replayed
    if answer.bound is not None:
        fill_bound_call(response.bound_call, answer.bound)
    if answer.permit:
        response.permit_expire_time.CopyFrom(to_timestamp(answer.permit_expire_us))
    if answer.approval is not None:
        response.approval.CopyFrom(approval(answer.approval))


def _error(answer: DomainError) -> riskgate_pb2.RequestError:
    error = riskgate_pb2.RequestError(
        code=code_pb2.Code.Value(answer.code),
        reason=error_reason_pb2.ErrorReason.Value(REASON_PREFIX + answer.reason),
        message=answer.message[:MAX_MESSAGE],
        metadata=answer.metadata,
    )
    for violation in answer.violations:
        error.field_violations.add(field=violation.field, description=violation.description)
    return error


def redeemed(answer: Redeemed) -> riskgate_pb2.RedeemResponse:
    """Encodes a redemption."""
    return riskgate_pb2.RedeemResponse(
        receipt=answer.receipt,
        bound_call=bound_call(answer.bound),
        redeem_time=to_timestamp(answer.redeem_us),
        repeated_redeem=answer.repeated,
    )
