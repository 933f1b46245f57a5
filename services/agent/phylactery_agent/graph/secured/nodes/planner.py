"""Planner: turns a request into steps, by a model or by the static rules, and replaces a failed step."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.beside import beside_told, time_told
from phylactery_agent.graph.core.disabled_tools import (
    left_told,
    likely_told,
    not_planned,
    not_understood,
    plainly_told,
    undo_told,
    withheld_told,
)
from phylactery_agent.graph.core.events import fingerprint, step_told
from phylactery_agent.graph.core.state import (
    MAX_PLAN_STEPS,
    MAX_TRIES,
    AgentState,
    PlannedStep,
    StepState,
    asked_of_rules,
    names_tools_only,
)
from phylactery_agent.graph.llm.asking import is_chatter, model_of
from phylactery_agent.graph.llm.planning import plan_by_model, plan_reads, replan_by_model
from phylactery_agent.i18n.texts import say, shortened
from phylactery_agent.ports import Language, TurnContext
from phylactery_agent.rules.attached import is_left_over
from phylactery_agent.rules.plain_replies import asks_last_request
from phylactery_agent.rules.planner import PlannedCall, read_aside, read_request
from phylactery_agent.timeparse.phrases import WhenError, resolve
from phylactery_agent.timeparse.recurrence import zone
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import CREATE_REMINDER


async def planner(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["Supervisor"]]:
    """Plan, and hand the plan to Supervisor, which owns it. If the model is unavailable, the rules plan the request."""
    context = runtime.context
    update: dict[str, Any] = {}
    if (model := model_of(state, context)) is not None:
        if state["directive"] != "replan":
            attached = bool(state["incoming"].get("attachments"))
            update = await (plan_reads(state, context) if attached else plan_by_model(state, context, model))
            only_said = not update.get("plan", True) and not update["directive"]
            if only_said and await is_chatter(state, context, update["notes"][-1]):
                update = {}
        elif state.get("planned_by") == "model":
            update = await replan_by_model(state, context, model)
    if not update or ("directive" not in update and "plan" not in update):
        update = {**update, **await _by_rules(cast("AgentState", {**state, **update}), context)}
    return Command(goto="Supervisor", update={"agent_mode": "planning", **update})


async def _by_rules(state: AgentState, context: TurnContext) -> dict[str, Any]:
    request = asked_of_rules(state["incoming"])
    if told := await time_told(request, context, state["language"]):
        return {"plan": [], "steps": {}, "directive": "", "notes": [*state["notes"], told], "planned_by": "rules"}
    again = state["directive"] == "replan"
    beside = [] if again else await beside_told(state["incoming"], context, state["language"])
    if beside and not state["incoming"]["likely"]["request"]:  # nothing is asked for beside what is answered
        return {"plan": [], "steps": {}, "directive": "", "notes": [*state["notes"], *beside], "planned_by": "rules"}
    update = await read_aside((state["tenant"], state["user_id"]), request, lambda: _ruled(state, context.tools))
    if not again:
        update = await _with_times_settled(update, context, state["language"])
    if beside:
        update["notes"] = [*update.get("notes", state["notes"]), *beside]
    steps = (update["steps"][planned["id"]] for planned in update.get("plan", []))
    if begun := [step_told(step) for step in steps if step["status"] == "pending"]:
        await context.events.emit(*begun)
    return update


_ASKED_TIME: Final = {
    "TIME_HALF_UNSAID": "ask_time_half_unsaid",
    "DAY_NOT_IN_ALL_MONTHS": "ask_day_not_in_all_months",
    "TIME_PAST": "ask_time_past",
    "TIME_NOT_UNDERSTOOD": "ask_time_not_understood",
}
"""The question about each way in which words are not one time to come."""


async def _with_times_settled(update: dict[str, Any], context: TurnContext, language: Language) -> dict[str, Any]:
    """Return a plan without the reminders whose time is not one time to come, and the question about each.

    It is asked here and not by the tool, so that nobody approves a reminder that then cannot be set.
    """
    asked: dict[str, str] = {}
    for planned in update.get("plan", []):
        if planned["tool"] == CREATE_REMINDER.name and context.reminders is not None:
            where, now_us = zone(context.reminders.time_zone), await context.reminders.asked_us()
            try:
                resolve(planned["args"]["when"], where=where, now_us=now_us)
            except WhenError as error:
                when = planned["args"]["when"]
                asked[planned["id"]] = say(_ASKED_TIME[error.code], language, when=when)
    if not asked:
        return update
    left = [planned for planned in update["plan"] if planned["id"] not in asked]
    steps = {name: step for name, step in update["steps"].items() if name not in asked}
    return {**update, "plan": left, "steps": steps, "notes": [*update["notes"], *asked.values()]}


def _ruled(state: AgentState, tools: ToolRegistry) -> dict[str, Any]:
    return _replan(state, tools) if state["directive"] == "replan" else {**_plan(state, tools), "planned_by": "rules"}


def _plan(state: AgentState, tools: ToolRegistry) -> dict[str, Any]:
    request = asked_of_rules(state["incoming"])
    note = undo_told(state["incoming"].get("likely"), state["language"], tools)
    if not note and asks_last_request(request):
        said = state["incoming"].get("said_before", "")
        note = say("you_asked", state["language"], request=shortened(said)) if said else ""
        note = note or say("you_asked_nothing", state["language"])
    if note:
        return {"plan": [], "steps": {}, "directive": "", "notes": [*state["notes"], note]}
    reading = read_request(request, tools)
    if not reading.clauses:
        meant = state["incoming"].get("likely")
        offered = meant is not None and meant["offered"]
        plain = "" if offered else plainly_told(reading, state["language"], request, tools)
        if plain := plain or withheld_told(reading.unknown, state["language"], tools):
            return {"plan": [], "steps": {}, "directive": "", "notes": [*state["notes"], plain, *_stays(state)]}
        language, away = state["language"], bool(state["model_away"])
        if told := likely_told(meant, language, request, tools, model_away=away):
            return {"plan": [], "steps": {}, "directive": "", "notes": [*state["notes"], told, *_stays(state)]}
        note = not_planned(reading, language, request, tools)
        note = note or not_understood(reading, language, request, model_away=away)
        return {"plan": [], "steps": {}, "directive": "unknown", "notes": [*state["notes"], note]}
    if len(reading.clauses) > MAX_PLAN_STEPS:
        note = say("too_many_steps", state["language"], limit=MAX_PLAN_STEPS)
        return {"plan": [], "steps": {}, "directive": "unknown", "notes": [*state["notes"], note]}
    first = state["budgets"]["step_numbers"] + 1
    plan: list[PlannedStep] = []
    steps: dict[str, StepState] = {}
    for clause, readings in enumerate(reading.clauses):
        planned, step = _step(state, f"s{first + clause}", readings[0], clause)
        plan.append(planned)
        steps[step["id"]] = step
    budgets = {**state["budgets"], "replans": 0, "step_numbers": first + len(plan) - 1}
    return {
        "notes": [
            *state["notes"],
            *_stays(state),
            *_left_over(state, request),
            *left_told(reading, state["language"], tools),
        ],
        "request": request,
        "request_turn": state["turn_id"],
        "request_pathway": state["pathway"],
        "plan": plan,
        "steps": steps,
        "current_step": None,
        "tried": [],
        "directive": "",
        "budgets": budgets,
    }


def _left_over(state: AgentState, request: str) -> list[str]:
    """Return the note about words beside an attachment that were not understood."""
    incoming = state["incoming"]
    left = bool(incoming.get("attachments")) and is_left_over(incoming["text"], request)
    return [say("attachment_only_shown", state["language"])] if left else []


def _stays(state: AgentState) -> list[str]:
    """Return the note about an effect that stays as it is although the message corrects it or takes it back."""
    stays = state["incoming"].get("stays")
    return [say(f"stays_{stays['tool']}", state["language"], name=stays["name"])] if stays else []


def _replan(state: AgentState, tools: ToolRegistry) -> dict[str, Any]:
    """Replace the failed step by the next untried reading of its clause."""
    stopped = ("failed", "blocked")
    failed = next(step for step in state["plan"] if state["steps"][step["id"]]["status"] in stopped)
    by_rules = state.get("planned_by", "rules") == "rules"  # a model's step does not correspond to a clause
    clauses = read_request(state["request"], tools).clauses if by_rules else ()
    readings = clauses[failed["clause"]] if failed["clause"] < len(clauses) else ()
    other = next((call for call in readings if fingerprint(call.tool, call.args) not in state["tried"]), None)
    if other is None:
        return {"directive": "no_alternative"}
    number = state["budgets"]["step_numbers"] + 1
    planned, step = _step(state, f"s{number}", other, failed["clause"])
    return {
        "plan": [planned if known["id"] == failed["id"] else known for known in state["plan"]],
        "steps": {**state["steps"], step["id"]: step},
        "directive": "",
        "budgets": {**state["budgets"], "step_numbers": number},
    }


def _step(state: AgentState, step_id: str, call: PlannedCall, clause: int) -> tuple[PlannedStep, StepState]:
    planned = PlannedStep(id=step_id, tool=call.tool, args=call.args, clause=clause)
    step = StepState(
        id=step_id,
        description=call.tool if names_tools_only(state) else shortened(call.text),
        status="pending",
        tries=0,
        max_tries=MAX_TRIES,
        result_pointer=None,
        last_error=None,
    )
    return planned, step
