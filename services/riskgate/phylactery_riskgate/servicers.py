"""The gRPC face of RiskGate: decode, call, encode."""

from __future__ import annotations

from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
)
from phylactery_chassis.edge import parse
from phylactery_chassis.identity import current_principal

from phylactery_riskgate import encoding
from phylactery_riskgate.requests import (
    ApprovalInput,
    ApproveInput,
    EvaluateInput,
    ListInput,
    OutcomeInput,
    RedeemInput,
    RejectInput,
)
from phylactery_riskgate.service import RiskGate

Context = aio.ServicerContext[Any, Any]


class RiskGateServicer(riskgate_pb2_grpc.RiskGateServiceServicer):
    """Serves phylactery.riskgate.v1.RiskGateService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def Evaluate(self, request: riskgate_pb2.EvaluateRequest, _context: Context) -> riskgate_pb2.EvaluateResponse:
        """Decides about one proposed tool call."""
        asked = parse(
            EvaluateInput,
            {
                "call": encoding.call_fields(request.call),
                "thread_id": request.thread_id,
                "run_id": request.run_id,
                "plan_step": request.plan_step,
                "approval_id": request.approval_id,
            },
        )
        return encoding.evaluated(await self._riskgate.evaluate(current_principal(), asked))

    async def Redeem(self, request: riskgate_pb2.RedeemRequest, _context: Context) -> riskgate_pb2.RedeemResponse:
        """Consumes a permit for one execution and answers its receipt."""
        asked = parse(
            RedeemInput,
            {
                "permit": request.permit,
                "call": encoding.call_fields(request.call),
                "execution_id": request.execution_id,
                "thread_id": request.thread_id,
                "run_id": request.run_id,
            },
        )
        return encoding.redeemed(await self._riskgate.redeem(current_principal(), asked))

    async def ReportOutcome(
        self, request: riskgate_pb2.ReportOutcomeRequest, _context: Context
    ) -> riskgate_pb2.ReportOutcomeResponse:
        """Records how an execution ended."""
        asked = parse(
            OutcomeInput,
            {
                "execution_id": request.execution_id,
                "outcome": encoding.outcome_field(request.outcome),
                "result_hash": request.result_hash,
                "result_size": request.result_size,
                "error_code": request.error_code,
            },
        )
        index = await self._riskgate.report_outcome(current_principal(), asked)
        return riskgate_pb2.ReportOutcomeResponse(audit_index=index)


class ApprovalServicer(approval_pb2_grpc.ApprovalServiceServicer):
    """Serves phylactery.riskgate.v1.ApprovalService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def GetApproval(
        self, request: approval_pb2.GetApprovalRequest, _context: Context
    ) -> approval_pb2.GetApprovalResponse:
        """Answers one approval as the caller may see it."""
        asked = parse(ApprovalInput, {"approval_id": request.approval_id})
        seen = await self._riskgate.get_approval(current_principal(), asked.approval_id)
        return approval_pb2.GetApprovalResponse(approval=encoding.approval(seen))

    async def ListApprovals(
        self, request: approval_pb2.ListApprovalsRequest, _context: Context
    ) -> approval_pb2.ListApprovalsResponse:
        """Answers one page of approvals, newest first."""
        asked = parse(
            ListInput,
            {
                "state": encoding.state_field(request.state),
                "thread_id": request.thread_id,
                "page_size": request.page_size,
                "page_token": request.page_token,
            },
        )
        page, token = await self._riskgate.list_approvals(current_principal(), asked)
        return approval_pb2.ListApprovalsResponse(
            approvals=[encoding.approval(seen) for seen in page], next_page_token=token
        )

    async def Approve(self, request: approval_pb2.ApproveRequest, _context: Context) -> approval_pb2.ApproveResponse:
        """Takes a person's yes."""
        asked = parse(
            ApproveInput,
            {
                "approval_id": request.approval_id,
                "args_hash": request.args_hash,
                "code": request.code,
                "thread_id": request.thread_id,
            },
        )
        seen = await self._riskgate.approve(current_principal(), asked)
        return approval_pb2.ApproveResponse(approval=encoding.approval(seen))

    async def Reject(self, request: approval_pb2.RejectRequest, _context: Context) -> approval_pb2.RejectResponse:
        """Takes a person's no."""
        asked = parse(
            RejectInput,
            {"approval_id": request.approval_id, "reason": request.reason, "thread_id": request.thread_id},
        )
        seen = await self._riskgate.reject(current_principal(), asked)
        return approval_pb2.RejectResponse(approval=encoding.approval(seen))


class KeyServicer(key_pb2_grpc.KeyServiceServicer):
    """Serves phylactery.riskgate.v1.KeyService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def ListKeys(self, _request: key_pb2.ListKeysRequest, _context: Context) -> key_pb2.ListKeysResponse:
        """Answers every public key, the active one first."""
        keys = [encoding.public_key(key) for key in self._riskgate.public_keys]
        return key_pb2.ListKeysResponse(keys=keys, issuer=self._riskgate.issuer)
