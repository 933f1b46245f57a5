"""Callers of RiskGate in tests: users with tokens, their calls, and decoded refusals."""

from __future__ import annotations

from typing import Any

from google.protobuf.duration_pb2 import Duration
from grpc import aio
from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    audit_pb2_grpc,
    control_pb2,
    control_pb2_grpc,
    key_pb2,
    key_pb2_grpc,
    policy_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2,
    task_pb2_grpc,
    types_pb2,
)

PEOPLE: dict[str, dict[str, Any]] = {
    "ana": {"tenant": "acme", "roles": ["caller"]},
    "ben": {"tenant": "acme", "roles": ["caller"]},
    "carla": {"tenant": "acme", "roles": ["caller", "approver"]},
    "dora": {"tenant": "acme", "roles": ["approver"]},
    "gina": {"tenant": "acme", "roles": ["approver"], "groups": ["payments"], "level": "admin"},
    "Dora": {"tenant": "acme", "roles": ["approver"]},
    "Ana": {"tenant": "acme", "roles": ["approver"]},
    "robot": {"tenant": "acme", "roles": ["approver", "delegate"]},
    "zoe": {"tenant": "zeta", "roles": ["caller", "approver"]},
    "petra": {"tenant": "acme", "roles": ["policy_admin", "installation_operator"]},
    "pablo": {"tenant": "acme", "roles": ["policy_admin"]},
    "zeno": {"tenant": "zeta", "roles": ["policy_admin"]},
    "ines": {"tenant": "ops", "roles": ["installation_operator"]},
    "agent": {"tenant": "*", "roles": ["delegate"]},
    "pep": {"tenant": "local", "roles": ["delegate"]},
    "aldo": {"tenant": "acme", "roles": ["auditor"]},
    "zora": {"tenant": "zeta", "roles": ["auditor", "operator"]},
    "olga": {"tenant": "acme", "roles": ["operator"]},
    "narrow": {"tenant": "acme", "roles": ["caller"], "tools": ["read_file", "echo"]},
    "shop": {"tenant": "acme", "roles": ["delegate"], "tools": ["read_file"]},
}
WRITE = '{"path":"notes.txt","content":"sesame-open"}'


def tool_call(tool: str = "write_file", arguments: str = WRITE, call_id: str = "c1", **more: str) -> types_pb2.ToolCall:
    """Return a proposed call, by default always the same write."""
    return types_pb2.ToolCall(tool=tool, tool_call_id=call_id, arguments_json=arguments, **more)


def _target(scope: str, name: str, tenant: str) -> control_pb2.FreezeTarget:
    return control_pb2.FreezeTarget(scope=f"FREEZE_SCOPE_{scope.upper()}", name=name, tenant=tenant)


class Person:
    """Calls as one identity; ``through`` names the end user of a delegate."""

    def __init__(self, channel: aio.Channel, name: str, through: str = "", tenant: str = "acme") -> None:
        metadata = [("authorization", f"Bearer token-of-{name}")]
        if through:
            metadata += [("x-phylactery-subject", through), ("x-phylactery-tenant", tenant)]
        self.metadata = tuple(metadata)
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(channel)
        self.keys = key_pb2_grpc.KeyServiceStub(channel)
        self.policies = policy_pb2_grpc.PolicyServiceStub(channel)
        self.audit = audit_pb2_grpc.AuditServiceStub(channel)
        self.control = control_pb2_grpc.ControlServiceStub(channel)
        self.tasks = task_pb2_grpc.TaskServiceStub(channel)

    async def evaluate(
        self,
        call: types_pb2.ToolCall | None = None,
        *,
        thread: str = "t1",
        run: str = "r1",
        approval: str = "",
        plan_step: str = "",
        **more: Any,
    ) -> riskgate_pb2.EvaluateResponse:
        request = riskgate_pb2.EvaluateRequest(
            call=call or tool_call(), thread_id=thread, run_id=run, approval_id=approval, plan_step=plan_step, **more
        )
        return await self.decisions.Evaluate(request, metadata=self.metadata, timeout=60)

    async def redeem(
        self,
        permit: str,
        call: types_pb2.ToolCall | None = None,
        *,
        execution: str = "execution-1",
        thread: str = "t1",
        run: str = "r1",
        **more: Any,
    ) -> riskgate_pb2.RedeemResponse:
        request = riskgate_pb2.RedeemRequest(
            permit=permit, call=call or tool_call(), execution_id=execution, thread_id=thread, run_id=run, **more
        )
        return await self.decisions.Redeem(request, metadata=self.metadata, timeout=60)

    async def report(self, outcome: str, *, execution: str = "execution-1", **more: Any) -> int:
        request = riskgate_pb2.ReportOutcomeRequest(execution_id=execution, outcome=f"OUTCOME_{outcome}", **more)
        answer = await self.decisions.ReportOutcome(request, metadata=self.metadata, timeout=60)
        return int(answer.audit_index)

    async def get(self, approval_id: str) -> types_pb2.Approval:
        request = approval_pb2.GetApprovalRequest(approval_id=approval_id)
        return (await self.approvals.GetApproval(request, metadata=self.metadata, timeout=60)).approval

    async def list(self, **options: Any) -> approval_pb2.ListApprovalsResponse:
        request = approval_pb2.ListApprovalsRequest(**options)
        return await self.approvals.ListApprovals(request, metadata=self.metadata, timeout=60)

    async def approve(self, approval: types_pb2.Approval, **changes: str) -> types_pb2.Approval:
        fields = {
            "approval_id": approval.id,
            "args_hash": approval.args_hash,
            "code": approval.code,
            "thread_id": approval.thread_id,
            **changes,
        }
        request = approval_pb2.ApproveRequest(**fields)
        return (await self.approvals.Approve(request, metadata=self.metadata, timeout=60)).approval

    async def reject(self, approval_id: str, *, reason: str = "", thread: str = "") -> types_pb2.Approval:
        request = approval_pb2.RejectRequest(approval_id=approval_id, reason=reason, thread_id=thread)
        return (await self.approvals.Reject(request, metadata=self.metadata, timeout=60)).approval

    async def cancel(self, approval_id: str, *, reason: str = "", thread: str = "") -> types_pb2.Approval:
        request = approval_pb2.CancelRequest(approval_id=approval_id, reason=reason, thread_id=thread)
        return (await self.approvals.Cancel(request, metadata=self.metadata, timeout=60)).approval

    async def begin(
        self, words: str = "hola", *, request: str = "request-1", thread: str = "t1", continues: str = ""
    ) -> str:
        """Begin a task and return its id."""
        asked = task_pb2.BeginTaskRequest(
            request_id=request,
            thread_id=thread,
            words=words,
            continues_task_id=continues,
            own_spans=[task_pb2.OwnSpan(stop=len(words))],
        )
        return (await self.tasks.BeginTask(asked, metadata=self.metadata, timeout=60)).task_id

    async def observe(
        self, task_id: str, call_id: str = "c1", *, tool: str = "read_file", **more: Any
    ) -> task_pb2.ObserveResponse:
        """Report a tool result, by default of a file that was read."""
        asked = task_pb2.ObserveRequest(task_id=task_id, tool_call_id=call_id, tool=tool, **more)
        return await self.tasks.Observe(asked, metadata=self.metadata, timeout=60)

    async def end_task(self, task_id: str, *, keep: int = 0) -> None:
        """End a task; for ``keep`` seconds others may continue it."""
        request = task_pb2.EndTaskRequest(task_id=task_id, keep=Duration(seconds=keep) if keep else None)
        await self.tasks.EndTask(request, metadata=self.metadata, timeout=60)

    async def freeze(
        self, scope: str, name: str = "", *, tenant: str = "", reason: str = ""
    ) -> control_pb2.FreezeResponse:
        """Freeze a "tool", a "user", a "tenant" or "all"."""
        request = control_pb2.FreezeRequest(target=_target(scope, name, tenant), reason=reason)
        return await self.control.Freeze(request, metadata=self.metadata, timeout=60)

    async def unfreeze(self, scope: str, name: str = "", *, tenant: str = "") -> control_pb2.UnfreezeResponse:
        """Remove a freeze."""
        request = control_pb2.UnfreezeRequest(target=_target(scope, name, tenant))
        return await self.control.Unfreeze(request, metadata=self.metadata, timeout=60)

    async def freezes(self) -> list[control_pb2.Freeze]:
        """Return the freezes visible to this person."""
        request = control_pb2.ListFreezesRequest()
        return list((await self.control.ListFreezes(request, metadata=self.metadata, timeout=60)).freezes)

    async def revoke(self, decision_id: str, *, tenant: str = "") -> control_pb2.RevokeDecisionResponse:
        """Void a decision."""
        request = control_pb2.RevokeDecisionRequest(decision_id=decision_id, tenant=tenant)
        return await self.control.RevokeDecision(request, metadata=self.metadata, timeout=60)

    async def list_keys(self) -> key_pb2.ListKeysResponse:
        return await self.keys.ListKeys(key_pb2.ListKeysRequest(), metadata=self.metadata, timeout=60)

    async def approved(self, call: types_pb2.ToolCall | None = None, **place: str) -> types_pb2.Approval:
        """Propose a call and return its approval, approved by the requester."""
        return await self.approve((await self.evaluate(call, **place)).approval)

    async def permitted(self, call: types_pb2.ToolCall | None = None, **place: str) -> riskgate_pb2.EvaluateResponse:
        """Propose and approve a call, and return the decision that holds the permit."""
        approval = await self.approved(call, **place)
        return await self.evaluate(call, approval=approval.id, **place)
