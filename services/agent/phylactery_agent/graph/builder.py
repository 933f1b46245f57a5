"""The secured graph: the seeds' nodes, joined by what each node declares it may go to."""

from __future__ import annotations

from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from phylactery_agent.graph.guards import MAX_SUPERSTEPS
from phylactery_agent.graph.nodes.approval_handler import approval_handler
from phylactery_agent.graph.nodes.await_approval import await_approval
from phylactery_agent.graph.nodes.executor import executor
from phylactery_agent.graph.nodes.finalizer import finalizer
from phylactery_agent.graph.nodes.interpreter import interpreter
from phylactery_agent.graph.nodes.planner import planner
from phylactery_agent.graph.nodes.risk_gate import risk_gate
from phylactery_agent.graph.nodes.router import router
from phylactery_agent.graph.nodes.supervisor import supervisor
from phylactery_agent.graph.nodes.tools import tools
from phylactery_agent.graph.routing import NodeFunction, checked, targets_of
from phylactery_agent.graph.state import AgentState
from phylactery_agent.ports import TurnContext

RECURSION_LIMIT: Final = MAX_SUPERSTEPS + 5
"""The backstop behind Supervisor's own guard. LangGraph's default is 10007, which guards nothing."""

NODES: Final[dict[str, NodeFunction]] = {
    "Router": router,
    "Planner": planner,
    "Supervisor": supervisor,
    "Executor": executor,
    "RiskGate": risk_gate,
    "AwaitApproval": await_approval,
    "ApprovalHandler": approval_handler,
    "Tools": tools,
    "Interpreter": interpreter,
    "Finalizer": finalizer,
}

SecuredGraph = CompiledStateGraph[AgentState, TurnContext, AgentState, AgentState]


def build_secured(checkpointer: BaseCheckpointSaver[Any]) -> SecuredGraph:
    """Compiles the graph over a checkpointer. Invoke it with durability "sync" and a TurnContext as context."""
    graph = StateGraph(AgentState, context_schema=TurnContext)
    for name, function in NODES.items():
        graph.add_node(name, checked(name, function), destinations=targets_of(function))
    graph.add_edge(START, "Router")
    compiled = graph.compile(checkpointer=checkpointer, name="secured")
    return compiled.with_config(recursion_limit=RECURSION_LIMIT)
