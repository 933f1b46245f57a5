"""Interpreter: judges a result, evicts by original size, clears the proposal and sets the step's status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import (
    APPROVAL_CLEARED,
    EFFECT_IN_DOUBT,
    fingerprint,
    proposal,
    step_told,
    with_step,
)
from phylactery_agent.graph.core.guards import (
    ALTERNATING_CALLS,
    MAX_TOOL_CALLS,
    REPEATED_CALL,
    call_record,
    judge,
    with_call,
)
from phylactery_agent.graph.core.output_inspection import findings_told, look, quoting
from phylactery_agent.graph.core.state import AgentState, ProposedTool, ShownResult, StepState, ToolResult
from phylactery_agent.graph.llm.conversation import shown_text
from phylactery_agent.i18n.texts import error_text, say, tool_title
from phylactery_agent.ports import MemoryRefusedError, MemoryUnavailableError, Told, TurnContext
from phylactery_agent.tools.contract import FINAL_ERRORS, ToolSpec
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs.shown import nothing_shown

MAX_QUOTE: Final = 20_000
"""Characters a reply quotes of an output that memory did not accept.

The state keeps it whole, and a rehydrated output is quoted whole.
"""
_NOT_AGAIN: Final = ("in_doubt", "approved", "final")
_WITHHELD: Final = "(the result cannot be shown: it could not be inspected)"
_HINTS: Final[Mapping[str, str]] = {
    REPEATED_CALL: "the same tool was called with the same arguments before and answered the same. Do something else.",
    ALTERNATING_CALLS: "two calls take turns and nothing comes of it. Do something else.",
}


async def interpreter(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Supervisor"]]:
    """Report to Supervisor, which owns the plan."""
    context = runtime.context
    tool = proposal(state)
    result = state["last_tool_result"]
    if result is None:
        raise RuntimeError("Interpreter was reached without a result")
    result = await _evict(state, context, result)
    step, guard = _guarded(state, tool, result, _judge(state, result))
    await context.events.emit(*_told(result), *guard.told, step_told(step))
    update: dict[str, Any] = {
        **APPROVAL_CLEARED,
        "last_tool_result": result,
        "steps": with_step(state, step),
        **guard.update,
        **quoting(state, *_notes(state, tool, result, context.tools)),
    }
    if step["status"] != "running":
        update["queued_tools"] = []
    if state.get("planned_by") == "model":
        update["results"] = await _shown(state, context, result)
    if step["status"] in {"failed", "blocked"} and tool["canonical_args"]:
        update["tried"] = [*state["tried"], fingerprint(tool["name"], tool["args"])]
    return Command(goto="Supervisor", update=update)


def _told(result: ToolResult) -> list[Told]:
    """Return the event for the result of a call; a step without a proposed call has no such event."""
    if result["metadata"].get("uncalled"):
        return []
    payload = {
        "tool": result["tool_name"],
        "tool_call_id": result["tool_call_id"],
        "status": result["status"],
        "size_chars": result["size_chars"],
        "pointer": result["pointer"] or "",
        "rehydration_allowed": result["rehydration_allowed"],
        "error_code": result["metadata"]["error_code"],
    }
    return [Told("tool_result", payload, key=f"result:{result['tool_call_id']}")]


@dataclass(frozen=True, slots=True)
class _Guard:
    """The outcome of the loop guards for a call: state to keep and events to emit."""

    update: dict[str, Any] = field(default_factory=dict)
    told: tuple[Told, ...] = ()


def _guarded(state: AgentState, tool: ProposedTool, result: ToolResult, step: StepState) -> tuple[StepState, _Guard]:
    """Return the step after the guards: a loop blocks it, and Supervisor re-plans.

    The guards watch a model's calls only. A call that the person's own words request three times runs three times: the
    rules plan it once, and the budgets limit it.
    """
    if state.get("planned_by") != "model" or result["metadata"].get("uncalled"):
        return step, _Guard({"hint": ""})
    answered = result["output"] or result["metadata"]["error_code"]
    calls = with_call(state.get("calls", []), call_record(tool["name"], tool["args"], answered))
    verdict = judge(calls)
    if verdict.kind == "ok":
        return step, _Guard({"calls": calls, "hint": ""})
    key = f"notice:{verdict.kind}:{tool['tool_call_id']}"
    told = Told("notice", {"reason": verdict.reason, "step_id": step["id"]}, key=key)
    if verdict.kind == "loop" and step["status"] not in {"failed", "blocked"}:
        step = StepState(**{**step, "status": "blocked", "last_error": verdict.reason})
    return step, _Guard({"calls": calls, "hint": _HINTS[verdict.reason]}, (told,))


async def _shown(state: AgentState, context: TurnContext, result: ToolResult) -> list[ShownResult]:
    """Return the results shown to a model, including this one: a bounded part of it, without its secrets."""
    metadata = result["metadata"]
    text = result["output"]
    if result["evicted"]:
        head, tail = metadata["preview_head"], metadata["preview_tail"]
        text = f"{result['output']}\nIt starts:\n{head}\n…\nIt ends:\n{tail}"
    elif result["status"] == "error":
        text = f"{error_text(metadata['error_code'], 'en')} ({metadata['error_code']}) {result['output']}".strip()
    looked = await look(context, shown_text(text))
    if told := findings_told(looked, "result", about=state["current_step"] or ""):
        await context.events.emit(*told)
    shown = ShownResult(
        step_id=str(state["current_step"]),
        tool=result["tool_name"],
        status=result["status"],
        text=_WITHHELD if looked is None else looked.text,
    )
    return [*state.get("results", []), shown][-MAX_TOOL_CALLS:]


async def _evict(state: AgentState, context: TurnContext, result: ToolResult) -> ToolResult:
    """Move a large output to memory. If memory does not accept it, keep the original so that nothing is lost."""
    spec: ToolSpec | None = context.tools.get(result["tool_name"])
    evictable = (spec is None or spec.contract.evictable) and not state["do_not_store"]
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


def _judge(state: AgentState, result: ToolResult) -> StepState:
    """Return the step after the result. A call that ran under an approval is not retried: a person approved one run.

    While more calls of the step are queued, the step stays running and its try is not over.
    """
    metadata = result["metadata"]
    step = state["steps"][proposal(state)["step_id"]]
    if result["status"] != "error" and any(tool["step_id"] == step["id"] for tool in state["queued_tools"]):
        return StepState(**{**step, "status": "running", "result_pointer": result["pointer"], "last_error": None})
    judged = StepState(**{**step, "tries": step["tries"] + 1, "result_pointer": result["pointer"]})
    if result["status"] != "error":
        judged["status"], judged["last_error"] = "done", None
        return judged
    judged["last_error"] = metadata["error_code"]
    if metadata.get("blocked"):
        judged["status"] = "blocked"
    elif judged["tries"] >= judged["max_tries"] or _over(state, result):
        judged["status"] = "failed"
    else:
        judged["status"] = "pending"
    return judged


def _over(state: AgentState, result: ToolResult) -> bool:
    """Return True if another attempt cannot succeed. If a model chooses the call, it may choose another one."""
    metadata, step_id = result["metadata"], proposal(state)["step_id"]
    if any(metadata.get(word) for word in _NOT_AGAIN):
        return True
    chosen = any(planned["id"] == step_id and planned.get("open") for planned in state["plan"])
    return metadata["error_code"] in FINAL_ERRORS and not chosen


def _notes(
    state: AgentState, tool: ProposedTool, result: ToolResult, tools: ToolRegistry
) -> list[tuple[str, str | None]]:
    """Return the notes for the person now; a failure is reported only when the step is given up.

    Each note has a substitute for the case that it quotes foreign text that was not inspected. What a model planned
    always counts as quoted, because its arguments are in the label.
    """
    language, metadata = state["language"], result["metadata"]
    if metadata["error_code"] == EFFECT_IN_DOUBT:
        return [(say("effect_in_doubt", language, tool=tool_title(tool["name"], language, tools)), None)]
    if metadata.get("blocked"):
        return [(say("step_blocked", language, reasons=" ".join(metadata["reasons"])), None)]
    if result["status"] == "error":
        return []
    spec = tools.get(tool["name"])
    by_model = state.get("planned_by") == "model"
    quotes = by_model or bool(result["evicted"] or (result["output"] and (spec is None or spec.quotes_output)))
    instead = say("result_withheld", language) if quotes else None
    return [(_result_note(state, tool, result, tools), instead)]


def _result_note(state: AgentState, tool: ProposedTool, result: ToolResult, tools: ToolRegistry) -> str:
    language, metadata, spec = state["language"], result["metadata"], tools.get(tool["name"])
    uncalled = metadata.get("uncalled", False)
    label = "" if spec is None or uncalled else spec.labels[language].format(**tool["args"])
    if result["evicted"]:
        return say(
            "evicted",
            language,
            label=label,
            pointer=result["pointer"],
            head=metadata["preview_head"],
            tail=metadata["preview_tail"],
        )
    if metadata.get("kept_by_memory"):
        return f"{label}\n{say('result_kept', language)}".strip()
    quoted = result["output"]
    if spec is not None:
        quoted = spec.quoted(quoted, language, lambda name: tool_title(name, language, tools))
    if spec is not None and spec.nothing and quoted == nothing_shown(language):
        return spec.nothing[language].format(**tool["args"])
    if len(quoted) > MAX_QUOTE and (spec is None or spec.contract.evictable):
        more = len(quoted) - MAX_QUOTE
        quoted = say("result_cut", language, output=quoted[:MAX_QUOTE], more=more)
    return f"{label}\n{quoted}".strip()
