"""AuthZEN access evaluations: questions and answers (docs/authzen.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from phylactery.riskgate.v1 import access_pb2


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """An access question: whether a subject may perform an action on a resource.

    action is a tool of the catalog; properties are JSON objects. subject is the user the question is about, not the
    caller. Its properties are arguments to policies, not the user's own attributes.
    """

    subject: str
    action: str
    resource_type: str
    resource_id: str
    resource_properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    context: Mapping[str, Any] = field(default_factory=dict, repr=False)
    subject_properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    action_properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    subject_type: str = "user"

    def parts(self) -> dict[str, Any]:
        """Return the parts of the contract's message. Raise ValueError if a property is not valid JSON."""
        parts: dict[str, Any] = {
            "subject": access_pb2.AccessSubject(type=self.subject_type, id=self.subject),
            "action": access_pb2.AccessAction(name=self.action),
            "resource": access_pb2.AccessResource(type=self.resource_type, id=self.resource_id),
        }
        given = (
            ("subject", self.subject_properties),
            ("action", self.action_properties),
            ("resource", self.resource_properties),
        )
        for name, properties in given:
            if properties:
                parts[name].properties.CopyFrom(_struct(properties))
        if self.context:
            parts["context"] = _struct(self.context)
        return parts


@dataclass(frozen=True, slots=True)
class AccessAnswer:
    """An answer, recorded in RiskGate's audit log as ``evaluation_id``.

    reason is a stable identifier; the texts are for people, by language. approval_class is the lowest sufficient class
    of approval, empty if no approval would help; approval_until is when that hint expires. Request the approval with
    evaluate().
    """

    allowed: bool
    evaluation_id: str
    evaluated_at: datetime
    reason: str
    reason_admin: Mapping[str, str]
    reason_user: Mapping[str, str]
    approval_class: str = ""
    approval_until: datetime | None = None


def access_answer(message: access_pb2.EvaluateAccessResponse | access_pb2.AccessDecision) -> AccessAnswer:
    """Return the answer of a message; anything but an explicit permission is a denial."""
    context = message.context
    hint = context.access_request if context.HasField("access_request") else None
    return AccessAnswer(
        allowed=message.HasField("decision") and message.decision,
        evaluation_id=context.evaluation_id,
        evaluated_at=context.evaluated_at.ToDatetime(tzinfo=UTC),
        reason=context.reason,
        reason_admin=dict(context.reason_admin),
        reason_user=dict(context.reason_user),
        approval_class=hint.template if hint else "",
        approval_until=hint.expires_at.ToDatetime(tzinfo=UTC) if hint else None,
    )


def _struct(properties: Mapping[str, Any]) -> Struct:
    """Return properties as a Struct. Raise ValueError for a value of a type that JSON does not have."""
    struct = Struct()
    struct.update(dict(properties))
    return struct
