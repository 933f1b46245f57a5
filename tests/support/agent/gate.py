"""An in-memory RiskGate with the same states and refusals, and receipts signed with a real Ed25519 key.

A graph test can choose policies and faults by hand. The end-to-end tests run the real service.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from phylactery.riskgate.v1 import types_pb2
from phylactery_agent.ports import (
    ApprovalInfo,
    BoundCall,
    CallContext,
    ExecutionReport,
    GateDecision,
    GateReason,
    GateRefusedError,
    GateUnavailableError,
    ProposedCall,
    Redeemed,
)
from phylactery_agent.tools.registry import ToolRegistry

ISSUER = "riskgate-test"
Decision = Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def compact(value: Any) -> str:
    return encode(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode())


class Signer:
    """One key; signs any header and payload."""

    def __init__(self, seed: int = 1) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32)
        self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": encode(self._key.public_key().public_bytes_raw())}
        self.kid = encode(hashlib.sha256(rfc8785.dumps(dict(self.jwk))).digest())

    def header(self) -> dict[str, Any]:
        return {"alg": "Ed25519", "kid": self.kid, "typ": "phylactery-receipt+jwt"}

    def sign(self, claims: Mapping[str, Any], header: str | None = None) -> str:
        body = f"{header or compact(self.header())}.{compact(claims)}"
        return f"{body}.{encode(self._key.sign(body.encode()))}"


@dataclass
class Redemption:
    execution_id: str
    receipt: str
    bound: BoundCall


@dataclass
class Task:
    """What was reported of one request; results by tool_call_id."""

    thread_id: str
    words: str
    continues: str
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    ended: bool = False
    kept: bool = False
    """Whether other tasks may continue from it."""


@dataclass
class FakeGate:
    """ports.Gate and runtime.services.TaskGate for one user of one tenant."""

    policy: dict[str, Decision] = field(
        default_factory=lambda: {
            "echo": "ALLOW",
            "read_file": "ALLOW",
            "read_output": "ALLOW",
            "rehydrate_output": "ALLOW",
            "search_output": "ALLOW",
            "remember": "ALLOW",
            "recall": "ALLOW",
            "write_file": "AUTH_REQUIRED",
        }
    )
    tools: ToolRegistry = field(default_factory=ToolRegistry)
    user: str = "ana"
    tenant: str = "acme"
    signer: Signer = field(default_factory=Signer)
    approval_class: str = "self"
    available: bool = True
    down: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    approvals: dict[str, ApprovalInfo] = field(default_factory=dict)
    codes: dict[str, str] = field(default_factory=dict)
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    permits: dict[str, tuple[str, BoundCall, str]] = field(default_factory=dict)
    expired_permits: set[str] = field(default_factory=set)
    revoked_permits: set[str] = field(default_factory=set)
    withheld: str = ""
    """Why allowed calls get no permit when they are evaluated again; empty if they do."""
    pathways: list[str] = field(default_factory=list)
    redemptions: dict[tuple[str, str], Redemption] = field(default_factory=dict)
    records: dict[tuple[str, str, str], GateDecision] = field(default_factory=dict)
    tasks: dict[str, Task] = field(default_factory=dict)
    requests: dict[str, str] = field(default_factory=dict)
    asked_in: list[tuple[str, str]] = field(default_factory=list)
    """Each Evaluate: the call and its task."""
    interpretations: list[Any] = field(default_factory=list)
    """The model interpretation passed to each BeginTask."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Methods that fail, with the reason."""

    def _enter(self, method: str, what: str) -> None:
        self.calls.append((method, what))
        if not self.available or method in self.down:
            raise GateUnavailableError(f"{method}: RiskGate does not answer")
        if method in self.refusals:
            raise GateRefusedError(self.refusals[method], "refused")

    async def begin_task(
        self, request_id: str, *, thread_id: str, words: str, continues: str, interpretation: Any = None
    ) -> str:
        self._enter("begin_task", request_id)
        self.interpretations.append(interpretation)
        known = request_id in self.requests
        if continues and not known and not (continues in self.tasks and self.tasks[continues].kept):
            self._task(continues)
        task_id = self.requests.setdefault(request_id, f"task_{len(self.requests)}")
        task = self.tasks.setdefault(task_id, Task(thread_id, words, continues))
        if (task.thread_id, task.words) != (thread_id, words):
            raise GateRefusedError("TASK_CONFLICT", "begun with other words", {"task_id": task_id})
        return task_id

    async def observe(self, shown: Mapping[str, Any]) -> None:
        self._enter("observe", str(shown["tool_call_id"]))
        result = {name: value for name, value in shown.items() if name not in ("task_id", "tool_call_id")}
        if self._task(str(shown["task_id"])).shown.setdefault(str(shown["tool_call_id"]), result) != result:
            raise GateRefusedError("TASK_CONFLICT", "another result", {"task_id": str(shown["task_id"])})

    async def end_task(self, task_id: str, *, keep_seconds: int = 0) -> None:
        self._enter("end_task", task_id)
        if task_id in self.tasks:
            self.tasks[task_id].ended, self.tasks[task_id].kept = True, keep_seconds > 0

    def _task(self, task_id: str) -> Task:
        task = self.tasks.get(task_id)
        if task is None:
            raise GateRefusedError("TASK_NOT_FOUND", "no such task", {"task_id": task_id})
        if task.ended:
            raise GateRefusedError("TASK_ENDED", "it was ended", {"task_id": task_id})
        return task

    async def evaluate(self, call: ProposedCall, where: CallContext, *, task_id: str = "") -> GateDecision:
        thread_id, run_id, approval_id = where.thread_id, where.run_id, where.approval_id
        self._enter("evaluate", call.tool_call_id)
        if task_id and self._task(task_id).thread_id != thread_id:
            raise GateRefusedError("TASK_NOT_FOUND", "another thread's", {"task_id": task_id})
        self.asked_in.append((call.tool_call_id, task_id))
        types_pb2.Pathway.Value(f"PATHWAY_{where.pathway.upper()}")
        self.pathways.append(where.pathway)
        key = (run_id, call.tool_call_id, approval_id)
        if approval_id:
            self._check_usable(approval_id, known=key in self.records)
        known = key in self.records
        if not known:
            self.records[key] = self._decide(call, thread_id, run_id, approval_id)
        decision = self.records[key]
        if known and self.withheld:
            reason = GateReason(self.withheld, "no permit", "sin permiso")
            return replace(decision, reasons=(reason, *decision.reasons), bound=None)
        if decision.decision == "ALLOW" and decision.bound is not None:
            permit = f"permit-{len(self.permits)}"
            self.permits[permit] = (call.tool_call_id, decision.bound, approval_id)
            decision = replace(decision, permit=permit)
        if decision.approval is not None:  # its current state, whenever the decision was made
            now = self.approvals[decision.approval.id]
            decision = replace(decision, approval=replace(decision.approval, state=now.state))
        return decision

    def _check_usable(self, approval_id: str, *, known: bool) -> None:
        approval = self._find(approval_id)
        if approval.state == "EXPIRED":
            raise GateRefusedError("APPROVAL_EXPIRED", "its time is over", {"factor": "expiry"})
        if approval.state != "APPROVED" and not (approval.state == "REDEEMED" and known):
            raise GateRefusedError("APPROVAL_NOT_PENDING", "it does not count", {"state": approval.state})

    def _decide(self, call: ProposedCall, thread_id: str, run_id: str, approval_id: str) -> GateDecision:
        decision_id = f"de_{len(self.records)}"
        text = rfc8785.dumps(call.args).decode()
        if "sha256:" + hashlib.sha256(text.encode()).hexdigest() != call.args_hash or text != call.canonical_args:
            return self._blocked(decision_id, "INTEGRITY_MISMATCH")
        spec = self.tools.get(call.tool)
        if spec is None or call.tool not in self.policy or call.schema_hash != spec.schema_hash:
            return self._blocked(decision_id, "UNKNOWN_TOOL")
        defaults = {name: part["default"] for name, part in spec.schema["properties"].items() if "default" in part}
        arguments = rfc8785.dumps({**defaults, **call.args}).decode()
        bound = BoundCall(call.tool, "v1", arguments, "sha256:" + hashlib.sha256(arguments.encode()).hexdigest())
        wanted = self.policy[call.tool]
        if wanted == "BLOCKED":
            return self._blocked(decision_id, "POLICY")
        if wanted == "ALLOW" or approval_id:
            return GateDecision(decision_id, "ALLOW", (), ("p",), spec.contract.risk, bound)
        approval = self._new_approval(call, bound, thread_id, run_id, spec.contract.risk)
        return GateDecision(decision_id, "AUTH_REQUIRED", (), ("p",), spec.contract.risk, bound, approval=approval)

    @staticmethod
    def _blocked(decision_id: str, code: str) -> GateDecision:
        reason = GateReason(code, "policy says no", "la política dice que no")
        return GateDecision(decision_id, "BLOCKED", (reason,), ("p",), "medium", None)

    def _new_approval(
        self, call: ProposedCall, bound: BoundCall, thread_id: str, run_id: str, risk: str
    ) -> ApprovalInfo:
        approval_id = f"ap_waiting{len(self.approvals)}"
        self.codes[approval_id] = f"code-{len(self.approvals)}-right"
        approval = ApprovalInfo(
            approval_id,
            "PENDING",
            self.approval_class,
            call.tool,
            risk,
            bound.args_hash,
            thread_id,
            run_id,
            call.tool_call_id,
            1_790_000_000_000_000,
            attempts_left=5,
            code=self.codes[approval_id],
        )
        self.approvals[approval_id] = approval
        return approval

    async def redeem(self, permit: str, call: ProposedCall, where: CallContext, *, execution_id: str) -> Redeemed:
        thread_id, run_id = where.thread_id, where.run_id
        self._enter("redeem", execution_id)
        tool_call_id, bound, approval_id = self.permits.get(permit, ("", None, ""))
        if bound is None or tool_call_id != call.tool_call_id or permit in self.revoked_permits:
            raise GateRefusedError("PERMIT_INVALID", "no such permit", {"factor": "signature"})
        holder = self.redemptions.get((run_id, call.tool_call_id))
        if holder is not None:
            if holder.execution_id != execution_id:
                raise GateRefusedError("ALREADY_REDEEMED", "another execution has it", {"factor": "one_time"})
            return Redeemed(holder.receipt, holder.bound, repeated=True)
        if permit in self.expired_permits:
            raise GateRefusedError("PERMIT_EXPIRED", "the permit's time is over", {"factor": "expiry"})
        if approval_id:
            self.approvals[approval_id] = replace(self.approvals[approval_id], state="REDEEMED")
        receipt = self.signer.sign(self.claims(bound, call, execution_id, thread_id, run_id))
        self.redemptions[run_id, call.tool_call_id] = Redemption(execution_id, receipt, bound)
        return Redeemed(receipt, bound, repeated=False)

    def claims(
        self, bound: BoundCall, call: ProposedCall, execution_id: str, thread_id: str, run_id: str
    ) -> dict[str, Any]:
        return {
            "iss": ISSUER,
            "aud": "executor",
            "jti": "rc_1",
            "iat": 1_790_000_000,
            "sub": self.user,
            "tenant": self.tenant,
            "thread": thread_id,
            "run": run_id,
            "tool_call_id": call.tool_call_id,
            "tool": bound.tool,
            "tool_version": bound.tool_version,
            "args_hash": bound.args_hash,
            "execution_id": execution_id,
        }

    async def report_outcome(self, report: ExecutionReport) -> None:
        self._enter("report_outcome", report.execution_id)
        self.outcomes.append((report.execution_id, report.outcome))

    def _find(self, approval_id: str) -> ApprovalInfo:
        if approval_id not in self.approvals:
            raise GateRefusedError("APPROVAL_NOT_FOUND", "there is none", {"approval_id": approval_id})
        return self.approvals[approval_id]

    async def get_approval(self, approval_id: str, *, full: bool = False) -> ApprovalInfo:
        self._enter("get_approval", approval_id)
        return self._find(approval_id)

    async def approve(self, approval_id: str, *, args_hash: str, code: str, thread_id: str) -> ApprovalInfo:
        self._enter("approve", approval_id)
        approval = self._find(approval_id)
        if approval.state == "EXPIRED":
            raise GateRefusedError("APPROVAL_EXPIRED", "its time is over", {"factor": "expiry"})
        if approval.state == "APPROVED":
            return approval
        if approval.state != "PENDING":
            raise GateRefusedError("APPROVAL_NOT_PENDING", "too late", {"state": approval.state})
        if approval.approval_class != "self":
            raise GateRefusedError("NOT_ELIGIBLE", "another person answers it", {"factor": "user"})
        if approval.thread_id != thread_id:
            raise GateRefusedError("THREAD_MISMATCH", "another conversation", {"factor": "thread"})
        if approval.args_hash != args_hash:
            raise GateRefusedError("ARGS_MISMATCH", "other arguments", {"factor": "argument_hash"})
        if code != self.codes[approval_id]:
            left = approval.attempts_left - 1
            self.approvals[approval_id] = replace(
                approval, attempts_left=left, state="PENDING" if left else "CANCELLED"
            )
            raise GateRefusedError("CODE_MISMATCH", "wrong", {"factor": "signature", "attempts_left": str(left)})
        self.approvals[approval_id] = replace(approval, state="APPROVED", code="")
        return self.approvals[approval_id]

    async def reject(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        self._enter("reject", approval_id)
        approval = self._find(approval_id)
        if approval.state not in {"PENDING", "REJECTED"}:
            raise GateRefusedError("APPROVAL_NOT_PENDING", "too late", {"state": approval.state})
        self.approvals[approval_id] = replace(approval, state="REJECTED", code="")
        return self.approvals[approval_id]

    async def cancel(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        self._enter("cancel", approval_id)
        self.approvals[approval_id] = replace(self._find(approval_id), state="CANCELLED", code="")
        return self.approvals[approval_id]

    def decide_elsewhere(self, approval_id: str, state: str) -> None:
        self.approvals[approval_id] = replace(self._find(approval_id), state=state, code="")

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        self.calls.append(("public_keys", "fresh" if fresh else "cached"))
        return {self.signer.kid: self.signer.jwk}

    async def issuer(self) -> str:
        return ISSUER
