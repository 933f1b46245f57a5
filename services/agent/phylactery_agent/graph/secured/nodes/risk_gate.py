"""RiskGate: sends the proposal to the gate and routes by its decision. It decides nothing itself."""

from __future__ import annotations

import json
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import (
    GATE_UNAVAILABLE,
    SELF_CLASS,
    approval_update,
    blocked_result,
    call_context,
    emit_decision,
    proposal,
    proposed_call,
    with_audit,
)
from phylactery_agent.graph.core.state import AgentState, AskedAhead, ProposedTool
from phylactery_agent.graph.secured.nodes.executor import known_after, note_proposal, refusal_of
from phylactery_agent.i18n.texts import error_text, say
from phylactery_agent.ports import ApprovalInfo, GateDecision, GateRefusedError, GateUnavailableError, TurnContext

MAX_CARD_CALLS: Final = 8
"""The number of calls of one question: of more, each is asked about by itself."""
_LONGEST_SHOWN: Final = 1_900
"""A text of fewer characters is shown whole (RiskGate leaves out the middle of 2,000)."""

_LOSES: Final = frozenset({"VALUE_MASKED", "READ_IN_PART"})
"""Reasons that say what would be lost; the person reads them with the question."""

Outcome = Command[Literal["Tools", "AwaitApproval", "ApprovalHandler", "Interpreter", "Finalizer"]]


async def risk_gate(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["Tools", "AwaitApproval", "ApprovalHandler", "Interpreter", "Finalizer"]]:
    """Evaluate. The permit of an ALLOW is passed to Tools outside the state: see nodes/tools.py."""
    context, language = runtime.context, state["language"]
    tool = proposal(state)
    try:
        decision = await _evaluate(state, context, tool)
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
        return await _asked(state, context, decision, audit)
    code = decision.reasons[0].code if decision.reasons else "BLOCKED"
    await context.ledger.deny(tool["tool_call_id"], error_code=code)
    result = blocked_result(tool, code, [reason.text(language) for reason in decision.reasons])
    return Command(goto="Interpreter", update={**audit, "last_tool_result": result})


async def _evaluate(state: AgentState, context: TurnContext, tool: ProposedTool) -> GateDecision:
    return await context.gate.evaluate(proposed_call(tool), call_context(state, tool))


async def _asked(state: AgentState, context: TurnContext, decision: GateDecision, audit: dict[str, Any]) -> Outcome:
    """Continue with an existing answer if the call was asked about ahead; otherwise ask the person."""
    update, approval = {**audit, **approval_update(decision)}, decision.approval
    if approval is None:
        raise RuntimeError("AUTH_REQUIRED came without an approval")
    # a changed plan may have left some behind
    coming = {tool["tool_call_id"] for tool in known_after(state, context.tools)}
    left = [ahead for ahead in state["asked_ahead"] if ahead["tool_call_id"] in coming]
    if approval.id in context.also_answered or approval.state != "PENDING":
        return Command(goto="ApprovalHandler", update={**update, "awaiting_approval": False, "asked_ahead": left})
    decisions = [decision]
    whole = not any(argument.left_out for argument in approval.arguments)
    if not left and whole and approval.approval_class == SELF_CLASS:
        left = await _ask_ahead(state, context, decisions)
    lost = [one.text(state["language"]) for each in decisions for one in each.reasons if one.code in _LOSES]
    notes = {"notes": [*state["notes"], *dict.fromkeys(lost)]} if lost else {}
    return Command(goto="AwaitApproval", update={**update, **notes, "asked_ahead": left})


async def _ask_ahead(state: AgentState, context: TurnContext, decisions: list[GateDecision]) -> list[AskedAhead]:
    """Return the approvals of the calls after this one that wait for the same person, and add their decisions.

    What needs no answer is passed over, and decided from the record when it is reached. Stop at the first call that is
    blocked or waits for somebody else: what follows it may never come about. More calls than one question has, or one
    that is not shown whole, are not looked at: a question that was made and not shown would expire before it is asked.
    """
    found: list[AskedAhead] = []
    coming = list(known_after(state, context.tools))
    changing = [tool for tool in coming if not _only_reads(context, tool)]
    if len(changing) >= MAX_CARD_CALLS or any(map(_is_long, changing)):
        return found
    for tool in coming:
        if await refusal_of(state, context, tool):
            break
        await note_proposal(state, context, tool)
        try:
            decision = await _evaluate(state, context, tool)
        except (GateRefusedError, GateUnavailableError):
            break
        if decision.decision == "ALLOW":
            continue
        approval = decision.approval
        if approval is None or approval.approval_class != SELF_CLASS or approval.state != "PENDING":
            break
        found.append(_ahead(tool, approval))
        decisions.append(decision)
    return found


def _only_reads(context: TurnContext, tool: ProposedTool) -> bool:
    spec = context.tools.get(tool["name"])
    return spec is not None and spec.contract.idempotency == "read_only"


def _is_long(tool: ProposedTool) -> bool:
    """Return True if a value of a call may not be shown whole on a card."""
    return any(len(json.dumps(value, ensure_ascii=False)) > _LONGEST_SHOWN for value in tool["args"].values())


def _ahead(tool: ProposedTool, approval: ApprovalInfo) -> AskedAhead:
    return AskedAhead(
        state=approval.state,
        approval_class=approval.approval_class,
        tool=approval.tool,
        risk=approval.risk,
        stakes=approval.stakes,
        expire_us=approval.expire_us,
        approval_id=approval.id,
        args_hash=approval.args_hash,
        tool_call_id=tool["tool_call_id"],
        step_id=tool["step_id"],
    )
