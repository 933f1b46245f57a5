"""Serves phylactery.riskgate.v1.ApprovalService."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import parse

from phylactery_riskgate.encoding import approvals as encoding
from phylactery_riskgate.requests.approvals import ApproveInput, GetInput, ListInput, RejectInput, WatchInput
from phylactery_riskgate.service import RiskGate

Context = aio.ServicerContext[Any, Any]


class ApprovalServicer(approval_pb2_grpc.ApprovalServiceServicer):
    """Serves phylactery.riskgate.v1.ApprovalService."""

    def __init__(self, riskgate: RiskGate) -> None:
        self._riskgate = riskgate

    async def GetApproval(
        self, request: approval_pb2.GetApprovalRequest, _context: Context
    ) -> approval_pb2.GetApprovalResponse:
        """Answers one approval as the caller may see it."""
        asked = parse(GetInput, {"approval_id": request.approval_id, "full": request.full})
        seen = await self._riskgate.get_approval(current_principal(), asked)
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

    async def Cancel(self, request: approval_pb2.CancelRequest, _context: Context) -> approval_pb2.CancelResponse:
        """Withdraws what was asked."""
        asked = parse(
            RejectInput,
            {"approval_id": request.approval_id, "reason": request.reason, "thread_id": request.thread_id},
        )
        seen = await self._riskgate.cancel(current_principal(), asked)
        return approval_pb2.CancelResponse(approval=encoding.approval(seen))

    async def WatchApprovals(
        self, request: approval_pb2.WatchApprovalsRequest, _context: Context
    ) -> AsyncIterator[approval_pb2.WatchApprovalsResponse]:
        """Streams every change the caller may see."""
        asked = parse(
            WatchInput,
            {
                "state": encoding.state_field(request.state),
                "thread_id": request.thread_id,
                "approval_id": request.approval_id,
                "resume_token": request.resume_token,
                "snapshot": request.snapshot,
            },
        )
        async with contextlib.aclosing(self._riskgate.watches.watch(current_principal(), asked)) as changes:
            async for change in changes:
                yield encoding.watched(change)
