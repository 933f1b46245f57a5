"""Interpreter: judges a result. It evicts by original size, clears the proposal and sets the step's status."""

from __future__ import annotations

from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.common import (
    APPROVAL_CLEARED,
    EFFECT_IN_DOUBT,
    fingerprint,
    proposal,
    step_told,
    with_step,
)
from phylactery_agent.graph.state import AgentState, ProposedTool, StepState, ToolResult
from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError, Told, TurnContext
from phylactery_agent.texts import say
from phylactery_agent.tools.registry import TOOL_REGISTRY

MAX_QUOTE: Final = 20_000
"""Characters a reply quotes of what memory did not take; it stays in the state whole. What is brought back is whole."""


async def interpreter(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Supervisor"]]:
    """Reports to Supervisor, who owns the plan."""
    context = runtime.context
    tool = proposal(state)
    result = state["last_tool_result"]
    if result is None:
        raise RuntimeError("Interpreter was reached without a result")
    result = await _evict(state, context, result)
    payload = {
        "tool": result["tool_name"],
        "tool_call_id": result["tool_call_id"],
        "status": result["status"],
        "size_chars": result["size_chars"],
        "pointer": result["pointer"] or "",
        "rehydration_allowed": result["rehydration_allowed"],
        "error_code": result["metadata"]["error_code"],
    }
    step = _judge(state["steps"][tool["step_id"]], result)
    await context.events.emit(Told("tool_result", payload, key=f"result:{result['tool_call_id']}"), step_told(step))
    update: dict[str, Any] = {
        **APPROVAL_CLEARED,
        "last_tool_result": result,
        "steps": with_step(state, step),
        "notes": [*state["notes"], *_notes(state, tool, result)],
    }
    if step["status"] == "failed" and tool["canonical_args"]:
        update["tried"] = [*state["tried"], fingerprint(tool["name"], tool["args"])]
    return Command(goto="Supervisor", update=update)


async def _evict(state: AgentState, context: TurnContext, result: ToolResult) -> ToolResult:
    """Gives a large output to memory. Where memory does not take it, the original stays: nothing is lost."""
    spec = TOOL_REGISTRY.get(result["tool_name"])
    evictable = spec is None or spec.contract.evictable
    if result["status"] != "success" or not evictable or result["size_chars"] <= context.evict_over_chars:
        return result
    try:
        stored = await context.outputs.store_output(
            result["output"],
            thread_id=state["thread_id"],
            run_id=state["run_id"],
            tool_call_id=result["tool_call_id"],
            tool_name=result["tool_name"],
        )
    except (MemoryUnavailableError, MemoryRefusedError) as error:
        reason = error.reason if isinstance(error, MemoryRefusedError) else "MEMORY_UNAVAILABLE"
        return {**result, "metadata": {**result["metadata"], "not_evicted": reason}}
    if not stored.evicted:
        return result
    await context.ledger.evicted(result["tool_call_id"], pointer=stored.pointer, size_chars=stored.size_chars)
    return {
        **result,
        "output": stored.placeholder,
        "status": "evicted",
        "evicted": True,
        "pointer": stored.pointer,
        "size_chars": stored.size_chars,
        "rehydration_allowed": stored.rehydration_allowed,
        "metadata": {
            **result["metadata"],
            "sha256": stored.sha256,
            "preview_head": stored.preview_head,
            "preview_tail": stored.preview_tail,
        },
    }


def _judge(step: StepState, result: ToolResult) -> StepState:
    """Answers the step after the result. What ran under an approval is not tried again: a person said yes to one."""
    metadata = result["metadata"]
    judged = StepState(**{**step, "tries": step["tries"] + 1, "result_pointer": result["pointer"]})
    if result["status"] != "error":
        judged["status"], judged["last_error"] = "done", None
        return judged
    judged["last_error"] = metadata["error_code"]
    if metadata.get("blocked"):
        judged["status"] = "blocked"
    elif metadata.get("in_doubt") or metadata.get("approved") or judged["tries"] >= judged["max_tries"]:
        judged["status"] = "failed"
    else:
        judged["status"] = "pending"
    return judged


def _notes(state: AgentState, tool: ProposedTool, result: ToolResult) -> list[str]:
    """Answers what the person is told now; a failure is told when the step is given up."""
    language, metadata = state["language"], result["metadata"]
    if metadata["error_code"] == EFFECT_IN_DOUBT:
        return [say("effect_in_doubt", language, tool=tool["name"])]
    if metadata.get("blocked"):
        return [say("step_blocked", language, tool=tool["name"], reasons=" ".join(metadata["reasons"]))]
    if result["status"] == "error":
        return []
    spec = TOOL_REGISTRY.get(tool["name"])
    label = "" if spec is None else spec.labels[language].format(**tool["args"])
    if result["evicted"]:
        return [
            say(
                "evicted",
                language,
                label=label,
                placeholder=result["output"],
                pointer=result["pointer"],
                head=metadata["preview_head"],
                tail=metadata["preview_tail"],
            )
        ]
    if metadata.get("kept_by_memory"):
        return [say("result", language, label=label, output=say("result_kept", language))]
    quoted = result["output"] if spec is None else spec.quoted(result["output"], language)
    if len(quoted) > MAX_QUOTE and (spec is None or spec.contract.evictable):
        more = len(quoted) - MAX_QUOTE
        quoted = say("result_cut", language, output=quoted[:MAX_QUOTE], more=more)
    return [say("result", language, label=label, output=quoted)]
