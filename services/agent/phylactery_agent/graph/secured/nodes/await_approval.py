"""AwaitApproval: tells the person which approvals are pending and suspends the run; the process may then exit."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.graph.core.events import AWAITING_APPROVAL, SELF_CLASS, approval_fields
from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.i18n.texts import named, say
from phylactery_agent.ports import Told, TurnContext


async def await_approval(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    """Emit approval_required without code and argument values; the delivery to the requester adds them.

    Approvals requested ahead appear on the same card.
    """
    approval = state["approval_state"]
    if approval is None or state["approval_id"] is None:
        raise RuntimeError("AwaitApproval was reached without an approval")
    language, tools = state["language"], runtime.context.tools
    card = [approval_fields(state["approval_id"], approval, language, tools)]
    card += [approval_fields(ahead["approval_id"], ahead, language, tools) for ahead in state["asked_ahead"]]
    payload = card[0] | ({"also": card[1:]} if card[1:] else {})
    await runtime.context.events.emit(Told("approval_required", payload, key=f"approval:{state['approval_id']}"))
    reach("agent.3b")
    own, titles = approval["approval_class"] == SELF_CLASS, named([fields["tool"] for fields in card], language, tools)
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
