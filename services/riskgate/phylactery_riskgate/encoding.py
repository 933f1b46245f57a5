"""RiskGate's answers as protobuf messages, and the requests' parts as plain values."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.struct_pb2 import Struct, Value
from phylactery.riskgate.v1 import key_pb2, riskgate_pb2, types_pb2
from phylactery_chassis.timestamps import to_timestamp

from phylactery_riskgate.approvals import ApprovalState
from phylactery_riskgate.core import ApprovalSeen
from phylactery_riskgate.domain.model import BoundCall
from phylactery_riskgate.evaluation import Evaluated
from phylactery_riskgate.keys import PublicKey
from phylactery_riskgate.redemption import Redeemed

_EXACT = 2**53

_STATES = {
    types_pb2.APPROVAL_STATE_PENDING: ApprovalState.PENDING,
    types_pb2.APPROVAL_STATE_APPROVED: ApprovalState.APPROVED,
    types_pb2.APPROVAL_STATE_REDEEMED: ApprovalState.REDEEMED,
    types_pb2.APPROVAL_STATE_REJECTED: ApprovalState.REJECTED,
    types_pb2.APPROVAL_STATE_EXPIRED: ApprovalState.EXPIRED,
    types_pb2.APPROVAL_STATE_CANCELLED: ApprovalState.CANCELLED,
}
_OUTCOMES = {
    riskgate_pb2.OUTCOME_SUCCEEDED: "SUCCEEDED",
    riskgate_pb2.OUTCOME_FAILED: "FAILED",
    riskgate_pb2.OUTCOME_IN_DOUBT: "IN_DOUBT",
}
_RISKS = {
    "": types_pb2.RISK_LEVEL_UNSPECIFIED,
    "low": types_pb2.RISK_LEVEL_LOW,
    "medium": types_pb2.RISK_LEVEL_MEDIUM,
    "high": types_pb2.RISK_LEVEL_HIGH,
    "critical": types_pb2.RISK_LEVEL_CRITICAL,
}


def call_fields(call: types_pb2.ToolCall) -> dict[str, Any]:
    """Answers a call as the edge reads it."""
    fields: dict[str, Any] = {
        "tool": call.tool,
        "tool_call_id": call.tool_call_id,
        "raw_args_hash": call.raw_args_hash,
        "tool_schema_hash": call.tool_schema_hash,
    }
    if call.HasField("arguments_json"):
        fields["arguments_json"] = call.arguments_json
    elif call.HasField("arguments_struct"):
        fields["arguments_struct"] = _struct(call.arguments_struct)
    return fields


def state_field(state: types_pb2.ApprovalState.ValueType) -> ApprovalState | str | None:
    """Answers the state, None for unspecified; a number that is no state stays text, which the edge refuses."""
    return None if state == types_pb2.APPROVAL_STATE_UNSPECIFIED else _STATES.get(state, str(state))


def outcome_field(outcome: riskgate_pb2.Outcome.ValueType) -> str:
    """Answers the outcome's name; a number that is none stays a number, which the edge refuses."""
    return _OUTCOMES.get(outcome, str(outcome))


def evaluated(answer: Evaluated) -> riskgate_pb2.EvaluateResponse:
    """Encodes a decision."""
    record = answer.record
    response = riskgate_pb2.EvaluateResponse(
        decision_id=record.id,
        decision=types_pb2.Decision.Value(f"DECISION_{record.decision}"),
        reasons=[
            types_pb2.Reason(
                code=reason.code,
                message=reason.message,
                message_es=reason.message_es,
                path=reason.path,
                policy_id=reason.policy_id,
            )
            for reason in record.reasons
        ],
        permit=answer.permit,
        policy_ids=record.policy_ids,
        bundle_revision=record.bundle_revision,
        risk=_RISKS[record.risk],
        audit_index=record.audit_index,
        replayed=answer.replayed,
    )
    if answer.bound is not None:
        response.bound_call.CopyFrom(_bound(answer.bound))
    if answer.permit:
        response.permit_expire_time.CopyFrom(to_timestamp(answer.permit_expire_us))
    if answer.approval is not None:
        response.approval.CopyFrom(approval(answer.approval))
    return response


def redeemed(answer: Redeemed) -> riskgate_pb2.RedeemResponse:
    """Encodes a redemption."""
    return riskgate_pb2.RedeemResponse(
        receipt=answer.receipt,
        bound_call=_bound(answer.bound),
        redeem_time=to_timestamp(answer.redeem_us),
        repeated_redeem=answer.repeated,
    )


def approval(seen: ApprovalSeen) -> types_pb2.Approval:
    """Encodes an approval as one person may see it."""
    record = seen.approval
    message = types_pb2.Approval(
        id=record.id,
        state=types_pb2.ApprovalState.Value(f"APPROVAL_STATE_{record.state}"),
        approval_class=record.approval_class,
        tool=record.tool,
        risk=_RISKS[record.risk],
        args_hash=record.args_hash,
        arguments=[
            types_pb2.ArgumentView(
                path=view.path,
                display=view.display,
                control=view.control,
                sensitive=view.sensitive,
                altered=view.altered,
            )
            for view in seen.arguments
        ],
        thread_id=record.thread_id,
        run_id=record.run_id,
        tool_call_id=record.tool_call_id,
        requester=record.requester,
        create_time=to_timestamp(record.create_us),
        expire_time=to_timestamp(record.expire_us),
        decided_by=record.decided_by,
        closed_reason=record.closed_reason,
        attempts_left=record.attempts_left,
        code=seen.code,
        decision_id=record.decision_id,
        policy_ids=record.policy_ids,
    )
    if record.decide_us:
        message.decide_time.CopyFrom(to_timestamp(record.decide_us))
    return message


def public_key(key: PublicKey) -> key_pb2.Key:
    """Encodes a public key."""
    return key_pb2.Key(
        kid=key.kid,
        jwk=json.dumps(key.jwk, sort_keys=True, separators=(",", ":")),
        state=key_pb2.KeyState.Value(f"KEY_STATE_{key.state}"),
    )


def _bound(bound: BoundCall) -> types_pb2.BoundCall:
    return types_pb2.BoundCall(
        tool=bound.tool,
        tool_version=bound.tool_version,
        arguments_json=bound.arguments_json,
        args_hash=bound.args_hash,
    )


def _struct(struct: Struct) -> dict[str, Any]:
    return {name: _value(value) for name, value in struct.fields.items()}


def _value(value: Value) -> Any:
    """Answers a Struct's value; every number in it is a double, and a whole one is a whole number again.

    Protobuf refuses messages nested deeper than 100, so the recursion is bounded.
    """
    match value.WhichOneof("kind"):
        case "struct_value":
            return _struct(value.struct_value)
        case "list_value":
            return [_value(item) for item in value.list_value.values]
        case "number_value":
            number = value.number_value
            return int(number) if number.is_integer() and abs(number) < _EXACT else number
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case _:
            return None
