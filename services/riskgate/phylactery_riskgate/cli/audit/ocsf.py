"""Audit entries as events of OCSF 1.3, class API Activity (6003), with the profile security_control."""

from __future__ import annotations

from typing import Any, Final

from phylactery.riskgate.v1 import audit_pb2

from phylactery_riskgate.cli.audit.remote import entry_facts

_VERSION: Final = "1.3.0"
_CATEGORY, _CLASS = 6, 6003
_UNKNOWN, _OTHER = 0, 99
_ACTIVITIES: Final = {"create": 1, "read": 2, "update": 3, "delete": 4}
_INFORMATIONAL, _LOW, _MEDIUM = 1, 2, 3
_ALLOWED, _DENIED = 1, 2
_SUCCESS, _FAILURE = 1, 2
_DECISIONS: Final = {
    "ALLOW": (_ALLOWED, _ALLOWED, _INFORMATIONAL),
    "AUTH_REQUIRED": (_DENIED, _OTHER, _LOW),
    "BLOCKED": (_DENIED, _DENIED, _MEDIUM),
}
"""Of each decision: action_id, disposition_id and severity_id. What waits for a person is denied until then."""
_REFUSED: Final = ("_refused",)


def ocsf_event(entry: audit_pb2.AuditEntry) -> dict[str, Any]:
    """Return an entry as an event; what OCSF has no place for is whole in ``unmapped``."""
    facts = entry_facts(entry)
    record = facts["record"]
    decision = str(record.get("decision", ""))
    action, disposition, severity = _DECISIONS.get(decision, (_UNKNOWN, _UNKNOWN, _INFORMATIONAL))
    refused = entry.kind.endswith(_REFUSED) or record.get("outcome") == "FAILED"
    reasons = [one.get("code", "") for one in record.get("reasons") or () if isinstance(one, dict)]
    policies = [str(one) for one in record.get("policy_ids") or ()]
    activity = _ACTIVITIES["create"] if record.get("tool") else _OTHER
    event: dict[str, Any] = {
        "activity_id": activity,
        "category_uid": _CATEGORY,
        "class_uid": _CLASS,
        "type_uid": _CLASS * 100 + activity,
        "time": entry.create_time.ToMilliseconds(),
        "severity_id": _LOW if refused else severity,
        "status_id": _FAILURE if refused else _SUCCESS,
        "message": " ".join(filter(None, (entry.kind, decision or str(record.get("outcome", "")), record.get("tool")))),
        "actor": {"user": {"name": str(record.get("subject", "")), "org": {"uid": str(record.get("tenant", ""))}}},
        "api": {
            "operation": str(record.get("tool") or entry.kind),
            "service": {"name": "riskgate"},
            "request": {"uid": str(record.get("decision_id") or record.get("execution_id") or "")},
        },
        "src_endpoint": {"name": str(record.get("actor", ""))},
        "metadata": {
            "version": _VERSION,
            "product": {"name": "RiskGate", "vendor_name": "Phylactery"},
            "profiles": ["security_control"],
            "uid": f"{entry.log}:{entry.index}",
            "log_name": entry.log,
            "event_code": entry.kind,
        },
        "unmapped": facts,
    }
    if activity == _OTHER:
        event["activity_name"] = entry.kind
    if decision:
        event |= {"action_id": action, "disposition_id": disposition}
    if disposition == _OTHER:
        event["disposition"] = decision
    if policies:
        event["policy"] = {"uid": policies[0], "version": str(record.get("bundle_revision", ""))}
    if reasons:
        event["status_detail"] = ", ".join(reasons)
    return event
