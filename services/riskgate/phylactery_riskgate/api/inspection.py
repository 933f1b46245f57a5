"""InspectionService: servicer and message mapping."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import inspection_pb2, inspection_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.inspection import Confidence, Finding, FindingKind
from phylactery_chassis.rpc.validation import from_message

from phylactery_riskgate.tasks.inspection import Inspected, Inspecting
from phylactery_riskgate.tasks.requests import InspectBatchInput, InspectInput

MAX_FINDINGS = 10_000

_KINDS = {kind: inspection_pb2.FindingKind.Value(f"FINDING_KIND_{kind.upper()}") for kind in FindingKind}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_CONFIDENCES = {one: inspection_pb2.FindingConfidence.Value(f"FINDING_CONFIDENCE_{one.name}") for one in Confidence}
_CONFIDENCE_OF = {number: one for one, number in _CONFIDENCES.items()}


def options_fields(options: inspection_pb2.InspectOptions) -> dict[str, Any]:
    """Return the fields of the options for validation; an unknown number becomes text, which is refused."""
    fields: dict[str, Any] = {
        "kinds": tuple(_KIND_OF.get(number, str(number)) for number in options.kinds),
        "want_redacted": options.want_redacted,
    }
    if options.min_confidence != inspection_pb2.FINDING_CONFIDENCE_UNSPECIFIED:
        fields["min_confidence"] = _CONFIDENCE_OF.get(options.min_confidence, str(options.min_confidence))
    return fields


def inspection(inspected: Inspected) -> inspection_pb2.Inspection:
    """Encode the findings of one text."""
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


Context = aio.ServicerContext[Any, Any]


class InspectionServicer(inspection_pb2_grpc.InspectionServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.InspectionService."""

    def __init__(self, inspecting: Inspecting) -> None:
        self._inspecting = inspecting

    async def Inspect(
        self, request: inspection_pb2.InspectRequest, _context: Context
    ) -> inspection_pb2.InspectResponse:
        """Return the findings of one text."""
        asked = from_message(InspectInput, request, options=options_fields(request.options))
        inspected = await self._inspecting.inspect(current_principal(), [asked.text], asked.options)
        return inspection_pb2.InspectResponse(inspection=inspection(inspected[0]))

    async def InspectBatch(
        self, request: inspection_pb2.InspectBatchRequest, _context: Context
    ) -> inspection_pb2.InspectBatchResponse:
        """Return the findings of each text, in order."""
        options = options_fields(request.options)
        asked = from_message(InspectBatchInput, request, texts=list(request.texts), options=options)
        inspected = await self._inspecting.inspect(current_principal(), asked.texts, asked.options)
        return inspection_pb2.InspectBatchResponse(inspections=[inspection(one) for one in inspected])
