"""The only path to effects: the secured graph's own nodes, and what this graph adds to three of them.

LangGraph's ToolNode would be a second path, because it runs whatever a model asks for (ADR 28).
"""

from __future__ import annotations

from typing import Any, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import step_told, tool_said, with_step
from phylactery_agent.graph.core.guards import LOOPS, budget_spent
from phylactery_agent.graph.core.state import ChatMessage, PlannedStep, StepState, ToolResult, names_tools_only
from phylactery_agent.graph.llm.prompts import quoted, tag_of
from phylactery_agent.graph.react.state import (
    Artifact,
    ReactError,
    ReactMetadata,
    ReactState,
    ended,
    failure,
    first_pending,
    limit_note,
)
from phylactery_agent.graph.secured.nodes import approval_handler as shared_approvals
from phylactery_agent.graph.secured.nodes import executor as shared_executor
from phylactery_agent.graph.secured.nodes import interpreter as shared_interpreter
from phylactery_agent.i18n.texts import shortened
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.planner import read_aside, read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import ECHO

STEPS_OF_A_CALL = 5
"""Supersteps per call, including those after it: tool_executor, RiskGate, Tools, Interpreter and the next decider."""
_LAST_WORDS = 3
"""Supersteps reserved for the end: sync, critic and finalizer."""

AfterCall = Literal["tool_executor", "reasoner", "model", "sync", "critic"]


async def tool_executor(
    state: ReactState, runtime: Runtime[TurnContext]
) -> Command[Literal["RiskGate", "Interpreter"]]:
    """Propose the selected call, or the next one queued by the model's reply, and clear the selection."""
    update = _begun(state)
    began = cast("ReactState", {**state, **update})
    await runtime.context.events.emit(step_told(began["steps"][str(began["current_step"])]))
    command = await shared_executor.executor(began, runtime)
    target: Literal["RiskGate", "Interpreter"] = "RiskGate" if command.goto == "RiskGate" else "Interpreter"
    return Command(goto=target, update={**update, **_update_of(command)})


async def approval_handler(
    state: ReactState, runtime: Runtime[TurnContext]
) -> Command[Literal["Tools", "critic", "finalizer"]]:
    """Act on the pending approval. One that closes without a yes ends the episode: nothing new is begun."""
    command = await shared_approvals.approval_handler(state, runtime)
    update = _update_of(command)
    if command.goto != "Supervisor":
        return Command(goto="Tools" if command.goto == "Tools" else "finalizer", update=update)
    merged = cast("ReactState", {**state, **update})
    reason = f"APPROVAL_{str(update['directive']).upper()}"
    blocked = StepState(**{**state["steps"][str(state["current_step"])], "status": "blocked", "last_error": reason})
    await runtime.context.events.emit(step_told(blocked))
    merged["steps"] = with_step(state, blocked)
    error = failure(merged, blocked["id"], reason, update["notes"][-1])
    closing = {**ended(merged, "done", reason), "errors": [*state["errors"], error], "steps": merged["steps"]}
    return Command(goto="critic", update={**update, "directive": "", **closing})


async def interpreter(
    state: ReactState, runtime: Runtime[TurnContext]
) -> Command[Literal["tool_executor", "reasoner", "model", "sync", "critic"]]:
    """Judge the result, record it, and continue with the queue or with the node that decides the next step."""
    command = await shared_interpreter.interpreter(state, runtime)
    update = _update_of(command)
    update.update(_taken_in(state, update, runtime.context.tools))
    owner = state["tenant"], state["user_id"]
    if await read_aside(owner, state["user_query"], lambda: _repeats_the_request(state, runtime.context.tools)):
        update.update(notes=state["notes"], quoted=state["quoted"])
    merged = cast("ReactState", {**state, **update})
    target, closing = _after_call(merged)
    return Command(goto=target, update={**update, **closing})


def _repeats_the_request(state: ReactState, tools: ToolRegistry) -> bool:
    """Return True if the last call is the echo that opens every static episode and was not requested.

    That echo proves that the path to the tools works; people do not want to read their own words back.
    """
    first = state["plan"][0]
    if state["metadata"]["mode"] != "static" or state["metadata"]["fallback"] or state["current_step"] != first["id"]:
        return False
    requested = next((clause[0] for clause in read_request(state["user_query"], tools).clauses), None)
    return first["tool"] == ECHO.name and (requested is None or requested.tool != ECHO.name)


def _begun(state: ReactState) -> dict[str, Any]:
    """Return the update that makes the next call the current step."""
    selected, metadata = state["metadata"]["selected"], state["metadata"]
    if selected is None:
        waiting = first_pending(state)
        if waiting is None:
            raise RuntimeError("tool_executor was reached without a call")
        running = StepState(**{**waiting, "status": "running"})
        return {"current_step": waiting["id"], "steps": with_step(state, running)}
    plan, step = next_step(state, selected["tool"], selected["args"], selected["text"])
    step["status"] = "running"
    budgets = {**state["budgets"], "step_numbers": state["budgets"]["step_numbers"] + 1}
    return {
        "plan": [*state["plan"], plan],
        "steps": with_step(state, step),
        "current_step": step["id"],
        "budgets": budgets,
        "metadata": ReactMetadata(**{**metadata, "selected": None}),
    }


def next_step(
    state: ReactState, tool: str, args: dict[str, Any], text: str, *, offset: int = 0
) -> tuple[PlannedStep, StepState]:
    """Return the pending step for one more call; offset counts the calls created before it in the same node."""
    number = state["budgets"]["step_numbers"] + 1 + offset
    step_id = f"s{number}"
    step = StepState(
        id=step_id,
        description=tool if names_tools_only(state) else shortened(text),
        status="pending",
        tries=0,
        max_tries=1,  # the model or the person decides about another try
        result_pointer=None,
        last_error=None,
    )
    return PlannedStep(id=step_id, tool=tool, args=args, clause=number - 1), step


def _taken_in(state: ReactState, update: dict[str, Any], tools: ToolRegistry) -> dict[str, Any]:
    """Return what the episode keeps of a result: an artifact, its text as evidence, an error, a tool message."""
    result: ToolResult = update["last_tool_result"]
    step: StepState = update["steps"][str(state["current_step"])]
    key = f"{step['id']}.{result['tool_name']}"
    code = str(step["last_error"] or "")
    artifact = Artifact(
        key=key,
        step_id=step["id"],
        tool=result["tool_name"],
        status=result["status"],
        size_chars=result["size_chars"],
        pointer=result["pointer"] or "",
        error_code=code,
    )
    taken: dict[str, Any] = {"artifacts": [*state["artifacts"], artifact]}
    if code:
        told = update["notes"][-1] if len(update["notes"]) > len(state["notes"]) else ""
        error = failure(state, step["id"], code, told)
        if said := tool_said(cast("ReactState", {**state, **update}), tools):
            error = ReactError(**{**error, "text": f"{error['text']}\n{said}", "instead": error["text"]})
        taken["errors"] = [*state["errors"], error]
    if state["metadata"]["mode"] == "llm":
        answered = tool_message(state, step["id"], update["results"][-1]["text"], str(update.get("hint", "")))
        taken["messages"] = [*state["messages"], answered]
    elif not code:
        taken["working_memory"] = {**state["working_memory"], key: result["output"]}
        taken["confidence"] = 0.8
    return taken


def tool_message(state: ReactState, step_id: str, text: str, hint: str) -> ChatMessage:
    """Return a call's result as shown to a model: always data; hint is built-in text."""
    content = quoted(tag_of(state["run_id"]), f"the result of step {step_id}", text)
    content = f"{content}\nNote: {hint}" if hint else content
    return ChatMessage(id=f"{step_id}.tool", role="tool", content=content, tool_call_id=f"call_{step_id}")


def _after_call(state: ReactState) -> tuple[AfterCall, dict[str, Any]]:
    step = state["steps"][str(state["current_step"])]
    result, metadata = state["last_tool_result"], state["metadata"]
    if result is not None and result["metadata"].get("in_doubt"):
        return "critic", ended(state, "failed", str(step["last_error"]))
    if metadata["mode"] == "static" and not metadata["fallback"]:
        return "reasoner", {}
    if step["last_error"] in LOOPS:
        return "sync", ended(state, "failed", str(step["last_error"]))
    if metadata["fallback"]:
        return "sync", {}
    return _next_in_queue(state)


def _next_in_queue(state: ReactState) -> tuple[AfterCall, dict[str, Any]]:
    """Continue with the calls queued by the reply while the budget allows, then return to the model."""
    spent = room_for_a_call(state)
    if first_pending(state) is None:
        return "model", {}
    if not spent:
        return "tool_executor", {}
    return "sync", ended(state, "failed", spent, limit_note(state, spent))


def room_for_a_call(state: ReactState) -> str:
    """Return why no further call may begin, or an empty string if one may."""
    budgets = state["budgets"]
    return budget_spent(
        supersteps=budgets["supersteps"] + 1,
        tool_calls=budgets["tool_calls"],
        needed=STEPS_OF_A_CALL + _LAST_WORDS,
    )


def _update_of(command: Command[Any]) -> dict[str, Any]:
    return dict(cast("dict[str, Any]", command.update or {}))
