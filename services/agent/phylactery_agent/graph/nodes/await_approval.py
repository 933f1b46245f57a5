"""AwaitApproval: tells the person what waits and suspends the run; the process is free to die (seed 000)."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.crashpoints import reach

from phylactery_agent.graph.common import AWAITING_APPROVAL, rfc3339
from phylactery_agent.graph.state import AgentState
from phylactery_agent.ports import Told, TurnContext
from phylactery_agent.texts import say

SELF_CLASS = "self"


async def await_approval(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    """Emits approval_required without code and argument values; whoever sends it to the requester adds them."""
    approval = state["approval_state"]
    if approval is None or state["approval_id"] is None:
        raise RuntimeError("AwaitApproval was reached without an approval")
    language = state["language"]
    payload = {
        "approval_id": state["approval_id"],
        "tool": approval["tool"],
        "risk": approval["risk"],
        "approval_class": approval["approval_class"],
        "expire_time": rfc3339(approval["expire_us"]),
    }
    await runtime.context.events.emit(Told("approval_required", payload, key=f"approval:{state['approval_id']}"))
    reach("agent.3b")
    key = "approval_required" if approval["approval_class"] == SELF_CLASS else "approval_required_other"
    note = say(
        key,
        language,
        tool=approval["tool"],
        risk=say(f"risk_{approval['risk']}", language),
        approval_id=state["approval_id"],
        approval_class=approval["approval_class"],
    )
    return Command(
        goto="Finalizer",
        update={
            "run_status": "suspended",
            "finish_reason": AWAITING_APPROVAL,
            "notes": [*state["notes"], note],
        },
    )
