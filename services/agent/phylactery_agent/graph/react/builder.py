"""Builder of the react graph: one graph for both modes, with edges from each node's declared targets."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache, partial
from typing import Final

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS
from phylactery_agent.graph.core.routing import NodeFunction
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.react import closing, effects, entry, model, static
from phylactery_agent.graph.react.state import ReactOptions, ReactState, new_run_input, reentry_input
from phylactery_agent.graph.secured.nodes.await_approval import await_approval
from phylactery_agent.graph.secured.nodes.risk_gate import risk_gate
from phylactery_agent.graph.secured.nodes.tools import tools
from phylactery_agent.i18n.messages import in_each_language

NODES: Final[dict[str, NodeFunction]] = {
    "Router": entry.router,
    "planner": entry.planner,
    "reasoner": static.reasoner,
    "tool_selector": static.tool_selector,
    "model": model.model,
    "fallback": model.fallback,
    "tool_executor": effects.tool_executor,
    "RiskGate": risk_gate,
    "AwaitApproval": await_approval,
    "ApprovalHandler": effects.approval_handler,
    "Tools": tools,
    "Interpreter": effects.interpreter,
    "sync": model.sync,
    "critic": closing.critic,
    "finalizer": closing.finalizer,
}

REACT: Final = GraphSpec(
    name="react",
    descriptions=in_each_language("graph_react"),
    state=ReactState,
    entry="Router",
    nodes=NODES,
    recursion_limit=MAX_SUPERSTEPS + 5,
    new_run_input=new_run_input,
    reentry_input=reentry_input,
    names={"Finalizer": "finalizer"},
    continues=frozenset({"485f94fcd5a39747"}),  # 0.1
)


@lru_cache(maxsize=8)  # a compiled graph stays with its specification
def react_with(options: ReactOptions) -> GraphSpec:
    """Return the graph with a deployment's options; its version is unaffected by them."""
    return replace(REACT, new_run_input=partial(new_run_input, options=options))
