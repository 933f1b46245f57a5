"""ApprovalService: servicer and message mapping."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from grpc import aio
from phylactery.riskgate.v1 import approval_pb2, approval_pb2_grpc, types_pb2
from phylactery_chassis.auth.identity import current_principal
from phylactery_chassis.rpc.validation import from_message
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_riskgate.api.mapping import risk, stakes
from phylactery_riskgate.approvals.model import ApprovalState
from phylactery_riskgate.approvals.requests import ApproveInput, GetInput, ListInput, RejectInput, WatchInput
from phylactery_riskgate.approvals.service import ApprovalService
from phylactery_riskgate.approvals.watch import Watched, Watches
from phylactery_riskgate.decisions.context import ApprovalSeen
from phylactery_riskgate.domain.model import ArgumentView

_STATES = {
    types_pb2.APPROVAL_STATE_PENDING: ApprovalState.PENDING,
    types_pb2.APPROVAL_STATE_APPROVED: ApprovalState.APPROVED,
    types_pb2.APPROVAL_STATE_REDEEMED: ApprovalState.REDEEMED,
    types_pb2.APPROVAL_STATE_REJECTED: ApprovalState.REJECTED,
    types_pb2.APPROVAL_STATE_EXPIRED: ApprovalState.EXPIRED,
    types_pb2.APPROVAL_STATE_CANCELLED: ApprovalState.CANCELLED,
}

_ORIGINS = (
    types_pb2.ARGUMENT_ORIGIN_USER,
    types_pb2.ARGUMENT_ORIGIN_REGISTRY,
    types_pb2.ARGUMENT_ORIGIN_POINTED,
    types_pb2.ARGUMENT_ORIGIN_FOREIGN,
)


def state_field(state: types_pb2.ApprovalState.ValueType) -> ApprovalState | str | None:
    """Return the state, None if unspecified; an unknown number becomes text, which validation refuses."""
    return None if state == types_pb2.APPROVAL_STATE_UNSPECIFIED else _STATES.get(state, str(state))


def approval(seen: ApprovalSeen) -> types_pb2.Approval:
    """Encode an approval as one person may see it."""
    record = seen.approval
    message = types_pb2.Approval(
        id=record.id,
        state=types_pb2.ApprovalState.Value(f"APPROVAL_STATE_{record.state}"),
        approval_class=record.approval_class,
        tool=record.tool,
        risk=risk(record.risk),
        args_hash=seen.args_hash,
        arguments=[argument(view) for view in seen.view.arguments],
        thread_id=record.thread_id,
        run_id=record.run_id,
        tool_call_id=record.tool_call_id,
        requester=record.requester,
        create_time=to_timestamp(record.create_us),
        expire_time=to_timestamp(record.expire_us),
        decided_by=record.decided_by,
        closed_reason=record.closed_reason,
        attempts_left=record.attempts_left,
        code=seen.code,
        decision_id=record.decision_id,
        policy_ids=record.policy_ids,
        policies=[
            types_pb2.PolicyTitle(id=one, title=title, title_es=title_es) for one, title, title_es in seen.policies
        ],
        votes=len(record.voters),
        votes_needed=record.approvers,
        compared_approval_id=seen.compared_id,
        arguments_left_out=seen.view.left_out,
        answerable=seen.answerable,
        stakes=stakes(record.stakes),
        why=[types_pb2.AskedBecause(code=one.code, message=one.message, message_es=one.message_es) for one in seen.why],
    )
    if record.decide_us:
        message.decide_time.CopyFrom(to_timestamp(record.decide_us))
    return message


def watched(change: Watched) -> approval_pb2.WatchApprovalsResponse:
    """Encode one message of a stream."""
    return approval_pb2.WatchApprovalsResponse(
        approval=None if change.seen is None else approval(change.seen),
        resume_token=change.resume_token,
        snapshot_end=change.snapshot_end,
    )


def argument(view: ArgumentView) -> types_pb2.ArgumentView:
    """Encode one argument as displayed."""
    return types_pb2.ArgumentView(
        path=view.path,
        display=view.display,
        control=view.control,
        sensitive=view.sensitive,
        altered=view.altered,
        marks=[types_pb2.ArgumentMark.Value(f"ARGUMENT_MARK_{mark}") for mark in view.marks],
        change=types_pb2.ArgumentChange.Value(f"ARGUMENT_CHANGE_{view.change}"),
        previous_display=view.previous,
        origin=origin(view.origin),
        origin_place=view.origin_place,
        characters_left_out=view.left_out,
    )


def origin(value: int | None) -> types_pb2.ArgumentOrigin.ValueType:
    """Encode how far an argument is from the user's own words; None without a task."""
    return types_pb2.ARGUMENT_ORIGIN_UNSPECIFIED if value is None else _ORIGINS[value]


Context = aio.ServicerContext[Any, Any]


class ApprovalServicer(approval_pb2_grpc.ApprovalServiceServicer):
    """gRPC servicer of phylactery.riskgate.v1.ApprovalService."""

    def __init__(self, approvals: ApprovalService, watches: Watches) -> None:
        self._approvals, self._watches = approvals, watches

    async def GetApproval(
        self, request: approval_pb2.GetApprovalRequest, _context: Context
    ) -> approval_pb2.GetApprovalResponse:
        """Return one approval as the caller may see it."""
        asked = from_message(GetInput, request)
        seen = await self._approvals.get(current_principal(), asked)
        return approval_pb2.GetApprovalResponse(approval=approval(seen))

    async def ListApprovals(
        self, request: approval_pb2.ListApprovalsRequest, _context: Context
    ) -> approval_pb2.ListApprovalsResponse:
        """Return one page of approvals, newest first."""
        asked = from_message(ListInput, request, state=state_field(request.state))
        page, token = await self._approvals.list_page(current_principal(), asked)
        return approval_pb2.ListApprovalsResponse(approvals=[approval(seen) for seen in page], next_page_token=token)

    async def Approve(self, request: approval_pb2.ApproveRequest, _context: Context) -> approval_pb2.ApproveResponse:
        """Record an approving vote."""
        asked = from_message(ApproveInput, request)
        seen = await self._approvals.approve(current_principal(), asked)
        return approval_pb2.ApproveResponse(approval=approval(seen))

    async def Reject(self, request: approval_pb2.RejectRequest, _context: Context) -> approval_pb2.RejectResponse:
        """Record a rejecting vote."""
        asked = from_message(RejectInput, request)
        seen = await self._approvals.reject(current_principal(), asked)
        return approval_pb2.RejectResponse(approval=approval(seen))

    async def Cancel(self, request: approval_pb2.CancelRequest, _context: Context) -> approval_pb2.CancelResponse:
        """Withdraw an approval request."""
        asked = from_message(RejectInput, request)
        seen = await self._approvals.cancel(current_principal(), asked)
        return approval_pb2.CancelResponse(approval=approval(seen))

    async def WatchApprovals(
        self, request: approval_pb2.WatchApprovalsRequest, _context: Context
    ) -> AsyncIterator[approval_pb2.WatchApprovalsResponse]:
        """Stream every change the caller may see."""
        asked = from_message(WatchInput, request, state=state_field(request.state))
        async with contextlib.aclosing(self._watches.watch(current_principal(), asked)) as changes:
            async for change in changes:
                yield watched(change)
