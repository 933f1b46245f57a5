"""Questions in the words of AuthZEN, and their answers (docs/authzen.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from phylactery.riskgate.v1 import access_pb2


@dataclass(frozen=True, slots=True)
class AccessQuestion:
    """May this user do that to this thing? action is a tool of the catalog; properties are JSON objects.

    subject is whom the question is about, never who asks. What is said about it is an argument to policies, not the
    user's own attributes.
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
        """Return the parts of the contract's message. Raise ValueError where a property is no JSON."""
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
    """An answer, which stands in RiskGate's audit log as ``evaluation_id``.

    reason is a stable word; the texts are for people, by language. approval_class is the least approval that would do,
    empty where nobody is worth asking, and approval_until when that hint ends: ask for it with evaluate().
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
    """Return the result of a message; what is not said to be allowed is not."""
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
    """Return properties as the wire has them. Raise ValueError: a number JSON does not know would be another one."""
    struct = Struct()
    struct.update(dict(properties))
    return struct
