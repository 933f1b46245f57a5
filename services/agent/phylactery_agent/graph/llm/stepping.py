"""The calls of one open step: a model proposes them when it is the step's turn, with the results so far before it."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_agent.graph.llm import prompts
from phylactery_agent.graph.llm.asking import allowed_specs
from phylactery_agent.graph.llm.conversation import conversation, corrected, goal_block
from phylactery_agent.graph.llm.drafts import Drafted, model_tools, read_calls
from phylactery_agent.graph.state import AgentState, PlannedStep
from phylactery_agent.ports import TurnContext
from phylactery_agent.ports.model import Model


@dataclass(frozen=True, slots=True)
class Stepped:
    """What a step comes to: calls in order, or why it needs none; neither where the model's answer did not fit."""

    calls: tuple[Drafted, ...] = ()
    answer: str = ""


async def ask_step(state: AgentState, context: TurnContext, model: Model, planned: PlannedStep) -> Stepped:
    """Asks for the step's calls; what does not fit is told back once. Raises what the model raises."""
    specs = allowed_specs(state, context)
    if planned["tool"]:
        specs = {name: spec for name, spec in specs.items() if name == planned["tool"]}
    tools = model_tools(specs, state["language"])
    told = prompts.stepping(state["language"], prompts.tag_of(state["run_id"]))
    messages = conversation(state, told, state["request"], goal_block(state, planned["id"]))
    key = f"step:{planned['id']}:{state['steps'][planned['id']]['tries'] + 1}"
    keep = not state["do_not_store"]
    reply = await model.reply(messages, key=key, tools=tools, keep=keep)
    draft = read_calls(reply, specs)
    if draft.problems:
        again = corrected(messages, reply, prompts.correction(draft.problems))
        draft = read_calls(await model.reply(again, key=f"{key}:again", tools=tools, keep=keep), specs)
    return Stepped(draft.steps, draft.answer)
