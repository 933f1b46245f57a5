"""InspectionService's messages."""

from __future__ import annotations

from typing import Any

from phylactery.riskgate.v1 import inspection_pb2
from phylactery_chassis.inspection import Confidence, Finding, FindingKind

from phylactery_riskgate.inspecting import Inspected

MAX_FINDINGS = 10_000

_KINDS = {kind: inspection_pb2.FindingKind.Value(f"FINDING_KIND_{kind.upper()}") for kind in FindingKind}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_CONFIDENCES = {one: inspection_pb2.FindingConfidence.Value(f"FINDING_CONFIDENCE_{one.name}") for one in Confidence}
_CONFIDENCE_OF = {number: one for one, number in _CONFIDENCES.items()}


def options_fields(options: inspection_pb2.InspectOptions) -> dict[str, Any]:
    """Answers the options as the edge takes them; a number that names nothing stays text, which the edge refuses."""
    fields: dict[str, Any] = {
        "kinds": tuple(_KIND_OF.get(number, str(number)) for number in options.kinds),
        "want_redacted": options.want_redacted,
    }
    if options.min_confidence != inspection_pb2.FINDING_CONFIDENCE_UNSPECIFIED:
        fields["min_confidence"] = _CONFIDENCE_OF.get(options.min_confidence, str(options.min_confidence))
    return fields


def inspection(inspected: Inspected) -> inspection_pb2.Inspection:
    """Encodes what was found in one text."""
    return inspection_pb2.Inspection(
        findings=[_finding(one) for one in inspected.findings[:MAX_FINDINGS]],
        total_findings=len(inspected.findings),
        redacted_text=inspected.redacted,
    )


def _finding(one: Finding) -> inspection_pb2.Finding:
    return inspection_pb2.Finding(
        kind=_KINDS[one.kind],
        category=inspection_pb2.FindingCategory.Value(f"FINDING_CATEGORY_{one.kind.category.upper()}"),
        start=one.start,
        end=one.end,
        confidence=_CONFIDENCES[one.confidence],
        rule_id=one.rule,
    )
