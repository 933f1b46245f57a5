"""Serves phylactery.riskgate.v1.ControlService."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import control_pb2, control_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.control import Control
from phylactery_riskgate.encoding import control as encoding
from phylactery_riskgate.requests.control import RevokeInput, TargetInput

Context = aio.ServicerContext[Any, Any]


class ControlServicer(control_pb2_grpc.ControlServiceServicer):
    """Serves phylactery.riskgate.v1.ControlService."""

    def __init__(self, control: Control) -> None:
        self._control = control

    async def Freeze(self, request: control_pb2.FreezeRequest, _context: Context) -> control_pb2.FreezeResponse:
        """Stop what is named."""
        asked = parse(TargetInput, encoding.target_fields(request))
        return encoding.frozen(await self._control.freeze(current_principal(), asked))

    async def Unfreeze(self, request: control_pb2.UnfreezeRequest, _context: Context) -> control_pb2.UnfreezeResponse:
        """Lift what is named."""
        asked = parse(TargetInput, encoding.target_fields(request))
        return encoding.lifted(await self._control.unfreeze(current_principal(), asked))

    async def ListFreezes(
        self, request: control_pb2.ListFreezesRequest, _context: Context
    ) -> control_pb2.ListFreezesResponse:
        """List what is frozen."""
        found = await self._control.list_freezes(current_principal())
        return control_pb2.ListFreezesResponse(freezes=[encoding.freeze(one) for one in found])

    async def RevokeDecision(
        self, request: control_pb2.RevokeDecisionRequest, _context: Context
    ) -> control_pb2.RevokeDecisionResponse:
        """Void a decision."""
        fields = {"decision_id": request.decision_id, "tenant": request.tenant, "reason": request.reason}
        asked = parse(RevokeInput, fields)
        return encoding.revoked(await self._control.revoke(current_principal(), asked))
