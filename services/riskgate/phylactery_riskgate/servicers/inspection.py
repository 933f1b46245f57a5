"""Serves phylactery.riskgate.v1.InspectionService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import inspection_pb2, inspection_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.encoding import inspection as encoding
from phylactery_riskgate.inspecting import Inspecting
from phylactery_riskgate.requests.inspection import InspectBatchInput, InspectInput

Context = aio.ServicerContext[Any, Any]


class InspectionServicer(inspection_pb2_grpc.InspectionServiceServicer):
    """Serves phylactery.riskgate.v1.InspectionService."""

    def __init__(self, inspecting: Inspecting) -> None:
        self._inspecting = inspecting

    async def Inspect(
        self, request: inspection_pb2.InspectRequest, _context: Context
    ) -> inspection_pb2.InspectResponse:
        """Answers what is in one text."""
        asked = parse(InspectInput, {"text": request.text, "options": encoding.options_fields(request.options)})
        inspected = await self._inspecting.inspect(current_principal(), [asked.text], asked.options)
        return inspection_pb2.InspectResponse(inspection=encoding.inspection(inspected[0]))

    async def InspectBatch(
        self, request: inspection_pb2.InspectBatchRequest, _context: Context
    ) -> inspection_pb2.InspectBatchResponse:
        """Answers what is in each text, in their order."""
        options = encoding.options_fields(request.options)
        asked = parse(InspectBatchInput, {"texts": list(request.texts), "options": options})
        inspected = await self._inspecting.inspect(current_principal(), asked.texts, asked.options)
        return inspection_pb2.InspectBatchResponse(inspections=[encoding.inspection(one) for one in inspected])
