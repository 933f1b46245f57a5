"""Execution of one effect, from the second Evaluate to its outcome: docs/effects.md, 6 to 10, and recovery.

Every durable step is followed by its crash point. The same code runs on the first attempt and after a crash; the only
differences are what the ledger says and whether RiskGate has already seen this execution redeem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.ids import new_id

from phylactery_agent.graph.core.events import (
    CANCELLED,
    EFFECT_IN_DOUBT,
    GATE_UNAVAILABLE,
    blocked_result,
    call_context,
    effect_key,
    emit_decision,
    proposal,
    proposed_call,
    tool_result,
)
from phylactery_agent.graph.core.state import AgentState, ToolResult
from phylactery_agent.i18n.texts import error_text
from phylactery_agent.ports import (
    BoundCall,
    EffectState,
    GateDecision,
    GateRefusedError,
    LedgerRow,
    Redeemed,
    TurnContext,
)
from phylactery_agent.tools.contract import Reconciled, ToolFailedError, ToolSpec
from phylactery_agent.tools.executor import EffectInDoubtError, Execution, Executor, ReceiptRefusedError


@dataclass(frozen=True, slots=True)
class NeedsApproval:
    """A result saying that the current policy requires an approval, or a different one than was given."""

    decision: GateDecision


class Effect:
    """The effect of the state's proposal."""

    def __init__(self, state: AgentState, context: TurnContext) -> None:
        self._state = state
        self._context = context
        self._tool = proposal(state)
        self._call = proposed_call(self._tool)
        self._where = call_context(state, self._tool, approval_id=state["approval_id"] or "")
        self._executor: Executor = context.executor
        self._row: LedgerRow | None = None
        self._key = ""
        self._started = False
        self._arguments = self._call.canonical_args
        """The bound arguments once RiskGate has bound them; until then those that were proposed."""
        self.decision_id = ""

    async def carry_out(self) -> ToolResult | NeedsApproval:
        """Run the effect and return its result.

        Raises:
            GateUnavailableError: Nothing ran in this attempt; give_up determines the consequence.
            LeaseLostError: Another process holds the run.
        """
        self._row = await self._context.ledger.find(self._call.tool_call_id)
        if (
            self._row is not None
            and self._row.state in {EffectState.FINISHED, EffectState.IN_DOUBT, EffectState.DENIED}
            and not self._reads_again
        ):
            return self._recorded(self._row)
        try:
            decision = self._context.allowed.pop(self._call.tool_call_id, None) or await self._evaluate()
            self.decision_id = decision.decision_id
            if decision.decision != "ALLOW" or decision.bound is None:
                return await self._not_allowed(decision)
            return await self._proceed(decision, decision.bound)
        except GateRefusedError as error:
            return await self._stop(error.reason)

    async def _proceed(self, decision: GateDecision, bound: BoundCall) -> ToolResult:
        """Start, redeem and run what the gate allows."""
        self._arguments = bound.arguments_json
        approved = self._state["approval_hash"]
        if approved is not None and bound.args_hash != approved:
            return await self._stop("APPROVAL_ARGS_MISMATCH")
        execution_id = await self._start(decision, bound)
        if not await self._context.ledger.check_fence():
            return await self._stop(CANCELLED)
        redeemed = await self._redeem(decision.permit, execution_id)
        reach("agent.8")
        if redeemed.bound != bound:
            return await self._stop("RECEIPT_REFUSED")
        return await self._run(redeemed, execution_id)

    async def give_up(self, code: str) -> ToolResult | None:
        """Close the row of a call that cannot continue; return None if the code alone describes the outcome."""
        if not self._started and not self._recovering:
            return None
        result = await self._stop(code)
        return None if result["metadata"]["error_code"] == GATE_UNAVAILABLE else result

    @property
    def _recovering(self) -> bool:
        return self._row is not None and (self._row.state == EffectState.STARTED or self._reads_again)

    @property
    def _reads_again(self) -> bool:
        """Return True if a read completed before a crash and, at the person's request, its result was not stored.

        A write of that kind is not repeated: its output is lost, but the fact that it ran is not.
        """
        row = self._row
        lost = row is not None and (row.state, row.status, row.output) == (EffectState.FINISHED, "success", None)
        return lost and self._state["do_not_store"] and self._idempotency == "read_only"

    @property
    def _idempotency(self) -> Literal["read_only", "idempotent_by_key", "reconcilable", "unsafe"]:
        spec: ToolSpec | None = self._context.tools.get(self._tool["name"])
        return "unsafe" if spec is None else spec.contract.idempotency

    async def _evaluate(self) -> GateDecision:
        approval_id = self._where.approval_id
        decision = await self._context.gate.evaluate(self._call, self._where)
        self.decision_id = decision.decision_id
        if approval_id:
            key = f"risk:{self._call.tool_call_id}:{approval_id}"
            await emit_decision(self._context, self._tool, decision, key=key)
            reach("agent.6")
        return decision

    async def _not_allowed(self, decision: GateDecision) -> ToolResult | NeedsApproval:
        if self._recovering:
            return await self._stop("POLICY_CHANGED")
        if decision.decision == "AUTH_REQUIRED":
            return NeedsApproval(decision)
        code = decision.reasons[0].code if decision.reasons else "BLOCKED"
        await self._context.ledger.deny(self._call.tool_call_id, error_code=code)
        return self._blocked(code, [reason.text(self._state["language"]) for reason in decision.reasons])

    async def _start(self, decision: GateDecision, bound: BoundCall) -> str:
        """Commit that the effect is about to begin; after a crash the execution keeps its id and idempotency key."""
        if self._row is not None and self._recovering:
            self._key = self._row.effect_key
            return self._row.execution_id
        execution_id = new_id("ex")
        self._key = effect_key(
            self._state["tenant"],
            self._state["run_id"],
            self._tool["step_id"],
            bound.tool,
            bound.arguments_json,
        )
        await self._context.ledger.start(
            self._call.tool_call_id,
            execution_id=execution_id,
            effect_key=self._key,
            bound=bound,
            stakes=decision.stakes,
            low_stakes=decision.low_stakes,
        )
        self._started = True
        reach("agent.7")
        return execution_id

    async def _redeem(self, permit: str, execution_id: str) -> Redeemed:
        """Redeem the permit; if it expired or its key was revoked meanwhile, request a new one once."""
        try:
            return await self._context.gate.redeem(permit, self._call, self._where, execution_id=execution_id)
        except GateRefusedError as error:
            if not _stale(error):
                raise
        again = await self._evaluate()
        if again.decision != "ALLOW":
            raise GateRefusedError("POLICY_CHANGED", "the decision is another one now")
        if again.bound is None:
            code = again.reasons[0].code if again.reasons else "POLICY_CHANGED"
            raise GateRefusedError(code, "the call gets no permit any more")
        return await self._context.gate.redeem(again.permit, self._call, self._where, execution_id=execution_id)

    async def _run(self, redeemed: Redeemed, execution_id: str) -> ToolResult:
        # Only a row found as started can have run before. A redeem retried by the transport within this attempt is also
        # marked as repeated, although nothing has run.
        if self._recovering and redeemed.repeated:
            earlier = await self._earlier()
            if earlier is not None:
                return earlier
        execution = Execution(
            execution_id=execution_id,
            effect_key=self._key,
            tool_call_id=self._call.tool_call_id,
            tenant=self._state["tenant"],
            user_id=self._state["user_id"],
            thread_id=self._state["thread_id"],
            run_id=self._state["run_id"],
        )
        context = self._context
        content_hash = "" if self._row is None else self._row.content_hash
        calls = await context.ledger.calls() if content_hash else ()
        await context.ledger.check_fence()
        try:
            output = await self._executor.run(
                redeemed.receipt,
                redeemed.bound,
                execution,
                keys=context.gate,
                outputs=context.outputs,
                memories=context.memories,
                reminders=context.reminders,
                submissions=context.submissions,
                files=context.files,
                content_hash=content_hash,
                calls=calls,
                undoing=context.undoing,
                low_stakes=redeemed.low_stakes,
            )
        except ReceiptRefusedError:
            return await self._stop("RECEIPT_REFUSED")
        except ToolFailedError as error:
            return await self._finish("error", error.message, error.code, not_done=error.not_done)
        except EffectInDoubtError as error:
            return await self._doubt(error.code, error.said)
        reach("agent.9")
        return await self._finish("success", output, "", low_stakes=redeemed.low_stakes)

    async def _earlier(self) -> ToolResult | None:
        """Return the result of an attempt before the crash, or None if the effect must be run (again)."""
        kind = self._idempotency
        if kind in {"read_only", "idempotent_by_key"}:
            return None
        answer = await self._ask()
        if answer.state == "done":
            return await self._finish("success", answer.output, "")
        return None if answer.state in {"not_done", "begun"} else await self._doubt("UNKNOWN_AFTER_CRASH")

    async def _stop(self, code: str) -> ToolResult:
        """End without running; after a crash, first settle what an earlier attempt may have done."""
        if not self._recovering:
            if self._started:
                await self._finish("error", "", code, not_done=True)
            else:
                await self._context.ledger.deny(self._call.tool_call_id, error_code=code)
            return self._blocked(code, [error_text(code, self._state["language"])])
        if self._idempotency == "read_only":
            await self._finish("error", "", code)
            return self._blocked(code, [error_text(code, self._state["language"])])
        answer = await self._ask()
        if answer.state == "done":
            return await self._finish("success", answer.output, "")
        if answer.state == "not_done":
            await self._finish("error", "", code, not_done=True)
            return self._blocked(code, [error_text(code, self._state["language"])])
        return await self._doubt(code)

    async def _ask(self) -> Reconciled:
        key = self._row.effect_key if self._row is not None else self._key
        return await self._executor.reconcile(
            self._tool["name"],
            self._tool["args"],
            effect_key=key,
            tenant=self._state["tenant"],
            user_id=self._state["user_id"],
            outputs=self._context.outputs,
            memories=self._context.memories,
            reminders=self._context.reminders,
            undoing=self._context.undoing,
        )

    async def _finish(
        self,
        status: Literal["success", "error"],
        output: str,
        code: str,
        *,
        low_stakes: bool = False,
        not_done: bool = False,
    ) -> ToolResult:
        output = output.encode("utf-8", "replace").decode()  # a lone surrogate cannot be encoded for the wire
        await self._context.ledger.finish(
            self._call.tool_call_id,
            arguments_json=self._arguments,
            status=status,
            output=output,
            error_code=code,
            low_stakes=low_stakes,
            not_done=not_done,
        )
        reach("agent.10")
        return tool_result(self._tool, output=output, error_code=code, **self._approved())

    async def _doubt(self, code: str, said: str = "") -> ToolResult:
        await self._context.ledger.doubt(self._call.tool_call_id, error_code=code)
        said = said.encode("utf-8", "replace").decode()
        return tool_result(self._tool, output=said, error_code=EFFECT_IN_DOUBT, in_doubt=True)

    def _recorded(self, row: LedgerRow) -> ToolResult:
        """Return the result recorded in the ledger; the effect is not run again."""
        if row.state == EffectState.IN_DOUBT:
            return tool_result(self._tool, error_code=EFFECT_IN_DOUBT, in_doubt=True)
        if row.state == EffectState.DENIED:
            return self._blocked(row.error_code, [error_text(row.error_code, self._state["language"])])
        if row.status == "evicted":
            return tool_result(self._tool, kept_by_memory=True)
        # Without an output, a person has stated the outcome of the effect.
        return tool_result(self._tool, output=row.output or "", error_code=row.error_code, **self._approved())

    def _blocked(self, code: str, reasons: list[str]) -> ToolResult:
        return blocked_result(self._tool, code, reasons)

    def _approved(self) -> dict[str, bool]:
        return {"approved": self._state["approval_id"] is not None}


def _stale(error: GateRefusedError) -> bool:
    """Return True if a permit was refused for its age or its key; any other refusal would only recur."""
    if error.reason == "PERMIT_EXPIRED":
        return True
    return error.reason == "PERMIT_INVALID" and error.metadata.get("factor") == "signature"
