"""EvaluateAccess's messages: the JSON form of AuthZEN, as protobuf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from phylactery.riskgate.v1 import access_pb2
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.access import AccessAnswer
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.encoding.types import struct_value


def access_fields(request: access_pb2.EvaluateAccessRequest) -> dict[str, Any]:
    """Answers the questions as the edge reads them; what one of several leaves out is the request's."""
    shared = _question(request)
    if not request.evaluations:
        return shared
    fields: dict[str, Any] = {"evaluations": [shared | _question(one) for one in request.evaluations]}
    if request.options.evaluations_semantic:
        fields["evaluations_semantic"] = request.options.evaluations_semantic
    return fields


def access_evaluated(answers: Sequence[AccessAnswer], *, several: bool) -> access_pb2.EvaluateAccessResponse:
    """Encodes the answer to one question, or to several."""
    decided = [access_pb2.AccessDecision(decision=one.allowed, context=_context(one)) for one in answers]
    if several:
        return access_pb2.EvaluateAccessResponse(evaluations=decided)
    return access_pb2.EvaluateAccessResponse(decision=decided[0].decision, context=decided[0].context)


def _question(message: access_pb2.EvaluateAccessRequest | access_pb2.AccessEvaluation) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if message.HasField("subject"):
        fields["subject"] = _part(message.subject)
    if message.HasField("action"):
        fields["action"] = _part(message.action)
    if message.HasField("resource"):
        fields["resource"] = _part(message.resource)
    if message.HasField("context"):
        fields["context"] = struct_value(message.context)
    return fields


def _part(message: access_pb2.AccessSubject | access_pb2.AccessAction | access_pb2.AccessResource) -> dict[str, Any]:
    names = (field.name for field in message.DESCRIPTOR.fields if field.name != "properties")
    return {name: getattr(message, name) for name in names} | {"properties": struct_value(message.properties)}


def _context(answer: AccessAnswer) -> access_pb2.AccessContext:
    reason = answer.verdict.reasons[0]
    why = " ".join((reason.code, *answer.verdict.policy_ids))
    context = access_pb2.AccessContext(
        id=answer.id,
        evaluation_id=answer.id,
        evaluated_at=to_timestamp(answer.time_us),
        reason=reason.code,
        reason_admin={"en": f"{why}: {reason.message}"},
        reason_user={"en": reason.message, "es": reason.message_es},
    )
    if answer.verdict.decision is Decision.AUTH_REQUIRED:
        wanted = answer.verdict.approval_class or ""
        hint = context.access_request
        hint.template = wanted
        hint.expires_at.CopyFrom(to_timestamp(answer.requestable_until_us))
        hint.display.title = f"Ask for an approval of class {wanted}"
        hint.display.description = reason.message
    return context
