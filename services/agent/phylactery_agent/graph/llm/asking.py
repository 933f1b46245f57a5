"""Model availability and tool selection for a turn, and the fallback when the model becomes unavailable."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from phylactery_agent.graph.core.events import reply_id
from phylactery_agent.graph.core.output_inspection import Deltas, quoting
from phylactery_agent.graph.core.state import AgentState, PlannedStep, asked_of_rules, meant_in
from phylactery_agent.graph.llm import prompts, proposals
from phylactery_agent.graph.llm.claims import Claims, promises
from phylactery_agent.graph.llm.conversation import clean, conversation, corrected, goal_block, plan_block, shown_in
from phylactery_agent.graph.llm.drafts import Drafted, model_tools, read_calls
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import Told, TurnContext
from phylactery_agent.ports.model import Model, ModelBudgetError, ModelUnavailableError
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import FAST_PATHWAY
from phylactery_agent.rules.planner import PlannedCall, read_aside, read_request
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs.files import FILE_INFO, READ_FILE
from phylactery_agent.tools.specs.folders import LIST_DIR, SEARCH_FILES

MODEL_AWAY: Final = (ModelUnavailableError, ModelBudgetError)
"""Model errors after which static mode takes over; any other model error ends the turn."""
MODEL_PLAN_INVALID: Final = "MODEL_PLAN_INVALID"
MODEL_EMPTY: Final = "MODEL_EMPTY"
_SHORT: Final = 300
"""The characters of a message that may be a request that the rules carry out; a longer one is worded more freely."""
_COMPOSED: Final = ("content", "subject", "body")
"""Arguments of packaged tools whose text a person often leaves to whoever writes it; only those tools have patterns."""
_TOLD_AS_READ: Final = frozenset({READ_FILE.name, FILE_INFO.name, LIST_DIR.name, SEARCH_FILES.name})
"""Tools whose result is the answer to a request that names what to read."""
_ASKS: Final = ("?", "?)", "？")
_NAMES_FILES: Final = expression(
    r"(?i)\b(?:files?|folders?|director(?:y|ies)|documents?|notes?|archivos?|ficheros?|carpetas?|documentos?|notas?)\b|\w\.\w{1,8}\b"
)
"""Words by which a search is one of files."""
_QUOTES: Final = frozenset("\"“”«»'‘’")
OUTAGES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        (
            "MODEL_UNREACHABLE",
            "MODEL_SERVER_ERROR",
            "MODEL_CLOSED_OFF",
            "MODEL_CUT_OFF",
            "MODEL_MALFORMED",
            "MODEL_RATE_LIMITED",
            "MODEL_TIMEOUT",
            "MODEL_NOT_CONFIGURED",
        ),
        "away",
    ),
    **dict.fromkeys(
        (
            "MODEL_REFUSED_KEY",
            "MODEL_FORBIDDEN",
            "MODEL_NOT_FOUND",
            "MODEL_BAD_REQUEST",
            "MODEL_QUOTA_EXHAUSTED",
            "MODEL_REDIRECTED",
        ),
        "refuses",
    ),
}
"""Reasons unrelated to this turn, with their texts: each is reported once, until the model answers again."""
_OF_TURN: Final[Mapping[str, str]] = {
    MODEL_PLAN_INVALID: "plan_invalid",
    "MODEL_CONVERSATION_TOO_LONG": "too_long",
    "MODEL_CALL_LIMIT": "spent",
    "TOKEN_LIMIT": "spent",
    "MONEY_LIMIT": "spent",
    "DAILY_TOKEN_LIMIT": "spent_today",
    "MODEL_NOT_INSPECTED": "not_inspected",
}


def model_of(state: AgentState, context: TurnContext) -> Model | None:
    """Return the model, or None in static mode.

    That is if none is configured, if it became unavailable in this turn, and if the rules know exactly what the message
    asks for: what the person was promised must not depend on what a model makes of it.
    """
    return None if state.get("model_away", "") or rules_suffice(state, context) else context.model


def rules_suffice(state: AgentState, context: TurnContext) -> bool:
    """Return True if the rules read the whole message, and leave nothing of it to be composed or looked up.

    Words that are to be written count as composed unless they are quoted: "the capital of France" may be a question.
    """
    clauses = _ruled(state, context)
    return bool(clauses) and all(_is_exact(call, context.tools) for call in clauses)


def _ruled(state: AgentState, context: TurnContext) -> list[PlannedCall]:
    """Return the calls by which the rules would carry out the whole message, none if it is not theirs to read."""
    incoming = state.get("incoming")
    said = meant_in(incoming) if incoming else ""
    if context.model is None or not said or len(said) > _SHORT or incoming.get("attachments"):
        return []
    return [readings[0] for readings in read_request(said, context.tools).clauses]


async def is_chatter(state: AgentState, context: TurnContext, said: str) -> bool:
    """Return True if a model only says something where the rules know what is asked for: that is no answer to it.

    A question of the model's waits for its reply, unless it only promises what was asked for, and of attachments the
    rules know only that they are there. A search that names no file may be meant for the model: "search for cats".
    """
    if (said.rstrip().endswith(_ASKS) and not promises(said)) or state["incoming"].get("attachments"):
        return False
    calls = await read_by_rules(state, context)
    return bool(calls) and not all(map(_may_be_meant_for_model, calls))


async def read_by_rules(state: AgentState, context: TurnContext) -> list[PlannedCall]:
    """Return the calls by which the rules would carry out the request, none if they do not read it whole."""
    request = asked_of_rules(state["incoming"])
    lane = (state["tenant"], state["user_id"])
    clauses = await read_aside(lane, request, lambda: read_request(request, context.tools).clauses)
    return [readings[0] for readings in clauses]


def _may_be_meant_for_model(call: PlannedCall) -> bool:
    return (
        call.tool == SEARCH_FILES.name
        and not call.args.get("path")
        and next(_NAMES_FILES.finditer(call.text), None) is None
    )


def _is_exact(call: PlannedCall, tools: ToolRegistry) -> bool:
    """Return True if a call is all that its words ask for.

    The contents of a change have to stand in quotes. What is read is the answer itself, unless a tool looks it up by a
    description or the words are not the tool's own: "explain plan.txt" may ask for more than its text.
    """
    if tools[call.tool].contract.effect == "read":
        own = call.tool in _TOLD_AS_READ and not call.reworded and not _may_be_meant_for_model(call)
        return not call.args or own
    return all(_is_quoted(call.args[name], call.text) for name in _COMPOSED if name in call.args)


def _is_quoted(text: str, words: str) -> bool:
    at = words.find(text)
    return at > 0 and words[at - 1] in _QUOTES and words[at + len(text) : at + len(text) + 1] in _QUOTES


def may_use(state: AgentState, context: TurnContext, tool: str) -> bool:
    """Return True if both the run's initial permissions and this turn's caller allow the tool."""
    narrowed = (state["security_context"]["allowed_tools"], context.allowed_tools)
    return all(not allowed or tool in allowed for allowed in narrowed)


def allowed_specs(state: AgentState, context: TurnContext) -> dict[str, ToolSpec]:
    """Return the tools offered to a model in this turn: none for conversation.

    Where the rules read the whole message and it changes nothing, only tools that read: whatever else a model proposed
    would be something that nobody asked for, and a question to the person about it.
    """
    if state["request_pathway"] == FAST_PATHWAY:
        return {}
    ruled = _ruled(state, context)
    only_reads = bool(ruled) and all(context.tools[call.tool].contract.effect == "read" for call in ruled)
    return {
        spec.name: spec
        for spec in context.tools.offered()
        if may_use(state, context, spec.name) and (spec.contract.effect == "read" or not only_reads)
    }


async def went_away(state: AgentState, context: TurnContext, reason: str) -> dict[str, Any]:
    """Report, as an event and to the person, that static mode handles the rest; return the update that activates it."""
    told = Told("notice", {"reason": reason}, key=f"notice:model:{reason}")
    await context.events.emit(told)
    if reason in OUTAGES and context.model is not None and not context.model.is_news(OUTAGES[reason]):
        return {"model_away": reason}
    return {"model_away": reason, **quoting(state, (away_note(state, reason), None))}


def away_note(state: AgentState, reason: str) -> str:
    """Return why the model is not used, in user-facing words rather than as the error code."""
    return say(f"model_{OUTAGES.get(reason) or _OF_TURN.get(reason, 'unusable')}", state["language"])


def still_away_note(state: AgentState) -> str:
    """Return the note for words the rules do not understand while the model is unavailable.

    Empty if it is available.
    """
    kind = OUTAGES.get(state.get("model_away", ""))
    return say("model_still_away", state["language"]) if kind else ""


async def talk(state: AgentState, context: TurnContext, model: Model) -> str:
    """Return the model's conversational reply.

    Raise what the model raises, and ModelUnavailableError MODEL_EMPTY for an empty reply.
    """
    told = prompts.talking(state["language"], prompts.tag_of(state["run_id"]))
    return await _words(state, context, model, told, state["incoming"]["text"], key=f"talk:{state['turn_id']}")


async def answer(state: AgentState, context: TurnContext, model: Model) -> str:
    """Return the model's answer to the request from all results of the run. Raise as talk does."""
    told = prompts.answering(state["language"], prompts.tag_of(state["run_id"]))
    key = f"answer:{state['turn_id']}"
    return await _words(state, context, model, told, state["request"], plan_block(state), key=key)


async def _words(
    state: AgentState, context: TurnContext, model: Model, told: str, request: str, *more: str, key: str
) -> str:
    claims = Claims(context, request, state["language"])
    deltas = Deltas(context, reply_id(state["run_id"], state["turn_id"]), meant=claims.settled)
    # Deltas are stored in the event log, so a reply that must not be stored is sent whole.
    on_text = None if state["do_not_store"] else deltas.on_text
    messages = conversation(state, told, request, *more)
    reply = await model.reply(messages, key=key, on_text=on_text, keep=not state["do_not_store"])
    text = clean(reply.text).strip()
    found = proposals.find(text)
    if not text or found.broken or not all(proposals.are_quoted(found.objects, shown_in(messages))):
        raise ModelUnavailableError(MODEL_EMPTY, "the model answered without words for a person")
    return await claims.honest(text)


@dataclass(frozen=True, slots=True)
class Stepped:
    """The result for a step: calls in order, or why none is needed; neither if the model's answer did not fit."""

    calls: tuple[Drafted, ...] = ()
    answer: str = ""


async def ask_step(state: AgentState, context: TurnContext, model: Model, planned: PlannedStep) -> Stepped:
    """Ask for the step's calls; an answer that does not fit is corrected once. Raise what the model raises."""
    specs = allowed_specs(state, context)
    if planned["tool"]:
        specs = {name: spec for name, spec in specs.items() if name == planned["tool"]}
    tools = model_tools(specs, state["language"])
    told = prompts.stepping(state["language"], prompts.tag_of(state["run_id"]))
    messages = conversation(state, told, state["request"], goal_block(state, planned["id"]))
    key = f"step:{planned['id']}:{state['steps'][planned['id']]['tries'] + 1}"
    keep = not state["do_not_store"]
    reply = await model.reply(messages, key=key, tools=tools, keep=keep)
    shown = shown_in(messages)
    draft = read_calls(reply, specs, shown)
    if draft.problems:
        again = corrected(messages, reply, prompts.correction(draft.problems))
        draft = read_calls(await model.reply(again, key=f"{key}:again", tools=tools, keep=keep), specs, shown)
    return Stepped(draft.steps, draft.answer)
