"""RiskGate as one run uses it: what was run before is reported before anything new is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from phylactery_agent.ports import ApprovalInfo, Gate, GateDecision, ProposedCall, Redeemed
from phylactery_agent.runtime.delivery import Delivery


class ReportingGate:
    """ports.Gate that delivers the thread's outcome reports before each Evaluate (effects.md, step 11)."""

    def __init__(self, gate: Gate, delivery: Delivery, thread_key: str) -> None:
        self._gate, self._delivery, self._thread_key = gate, delivery, thread_key

    async def evaluate(
        self, call: ProposedCall, *, thread_id: str, run_id: str, plan_step: str, pathway: str, approval_id: str = ""
    ) -> GateDecision:
        """Reports, then asks. Raises GateUnavailableError when either does not work."""
        await self._delivery.flush("outcome", self._thread_key)
        return await self._gate.evaluate(
            call, thread_id=thread_id, run_id=run_id, plan_step=plan_step, pathway=pathway, approval_id=approval_id
        )

    async def redeem(
        self, permit: str, call: ProposedCall, *, execution_id: str, thread_id: str, run_id: str
    ) -> Redeemed:
        """Consumes the permit."""
        return await self._gate.redeem(permit, call, execution_id=execution_id, thread_id=thread_id, run_id=run_id)

    async def report_outcome(
        self,
        execution_id: str,
        *,
        outcome: Literal["SUCCEEDED", "FAILED", "IN_DOUBT"],
        result_hash: str,
        result_size: int,
        error_code: str,
    ) -> None:
        """Records how the execution ended."""
        await self._gate.report_outcome(
            execution_id, outcome=outcome, result_hash=result_hash, result_size=result_size, error_code=error_code
        )

    async def get_approval(self, approval_id: str) -> ApprovalInfo:
        """Answers the approval."""
        return await self._gate.get_approval(approval_id)

    async def approve(self, approval_id: str, *, args_hash: str, code: str, thread_id: str) -> ApprovalInfo:
        """Passes a person's yes on."""
        return await self._gate.approve(approval_id, args_hash=args_hash, code=code, thread_id=thread_id)

    async def reject(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Passes a person's no on."""
        return await self._gate.reject(approval_id, reason=reason, thread_id=thread_id)

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Answers the public keys receipts verify with."""
        return await self._gate.public_keys(fresh=fresh)

    async def issuer(self) -> str:
        """Answers the iss every receipt must carry."""
        return await self._gate.issuer()
