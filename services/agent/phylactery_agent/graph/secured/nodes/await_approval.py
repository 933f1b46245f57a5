"""AwaitApproval: tells the person which approvals are pending and suspends the run; the process may then exit."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.graph.core.events import AWAITING_APPROVAL, SELF_CLASS, card_told, is_high
from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.i18n.texts import named, say
from phylactery_agent.ports import TurnContext


async def await_approval(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    """Emit the run's card. Approvals requested ahead appear on the same card."""
    approval = state["approval_state"]
    if approval is None or state["approval_id"] is None:
        raise RuntimeError("AwaitApproval was reached without an approval")
    told = card_told(state, runtime.context)
    await runtime.context.events.emit(told)
    reach("agent.3b")
    open_ones = (approval, *(one for one in state["asked_ahead"] if one["state"] == "PENDING"))
    card, language = sorted(open_ones, key=lambda one: not is_high(one)), state["language"]  # as clients show it
    own = approval["approval_class"] == SELF_CLASS
    titles = named([fields["tool"] for fields in card], language, runtime.context.tools)
    key = "approvals_required" if len(card) > 1 else "approval_required" if own else "approval_required_other"
    note = say(key, language, count=len(card), tools=titles)
    return Command(
        goto="Finalizer",
        update={
            "run_status": "suspended",
            "finish_reason": AWAITING_APPROVAL,
            "notes": [*state["notes"], note],
        },
    )
