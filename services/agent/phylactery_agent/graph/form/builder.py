"""Builder of the form graph, with edges from each node's declared targets.

``FORM_NODES`` are the eight nodes by name; every turn of a form begins at ``ENTRY``. A graph that serves forms embeds
them with ``embedded``: it says where prompt_next, escalate and complete go instead of the end. It must give

- a state that has the fields of ``GraphState``, with ``form_input`` for each message,
- ``TurnContext.forms`` in every turn,
- for a digression: prompt_next with ``metadata["digression"]`` set, the agent does what the message asks for, and then
  asks the form's question again (``prompts.question``),
- for a submission: complete with ``conversation["status"]`` ``review`` proposes the call of ``form.submit``; with
  ``submitting`` the person said yes already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS
from phylactery_agent.graph.core.routing import NodeFunction
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.form import nodes
from phylactery_agent.graph.form.state import GraphState
from phylactery_agent.ports import Turn, TurnContext

ENTRY: Final = "check_escalation"
FORM_NODES: Final[dict[str, NodeFunction]] = {
    "check_escalation": nodes.check_escalation,
    "check_correction": nodes.check_correction,
    "check_off_topic": nodes.check_off_topic,
    "extract_field": nodes.extract_field,
    "validate": nodes.validate,
    "prompt_next": nodes.prompt_next,
    "escalate": nodes.escalate,
    "complete": nodes.complete,
}
Leaving = Callable[[Mapping[str, Any]], str]
"""Where an embedded node goes, by the state after it."""


def embedded(name: str, targets: Sequence[str], leaving: Leaving) -> NodeFunction:
    """Return a node that goes to one of some targets where it would end the turn."""
    inner = FORM_NODES[name]

    async def node(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Any]:
        command = await inner(state, runtime)
        if command.goto != END:
            return command
        return Command(goto=leaving({**state, **(command.update or {})}), update=command.update)

    node.__name__ = name
    command, literal = cast("Any", Command), cast("Any", Literal)
    node.__annotations__["return"] = command[literal[tuple(targets)]]
    return cast("NodeFunction", node)


def form_spec(new_run: Callable[[Turn], dict[str, Any]], reentry: Callable[[Turn], dict[str, Any]]) -> GraphSpec:
    """Return the graph of the eight nodes alone; the functions give the input of a turn, with its conversation."""
    return GraphSpec(
        name="form",
        descriptions={"es": "Un formulario en conversación", "en": "A form filled in conversation"},
        state=GraphState,
        entry=ENTRY,
        nodes=FORM_NODES,
        recursion_limit=MAX_SUPERSTEPS + 5,
        new_run_input=new_run,
        reentry_input=reentry,
    )
