"""Supervisor: owns the plan. It delegates the next step, re-plans, asks, or ends the turn with a named reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_understanding.replies.answers import read_answer

from phylactery_agent.graph.core.events import (
    AWAITING_APPROVAL,
    AWAITING_USER_INPUT,
    EFFECT_IN_DOUBT,
    approval_standing,
    step_told,
    tool_said,
    waiting_notes,
    with_step,
)
from phylactery_agent.graph.core.guards import LOOPS, MAX_SUPERSTEPS, MAX_TOOL_CALLS, TOOL_CALL_LIMIT, budget_spent
from phylactery_agent.graph.core.output_inspection import quoting
from phylactery_agent.graph.core.state import MAX_REPLANS, AgentState, StepState, StepStatus
from phylactery_agent.graph.llm.asking import still_away_note
from phylactery_agent.graph.llm.planning import NEED_INFO
from phylactery_agent.graph.secured.nodes.approval_handler import REJECTED
from phylactery_agent.i18n.help import talk_text
from phylactery_agent.i18n.texts import error_text, is_unknown, say
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import APPROVAL_DECIDED, is_continue, parse_reply, talk_kind
from phylactery_agent.tools.contract import TOOL_ERROR

Outcome = Command[Literal["Planner", "Executor", "Finalizer"]]
Note = str | tuple[str, str | None]
"""A note, or a note with the substitute used if it quotes content that could not be inspected."""

STEPS_OF_A_CALL: Final = 5
"""Supersteps one call takes: Executor, RiskGate, Tools, Interpreter and back to Supervisor.

With fewer left, nothing new is begun. Finalizer may always run, so it is not counted.
"""
STEPS_OF_A_REPLAN: Final = 2
"""Supersteps to Planner and back to Supervisor."""
_CLOSED: Final = {
    "rejected": REJECTED,
    "cancelled": "APPROVAL_CANCELLED",
    "expired": "APPROVAL_EXPIRED",
}


async def supervisor(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["Planner", "Executor", "Finalizer"]]:
    """Act on the directive if there is one, otherwise continue the plan."""
    directive = state["directive"]
    if directive in _CLOSED:
        return await _closed(state, runtime.context, _CLOSED[directive])
    return await _ACTIONS.get(directive, _go_on)(state, runtime.context)


async def _go_on(state: AgentState, context: TurnContext) -> Outcome:
    """Advance the plan by one step."""
    steps = [state["steps"][planned["id"]] for planned in state["plan"]]
    stop = _stopped(state, context, steps)
    if stop is not None:
        return stop
    step = _first(steps, "running") or _next(state, context, steps)
    if step is None:
        nothing = [] if steps or state["notes"] else [say("nothing_to_do", state["language"])]
        return _end(state, "done", "ANSWERED", nothing)
    spent = _spent(state, context)
    if spent is not None:
        return spent
    running = StepState(**{**step, "status": "running"})
    await context.events.emit(step_told(running))
    return Command(
        goto="Executor",
        update={
            "current_step": step["id"],
            "steps": with_step(state, running),
            "directive": "",
            "awaiting_user_input": False,
        },
    )


def _stopped(state: AgentState, context: TurnContext, steps: list[StepState]) -> Outcome | None:
    """Return how a plan with a blocked or failed step ends, or None if it continues."""
    blocked = _first(steps, "blocked")
    if blocked is not None and not (blocked["last_error"] in _CLOSED.values() and _next(state, context, steps)):
        if blocked["last_error"] in LOOPS:
            return _replan_or_ask(state, context, reason=str(blocked["last_error"]))
        reason = str(blocked["last_error"]) if blocked["last_error"] in _CLOSED.values() else "BLOCKED"
        return _end(state, "done", reason, _not_done(state))
    failed = _first(steps, "failed")
    if failed is None:
        return None
    if failed["last_error"] == EFFECT_IN_DOUBT:
        said = tool_said(state, context.tools)
        return _end(state, "failed", EFFECT_IN_DOUBT, [*([(said, "")] if said else []), *_not_done(state)])
    return _replan_or_ask(state, context)


def _next(state: AgentState, context: TurnContext, steps: list[StepState]) -> StepState | None:
    """Return the step to begin. After a call of a card that was not approved, only other calls of that card qualify.

    A call that was withdrawn or expired ends the plan, except for those of its card that the person said yes or no to.
    """
    closed = {str(step["last_error"]) for step in steps} & {*_CLOSED.values()}
    if not closed:
        return _first(steps, "pending")
    on_card = {
        ahead["step_id"]
        for ahead in state["asked_ahead"]
        if closed == {REJECTED} or ahead["state"] == "APPROVED" or ahead["approval_id"] in context.also_answered
    }
    return next((step for step in steps if step["id"] in on_card and step["status"] == "pending"), None)


def _spent(state: AgentState, context: TurnContext) -> Outcome | None:
    """Return how the turn ends if one more call would exceed a budget, or None if there is room."""
    budgets, language = state["budgets"], state["language"]
    # what the person just said yes to as one plan is carried out as one: its calls are limited, not its nodes
    answered = any(ahead["approval_id"] in context.also_answered for ahead in state["asked_ahead"])
    supersteps = 0 if answered else budgets["supersteps"]
    spent = budget_spent(supersteps=supersteps, tool_calls=budgets["tool_calls"], needed=1 + STEPS_OF_A_CALL)
    if not spent:
        return None
    if spent == TOOL_CALL_LIMIT:
        limit = say("tool_limit", language, limit=MAX_TOOL_CALLS)
        return _end(state, "failed", spent, [*_not_done(state), limit])
    limit = say("step_limit", language)
    return _ask(state, [*_failures(state, context), *_not_done(state), limit], reason=spent)


def _replan_or_ask(state: AgentState, context: TurnContext, *, reason: str = AWAITING_USER_INPUT) -> Outcome:
    budgets = state["budgets"]
    enough = budgets["supersteps"] + 1 + STEPS_OF_A_REPLAN + STEPS_OF_A_CALL <= MAX_SUPERSTEPS
    if budgets["replans"] >= MAX_REPLANS or not enough:
        return _ask_after_failure(state, context, reason=reason)
    return Command(
        goto="Planner",
        update={"directive": "replan", "budgets": {**budgets, "replans": budgets["replans"] + 1}},
    )


def _ask_after_failure(state: AgentState, context: TurnContext, *, reason: str = AWAITING_USER_INPUT) -> Outcome:
    """Report what was done, what failed and why, and ask how to continue: a partial answer with a named reason."""
    notes = [*_failures(state, context), *_not_done(state), say("ask_help", state["language"])]
    return _ask(state, notes, reason=reason)


def _failures(state: AgentState, context: TurnContext) -> list[Note]:
    """Return what went wrong with the plan's unfinished steps, and why."""
    steps = (state["steps"][planned["id"]] for planned in state["plan"])
    return [_failure(state, context, step) for step in steps if step["last_error"] is not None]


def _failure(state: AgentState, context: TurnContext, step: StepState) -> Note:
    """Return what went wrong with a step, including the tool's own message only if it was inspected."""
    language, code = state["language"], str(step["last_error"])
    tries = max(1, step["tries"])
    own = say("step_failed", language, step=step["description"], tries=tries, error=error_text(code, language))
    said = tool_said(state, context.tools) if code == TOOL_ERROR and step["id"] == state["current_step"] else ""
    return (say("step_failed", language, step=step["description"], tries=tries, error=said), own) if said else own


async def _closed(state: AgentState, context: TurnContext, reason: str) -> Outcome:
    """End after an approval that was not granted: block its step and begin nothing that may depend on it.

    Calls on the same card do not depend on each other: the person answers each one separately.
    """
    steps = state["steps"]
    current = state["current_step"]
    if current is not None and current in steps:
        blocked = StepState(**{**steps[current], "status": "blocked", "last_error": reason})
        await context.events.emit(step_told(blocked))
        steps = with_step(state, blocked)
    merged = cast("AgentState", {**state, "steps": steps, "directive": ""})
    if _next(merged, context, list(steps.values())):
        onward = await _go_on(merged, context)
        return Command(goto=onward.goto, update={"steps": steps, **cast("dict[str, Any]", onward.update)})
    return _end(state, "done", reason, _not_done(state), steps=steps)


async def _user_input(state: AgentState, context: TurnContext) -> Outcome:
    """Handle the reply to a question: continue, a different request, or conversation."""
    text = state["incoming"]["text"]
    if state["intent"] == APPROVAL_DECIDED:
        return _ask(state, [say("nothing_waits_at_all", state["language"])])
    if parse_reply(text) is not None or _answers_no_rule(text, context):
        return await _explain_reply(state, context)
    steps = [state["steps"][planned["id"]] for planned in state["plan"]]
    if is_continue(text) and _first(steps, "failed"):
        return _ask_after_failure(state, context)
    if is_continue(text) and _first(steps, "pending"):
        return await _go_on(state, context)
    return _other_words(state, context, [] if _first(steps, "failed") else _not_done(state))


def _other_words(state: AgentState, context: TurnContext, left: list[str]) -> Outcome:
    """Handle words that do not go on with the plan; ``left`` is what it has not done: small talk leaves it waiting."""
    text = state["incoming"]["text"]
    answered = {"awaiting_user_input": False, "directive": "", "plan": [], "steps": {}, "current_step": None}
    if state["intent"] != "conversation":
        return Command(goto="Planner", update={**answered, "notes": [*state["notes"], *left]})
    if not left:
        return Command(goto="Finalizer", update=answered)
    talk = talk_text(talk_kind(text) or "help", text, state["language"], context.tools, context.begins)
    return _ask(state, [talk, *left, say("step_limit", state["language"])])


def _answers_no_rule(text: str, context: TurnContext) -> bool:
    """Return True if a yes or no may be meant for another run: without a model, this run asks no such question."""
    return bool(context.also_waiting) and context.model is None and read_answer(text) != "unclear"


async def _waiting(state: AgentState, context: TurnContext) -> Outcome:
    return _end(state, "suspended", AWAITING_APPROVAL, await waiting_notes(state, context))


async def _explain_reply(state: AgentState, context: TurnContext) -> Outcome:
    """Explain why a strict reply is refused while nothing is pending. This only reads from RiskGate."""
    reply, language = parse_reply(state["incoming"]["text"]), state["language"]
    if reply is None:
        note = say("answer_to_nothing", language)
    else:
        why = say(f"state_{await approval_standing(context, reply.approval_id)}", language)
        note = say("nothing_waits", language, why=why)
    if state["awaiting_user_input"]:
        return _ask(state, [note])
    return _end(state, "done", "NOTHING_WAITS", [note])


def _first(steps: list[StepState], status: StepStatus) -> StepState | None:
    return next((step for step in steps if step["status"] == status), None)


def _not_done(state: AgentState) -> list[str]:
    left = [
        state["steps"][planned["id"]]["description"]
        for planned in state["plan"]
        if state["steps"][planned["id"]]["status"] == "pending"
    ]
    return [say("not_done", state["language"], steps="; ".join(left))] if left else []


def _ask(state: AgentState, notes: Sequence[Note], *, reason: str = AWAITING_USER_INPUT) -> Outcome:
    return _end(state, "suspended", reason, notes, awaiting_user_input=True)


def _end(
    state: AgentState,
    status: Literal["done", "suspended", "failed"],
    reason: str,
    notes: Sequence[Note],
    **update: Any,
) -> Outcome:
    pairs = [(note, None) if isinstance(note, str) else note for note in notes]
    return Command(
        goto="Finalizer",
        update={
            "run_status": status,
            "finish_reason": reason,
            **quoting(state, *pairs),
            "directive": "",
            "awaiting_user_input": False,
            **update,
        },
    )


async def _unknown(state: AgentState, _context: TurnContext) -> Outcome:
    still = still_away_note(state)
    if still and state["notes"] and is_unknown(state["notes"][-1], state["language"]):
        # The person's words are not at fault.
        told = state["notes"][:-1]
        return _ask(cast("AgentState", {**state, "notes": told}), [] if told else [still])
    return _ask(state, [])


async def _no_alternative(state: AgentState, context: TurnContext) -> Outcome:
    stuck = (state["steps"][planned["id"]] for planned in state["plan"])
    loop = next((str(step["last_error"]) for step in stuck if step["last_error"] in LOOPS), AWAITING_USER_INPUT)
    return _ask_after_failure(state, context, reason=loop)


_ACTIONS: Final[Mapping[str, Callable[[AgentState, TurnContext], Awaitable[Outcome]]]] = {
    "approval_waiting": _waiting,
    "approval_reply": _explain_reply,
    "user_input": _user_input,
    "unknown": _unknown,
    NEED_INFO: _unknown,
    "no_alternative": _no_alternative,
}
