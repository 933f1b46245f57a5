"""The words a model writes for the person: small talk, and the answer over the results of a plan."""

from __future__ import annotations

from phylactery_agent.graph.common import reply_id
from phylactery_agent.graph.llm import prompts
from phylactery_agent.graph.llm.asking import MODEL_EMPTY
from phylactery_agent.graph.llm.claims import Claims
from phylactery_agent.graph.llm.conversation import clean, conversation, plan_block
from phylactery_agent.graph.outgoing import Deltas
from phylactery_agent.graph.state import AgentState
from phylactery_agent.ports import TurnContext
from phylactery_agent.ports.model import Model, ModelUnavailableError


async def talk(state: AgentState, context: TurnContext, model: Model) -> str:
    """Answers the person's words. Raises what the model raises, ModelUnavailableError MODEL_EMPTY for no words."""
    told = prompts.talking(state["language"], prompts.tag_of(state["run_id"]))
    return await _words(state, context, model, told, state["incoming"]["text"], key=f"talk:{state['turn_id']}")


async def answer(state: AgentState, context: TurnContext, model: Model) -> str:
    """Answers the request over every result of the run. Raises as talk does."""
    told = prompts.answering(state["language"], prompts.tag_of(state["run_id"]))
    key = f"answer:{state['turn_id']}"
    return await _words(state, context, model, told, state["request"], plan_block(state), key=key)


async def _words(
    state: AgentState, context: TurnContext, model: Model, told: str, request: str, *more: str, key: str
) -> str:
    claims = Claims(context, request, state["language"])
    deltas = Deltas(context, reply_id(state["run_id"], state["turn_id"]), meant=claims.settled)
    # Deltas are kept in the log as events: what nobody wants kept is said whole.
    on_text = None if state["do_not_store"] else deltas.on_text
    messages = conversation(state, told, request, *more)
    reply = await model.reply(messages, key=key, on_text=on_text, keep=not state["do_not_store"])
    text = clean(reply.text).strip()
    if not text:
        raise ModelUnavailableError(MODEL_EMPTY, "the model answered without words")
    return await claims.honest(text)
