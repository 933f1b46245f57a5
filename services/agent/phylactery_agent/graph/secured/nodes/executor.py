"""Executor: proposes the current step's tool call. It decides nothing and never changes the plan.

The call is in the plan, or in the queue of calls a model proposed for this step, or it is requested from a model. In
every case there is one proposal at a time, and RiskGate decides about each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import rfc8785
from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.crypto import sha256

from phylactery_agent.graph.core.events import (
    blocked_result,
    canonical,
    proposed_call,
    stable_id,
    tool_result,
)
from phylactery_agent.graph.core.state import AgentState, PlannedStep, ProposedTool, ToolResult
from phylactery_agent.graph.llm.asking import MODEL_AWAY, Stepped, ask_step, may_use, model_of, went_away
from phylactery_agent.graph.llm.claims import Claims
from phylactery_agent.i18n.texts import error_text
from phylactery_agent.ports import Told, TurnContext
from phylactery_agent.tools.registry import TOOL_DISABLED, ToolRegistry
from phylactery_agent.tools.specs import REMEMBER, UNDO_WRITE

Outcome = Command[Literal["RiskGate", "Interpreter"]]
STEP_NEEDS_MODEL = "MODEL_AWAY"
CALL_INVALID = "MODEL_CALL_INVALID"


async def executor(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["RiskGate", "Interpreter"]]:
    """Propose one call under an id derived from run, step and try alone, so that proposing it again gives the same id.

    The id of a call requested from a model here also depends on the call, because a model may answer differently next
    time.
    """
    context = runtime.context
    planned = _current(state)
    waiting = [tool for tool in state["queued_tools"] if tool["step_id"] == planned["id"]]
    if waiting:
        return await _propose(state, context, waiting[0], waiting[1:])
    if not planned.get("open"):
        tool = _proposed(state, planned, planned["tool"], planned["args"], context.tools)
        return await _propose(state, context, tool, [])
    return await _asked(state, context, planned)


async def _asked(state: AgentState, context: TurnContext, planned: PlannedStep) -> Outcome:
    """Ask the model for the calls of an open step; propose the first and queue the others in order."""
    model = model_of(state, context)
    if model is None:
        return _uncalled(state, context, planned, error_code=STEP_NEEDS_MODEL)
    try:
        stepped: Stepped = await ask_step(state, context, model, planned)
    except MODEL_AWAY as error:
        lost = await went_away(state, context, error.reason)
        return _uncalled(state, context, planned, lost, error_code=STEP_NEEDS_MODEL)
    if stepped.calls:
        calls = [
            _proposed(state, planned, call.tool, call.args or {}, context.tools, place=f"c{number}")
            for number, call in enumerate(stepped.calls)
        ]
        return await _propose(state, context, calls[0], calls[1:])
    if stepped.answer:
        claims = Claims(context, state["request"], state["language"])
        return _uncalled(state, context, planned, output=await claims.honest(stepped.answer))
    return _uncalled(state, context, planned, error_code=CALL_INVALID)


async def _propose(state: AgentState, context: TurnContext, tool: ProposedTool, queue: list[ProposedTool]) -> Outcome:
    budgets = {**state["budgets"], "tool_calls": state["budgets"]["tool_calls"] + 1}
    update = {**_update(tool, queue), "budgets": budgets}
    refusal = await refusal_of(state, context, tool)
    if refusal:
        reasons = [error_text(refusal, state["language"])]
        return Command(
            goto="Interpreter", update={**update, "last_tool_result": blocked_result(tool, refusal, reasons)}
        )
    await note_proposal(state, context, tool)
    reach("agent.1")
    payload = {name: tool[name] for name in ("tool_call_id", "args_hash", "step_id")} | {"tool": tool["name"]}
    await context.events.emit(Told("tool_proposed", payload, key=f"proposed:{tool['tool_call_id']}"))
    return Command(goto="RiskGate", update=update)


async def note_proposal(state: AgentState, context: TurnContext, tool: ProposedTool) -> None:
    """Write a proposal, with the hash of what it may send, replace or take back: it may do that to nothing else."""
    if tool["name"] == UNDO_WRITE.name and not tool["args"].get("path") and context.undoing is not None:
        content_hash = await context.undoing.target()
    else:
        content_hash = await context.executor.content_hash(
            state["tenant"], state["user_id"], tool["name"], tool["args"]
        )
    await context.ledger.propose(replace(proposed_call(tool), content_hash=content_hash), plan_step=tool["step_id"])


async def refusal_of(state: AgentState, context: TurnContext, tool: ProposedTool) -> str:
    """Return why a call is not even proposed to RiskGate, or an empty string if it is."""
    refusal = "" if tool["canonical_args"] else "INVALID_ARGUMENTS"
    if not may_use(state, context, tool["name"]):
        refusal = "TOOL_NOT_ALLOWED"
    if state["do_not_store"] and tool["name"] == REMEMBER.name:
        refusal = "DO_NOT_STORE"
    if context.tools.refused_reason(tool["name"]) is not None:
        refusal = TOOL_DISABLED
    return refusal or await context.executor.refusal(state["tenant"], state["user_id"], tool["name"], tool["args"])


def known_after(state: AgentState, tools: ToolRegistry) -> Iterator[ProposedTool]:
    """Yield the calls that follow the current one and have known arguments, as they will be proposed.

    Stop before the first open step, because its arguments depend on results.
    """
    yield from state["queued_tools"]
    for planned in state["plan"]:
        if state["steps"][planned["id"]]["status"] != "pending":
            continue
        if planned.get("open"):
            return
        yield _proposed(state, planned, planned["tool"], planned["args"], tools)


def _uncalled(
    state: AgentState,
    context: TurnContext,
    planned: PlannedStep,
    update: dict[str, Any] | None = None,
    *,
    output: str = "",
    error_code: str = "",
) -> Outcome:
    """Report a step without a proposed call: it needs none, or none was found. RiskGate is not involved."""
    tool = _proposed(state, planned, planned["tool"], {}, context.tools, place="none")
    result: ToolResult = tool_result(
        tool, output=output, error_code=error_code, uncalled=True, final=error_code == STEP_NEEDS_MODEL
    )
    return Command(goto="Interpreter", update={**(update or {}), **_update(tool, []), "last_tool_result": result})


def _update(tool: ProposedTool, queue: list[ProposedTool]) -> dict[str, Any]:
    return {"agent_mode": "execution", "proposed_tool": tool, "queued_tools": queue, "last_tool_result": None}


def _proposed(
    state: AgentState, planned: PlannedStep, name: str, args: dict[str, Any], tools: ToolRegistry, *, place: str = ""
) -> ProposedTool:
    """Return a call as it may be proposed; canonical_args is empty if the arguments have no canonical form.

    place is the call's position in a model's reply; it is empty for a call of the plan, which is durable before it is
    proposed.
    """
    step = state["steps"][planned["id"]]
    spec = tools.get(name)
    try:
        text = canonical(args)
    except (rfc8785.CanonicalizationError, RecursionError):
        text = ""
    args_hash = sha256(text)
    parts = (state["run_id"], step["id"], str(step["tries"] + 1), *([place, name, args_hash] if place else []))
    return ProposedTool(
        name=name,
        args=args,
        canonical_args=text,
        args_hash=args_hash,
        tool_call_id=stable_id("tc", *parts),
        step_id=step["id"],
        schema_hash="" if spec is None else spec.schema_hash,
    )


def _current(state: AgentState) -> PlannedStep:
    found = next((planned for planned in state["plan"] if planned["id"] == state["current_step"]), None)
    if found is None:
        raise RuntimeError("Executor was reached without a current step")
    return found
