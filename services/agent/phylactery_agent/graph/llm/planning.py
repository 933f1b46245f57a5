"""Plans by a model: drafts are checked against each tool's schema, corrected once, and discarded if still invalid."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from phylactery_agent.graph.core.events import fingerprint, reply_id, step_told
from phylactery_agent.graph.core.output_inspection import Deltas, look, quoting
from phylactery_agent.graph.core.state import MAX_TRIES, AgentState, PlannedStep, StepState, names_tools_only
from phylactery_agent.graph.llm import prompts
from phylactery_agent.graph.llm.asking import MODEL_AWAY, MODEL_PLAN_INVALID, allowed_specs, went_away
from phylactery_agent.graph.llm.claims import Claims
from phylactery_agent.graph.llm.conversation import conversation, corrected, plan_block, shown_in
from phylactery_agent.graph.llm.drafts import MAX_DRAFTED, Draft, Drafted, looks_like_json, model_tools, read_plan
from phylactery_agent.i18n.texts import say, shortened
from phylactery_agent.ports import TurnContext
from phylactery_agent.ports.model import Model, ModelMessage
from phylactery_agent.tools.specs import READ_ATTACHMENT

NEED_INFO: Final = "need_info"
"""The directive saying that the plan needs information only the person has."""

OnText = Callable[[str], Awaitable[None]]


async def plan_by_model(state: AgentState, context: TurnContext, model: Model) -> dict[str, Any]:
    """Plan the person's last message. The update sets model_away if the rules have to plan it."""
    told = prompts.planning(state["language"], prompts.tag_of(state["run_id"]), MAX_DRAFTED)
    messages = conversation(state, told, state["incoming"]["text"])
    claims = Claims(context, state["incoming"]["text"], state["language"])
    deltas = Deltas(context, reply_id(state["run_id"], state["turn_id"]), meant=claims.settled)

    async def on_text(text: str) -> None:
        if not looks_like_json(text):
            await deltas.on_text(text)

    try:
        draft = await _draft(state, context, model, messages, key=f"plan:{state['turn_id']}", on_text=on_text)
    except MODEL_AWAY as error:
        return await went_away(state, context, error.reason)
    if draft.problems:
        return await went_away(state, context, MODEL_PLAN_INVALID)
    request: dict[str, Any] = {
        "request": state["incoming"]["text"],
        "request_turn": state["turn_id"],
        "request_pathway": state["pathway"],
        "planned_by": "model",
        "current_step": None,
        "queued_tools": [],
        "tried": [],
    }
    if not draft.steps:
        return {**request, "plan": [], "steps": {}, **await _said(state, claims, draft)}
    plan, steps, numbers = await _steps(state, context, draft.steps)
    budgets = {**state["budgets"], "replans": 0, "step_numbers": numbers}
    return {**request, "plan": plan, "steps": steps, "directive": "", "budgets": budgets}


async def plan_reads(state: AgentState, context: TurnContext) -> dict[str, Any]:
    """Plan to read each attachment, and then one step that does what the words ask for.

    The reads do not depend on a model, and no model is asked before they are done. The last step is only for words.
    """
    text, number = state["incoming"]["text"], state["budgets"]["step_numbers"]
    reads = [Drafted(READ_ATTACHMENT.name, {"attachment": one}, "") for one in state["incoming"].get("attachments", ())]
    drafted = [*reads, *([Drafted("", None, shortened(text))] if any(one.isalnum() for one in text) else [])]
    plan, steps, number = await _steps(state, context, drafted)
    return {
        "request": text,
        "request_turn": state["turn_id"],
        "request_pathway": state["pathway"],
        "planned_by": "model",
        "current_step": None,
        "queued_tools": [],
        "tried": [],
        "plan": plan,
        "steps": steps,
        "directive": "",
        "budgets": {**state["budgets"], "replans": 0, "step_numbers": number},
    }


async def replan_by_model(state: AgentState, context: TurnContext, model: Model) -> dict[str, Any]:
    """Plan the remaining work and keep completed steps. The update sets model_away if no model planned it."""
    told = prompts.replanning(state["language"], prompts.tag_of(state["run_id"]), MAX_DRAFTED)
    messages = conversation(state, told, state["request"], plan_block(state))
    key = f"replan:{state['turn_id']}:{state['budgets']['replans']}"
    try:
        draft = await _draft(state, context, model, messages, key=key)
    except MODEL_AWAY as error:
        return {**await went_away(state, context, error.reason), "directive": "no_alternative"}
    if draft.problems:
        return {**await went_away(state, context, MODEL_PLAN_INVALID), "directive": "no_alternative"}
    if not draft.steps:
        # Supervisor always reports what failed; a model's words do not replace that report.
        claims = Claims(context, state["request"], state["language"])
        return {**await _said(state, claims, draft), "directive": "no_alternative"}
    plan, steps, numbers = await _steps(state, context, draft.steps)
    done = [planned for planned in state["plan"] if state["steps"][planned["id"]]["status"] == "done"]
    return {
        "plan": [*done, *plan],
        "steps": {**state["steps"], **steps},
        "queued_tools": [],
        "directive": "",
        "budgets": {**state["budgets"], "step_numbers": numbers},
    }


async def _draft(
    state: AgentState,
    context: TurnContext,
    model: Model,
    messages: Sequence[ModelMessage],
    *,
    key: str,
    on_text: OnText | None = None,
) -> Draft:
    """Ask the model, and once more with the problems if the answer does not fit."""
    specs = allowed_specs(state, context)
    tools = model_tools(specs, state["language"])
    keep = not state["do_not_store"]
    reply = await model.reply(messages, key=key, tools=tools, on_text=on_text, keep=keep)
    draft = _new_calls(state, read_plan(reply, specs, shown_in(messages)))
    if not draft.problems:
        return draft
    again = corrected(messages, reply, prompts.correction(draft.problems))
    second = await model.reply(again, key=f"{key}:again", tools=tools, keep=keep)
    return _new_calls(state, read_plan(second, specs, shown_in(messages)))


def _new_calls(state: AgentState, draft: Draft) -> Draft:
    """Return the draft; in a re-plan, a call that already failed becomes a problem."""
    if state["directive"] != "replan":
        return draft
    failed = [step for step in draft.steps if step.args is not None and _print(step) in state["tried"]]
    problems = tuple(f"{step.tool}: this call failed with the same arguments before" for step in failed)
    return Draft(problems=problems) if problems else draft


def _print(step: Drafted) -> str:
    try:
        return fingerprint(step.tool, step.args or {})
    except ValueError:  # no RFC 8785 form: Executor refuses it
        return ""


async def _said(state: AgentState, claims: Claims, draft: Draft) -> dict[str, Any]:
    """Return the update for text instead of steps: an answer ends the run, a question waits for a reply."""
    words = await claims.honest(draft.question or draft.answer)
    directive = NEED_INFO if draft.question else ""
    return {"directive": directive, **quoting(state, (words, say("reply_withheld", state["language"])))}


async def _steps(
    state: AgentState, context: TurnContext, drafted: Sequence[Drafted]
) -> tuple[list[PlannedStep], dict[str, StepState], int]:
    """Return the plan, the steps and the last number used; goals are inspected because events publish them."""
    number = state["budgets"]["step_numbers"]
    goals = [step.tool or "?" for step in drafted] if names_tools_only(state) else await _goals(context, drafted)
    plan: list[PlannedStep] = []
    steps: dict[str, StepState] = {}
    for step, goal in zip(drafted, goals, strict=True):
        number += 1
        planned = PlannedStep(id=f"s{number}", tool=step.tool, args=step.args or {}, clause=0, open=step.args is None)
        plan.append(planned)
        steps[planned["id"]] = StepState(
            id=planned["id"],
            description=goal,
            status="pending",
            tries=0,
            max_tries=MAX_TRIES,
            result_pointer=None,
            last_error=None,
        )
    await context.events.emit(*(step_told(step) for step in steps.values()))
    return plan, steps, number


async def _goals(context: TurnContext, drafted: Sequence[Drafted]) -> list[str]:
    """Return each step's goal, or the tool's name if the model gave none or RiskGate did not inspect it."""
    named = [step.tool or "?" for step in drafted]
    goals = [shortened(" ".join(step.goal.split())) or name for step, name in zip(drafted, named, strict=True)]
    looked = await look(context, "\n".join(goals))
    inspected = [] if looked is None else looked.text.split("\n")
    return inspected if len(inspected) == len(goals) else named
