"""Executor: proposes the current step's tool call. It decides nothing and never touches the plan (seed 001)."""

from __future__ import annotations

from typing import Literal

import rfc8785
from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.crashpoints import reach

from phylactery_agent.graph.common import blocked_result, canonical, proposed_call, sha256_text, stable_id
from phylactery_agent.graph.state import AgentState, PlannedStep, ProposedTool
from phylactery_agent.ports import Told, TurnContext
from phylactery_agent.texts import error_text
from phylactery_agent.tools.registry import TOOL_DISABLED, TOOL_REGISTRY, disabled_reason


async def executor(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["RiskGate", "Interpreter"]]:
    """Proposes one call under an id that only depends on run, step and try: proposed again, it is the same."""
    context = runtime.context
    tool, refusal = _propose(state)
    budgets = {**state["budgets"], "tool_calls": state["budgets"]["tool_calls"] + 1}
    update = {"agent_mode": "execution", "proposed_tool": tool, "budgets": budgets, "last_tool_result": None}
    if refusal:
        reasons = [error_text(refusal, state["language"])]
        return Command(
            goto="Interpreter", update={**update, "last_tool_result": blocked_result(tool, refusal, reasons)}
        )
    await context.ledger.propose(proposed_call(tool), plan_step=tool["step_id"])
    reach("agent.1")
    payload = {name: tool[name] for name in ("tool_call_id", "args_hash", "step_id")} | {"tool": tool["name"]}
    await context.events.emit(Told("tool_proposed", payload, key=f"proposed:{tool['tool_call_id']}"))
    return Command(goto="RiskGate", update=update)


def _propose(state: AgentState) -> tuple[ProposedTool, str]:
    """Answers the proposal, and the code of why it may not even be asked about, "" where it may."""
    planned = _current(state)
    step = state["steps"][planned["id"]]
    spec = TOOL_REGISTRY.get(planned["tool"])
    try:
        text, refusal = canonical(planned["args"]), ""
    except rfc8785.CanonicalizationError:
        text, refusal = "", "INVALID_ARGUMENTS"
    allowed = state["security_context"]["allowed_tools"]
    if allowed and planned["tool"] not in allowed:
        refusal = "TOOL_NOT_ALLOWED"
    if disabled_reason(planned["tool"]) is not None:
        refusal = TOOL_DISABLED
    tool = ProposedTool(
        name=planned["tool"],
        args=planned["args"],
        canonical_args=text,
        args_hash=sha256_text(text),
        tool_call_id=stable_id("tc", state["run_id"], step["id"], str(step["tries"] + 1)),
        step_id=step["id"],
        schema_hash="" if spec is None else spec.schema_hash,
    )
    return tool, refusal


def _current(state: AgentState) -> PlannedStep:
    found = next((planned for planned in state["plan"] if planned["id"] == state["current_step"]), None)
    if found is None:
        raise RuntimeError("Executor was reached without a current step")
    return found
