"""RiskGate: asks the gate about the proposal and goes where its answer says. It decides nothing itself."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.common import (
    GATE_UNAVAILABLE,
    approval_update,
    blocked_result,
    emit_decision,
    proposal,
    proposed_call,
    with_audit,
)
from phylactery_agent.graph.state import AgentState
from phylactery_agent.ports import GateRefusedError, GateUnavailableError, TurnContext
from phylactery_agent.texts import error_text, say


async def risk_gate(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["Tools", "AwaitApproval", "Interpreter", "Finalizer"]]:
    """Evaluates. The permit an ALLOW brings goes to Tools beside the state: see nodes/tools.py."""
    context, language = runtime.context, state["language"]
    tool = proposal(state)
    try:
        decision = await context.gate.evaluate(
            proposed_call(tool),
            thread_id=state["thread_id"],
            run_id=state["run_id"],
            plan_step=tool["step_id"],
            pathway=state["request_pathway"],
        )
    except GateUnavailableError:
        return Command(
            goto="Finalizer",
            update={
                "proposed_tool": None,
                "run_status": "failed",
                "finish_reason": GATE_UNAVAILABLE,
                "notes": [*state["notes"], say("gate_unavailable", language)],
            },
        )
    except GateRefusedError as error:
        await context.ledger.deny(tool["tool_call_id"], error_code=error.reason)
        result = blocked_result(tool, error.reason, [error_text(error.reason, language)])
        return Command(goto="Interpreter", update={"last_tool_result": result})
    await emit_decision(context, tool, decision, key=f"risk:{tool['tool_call_id']}")
    audit = {"audit_trail": with_audit(state["audit_trail"], decision.decision_id)}
    if decision.decision == "ALLOW":
        context.allowed[tool["tool_call_id"]] = decision
        return Command(goto="Tools", update=audit)
    if decision.decision == "AUTH_REQUIRED":
        return Command(goto="AwaitApproval", update={**audit, **approval_update(decision)})
    code = decision.reasons[0].code if decision.reasons else "BLOCKED"
    await context.ledger.deny(tool["tool_call_id"], error_code=code)
    result = blocked_result(tool, code, [reason.text(language) for reason in decision.reasons])
    return Command(goto="Interpreter", update={**audit, "last_tool_result": result})
