"""Whether a model is asked, with which tools, and what becomes of a turn whose model went away."""

from __future__ import annotations

from typing import Any, Final

from phylactery_agent.graph.outgoing import quoting
from phylactery_agent.graph.state import AgentState
from phylactery_agent.ports import Told, TurnContext
from phylactery_agent.ports.model import Model, ModelBudgetError, ModelUnavailableError
from phylactery_agent.texts import say
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import offered_tools

MODEL_AWAY: Final = (ModelUnavailableError, ModelBudgetError)
"""What a model raises where static mode does what is left; every other error of it ends the turn."""
MODEL_PLAN_INVALID: Final = "MODEL_PLAN_INVALID"
MODEL_EMPTY: Final = "MODEL_EMPTY"


def model_of(state: AgentState, context: TurnContext) -> Model | None:
    """Answers the model, None in static mode: there is none, or it went away in this turn."""
    return None if state.get("model_away", "") else context.model


def may_use(state: AgentState, context: TurnContext, tool: str) -> bool:
    """Says whether the session may use a tool: what the run began with and what this turn's caller has narrow it."""
    narrowed = (state["security_context"]["allowed_tools"], context.allowed_tools)
    return all(not allowed or tool in allowed for allowed in narrowed)


def allowed_specs(state: AgentState, context: TurnContext) -> dict[str, ToolSpec]:
    """Answers the tools a model is offered in this turn."""
    return {spec.name: spec for spec in offered_tools() if may_use(state, context, spec.name)}


async def went_away(state: AgentState, context: TurnContext, reason: str) -> dict[str, Any]:
    """Tells that static mode does what is left, as event and to the person, and answers the update that makes it so."""
    told = Told("notice", {"reason": reason}, key=f"notice:model:{reason}")
    await context.events.emit(told)
    language = state["language"]
    if reason == MODEL_PLAN_INVALID:
        note = say("model_plan_invalid", language)
    else:
        note = say("model_away", language, reason=reason)
    return {"model_away": reason, **quoting(state, (note, None))}
