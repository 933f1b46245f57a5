"""Tools: takes one proposal through the ledger, the redeem and the executor (docs/effects.md, 6 to 10), exactly once.

The permit never enters the state: a checkpoint would keep a signed token, and after a crash or a suspension it would be
stale anyway. The permit of an ALLOW from this turn is passed in the context and used once. After an approval, a crash
or an expiry this node evaluates again right before it redeems. In any case, Redeem checks everything once more.
"""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import APPROVAL_CLEARED, GATE_UNAVAILABLE, approval_update, with_audit
from phylactery_agent.graph.core.state import AgentState, ToolResult
from phylactery_agent.graph.effect import Effect, NeedsApproval
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import GateUnavailableError, TurnContext

Outcome = Command[Literal["Interpreter", "AwaitApproval", "Finalizer"]]


async def tools(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["Interpreter", "AwaitApproval", "Finalizer"]]:
    """Run the proposal, or determine what became of it."""
    effect = Effect(state, runtime.context)
    try:
        outcome = await effect.carry_out()
    except GateUnavailableError:
        return await _unavailable(state, effect)
    audit = {"audit_trail": with_audit(state["audit_trail"], effect.decision_id)}
    if isinstance(outcome, NeedsApproval):
        return Command(goto="AwaitApproval", update={**audit, **approval_update(outcome.decision)})
    return Command(goto="Interpreter", update={**audit, "last_tool_result": outcome})


async def _unavailable(state: AgentState, effect: Effect) -> Outcome:
    """Handle an attempt in which nothing ran: an approved call keeps waiting; any other is closed here."""
    language = state["language"]
    if state["approval_id"] is not None:
        note = say("gate_unavailable_waiting", language)
        return Command(
            goto="Finalizer",
            update={
                "awaiting_approval": True,
                "run_status": "suspended",
                "finish_reason": GATE_UNAVAILABLE,
                "notes": [*state["notes"], note],
            },
        )
    result: ToolResult | None = await effect.give_up(GATE_UNAVAILABLE)
    if result is not None:
        return Command(goto="Interpreter", update={"last_tool_result": result})
    return Command(
        goto="Finalizer",
        update={
            **APPROVAL_CLEARED,
            "run_status": "failed",
            "finish_reason": GATE_UNAVAILABLE,
            "notes": [*state["notes"], say("gate_unavailable", language)],
        },
    )
