"""Builder of the secured graph, with edges from each node's declared targets."""

from __future__ import annotations

from typing import Final

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS, MAX_TOOL_CALLS
from phylactery_agent.graph.core.routing import NodeFunction
from phylactery_agent.graph.core.spec import GraphSpec
from phylactery_agent.graph.core.state import AgentState, new_run_input, reentry_input
from phylactery_agent.graph.secured.nodes.approval_handler import approval_handler
from phylactery_agent.graph.secured.nodes.await_approval import await_approval
from phylactery_agent.graph.secured.nodes.executor import executor
from phylactery_agent.graph.secured.nodes.finalizer import finalizer
from phylactery_agent.graph.secured.nodes.interpreter import interpreter
from phylactery_agent.graph.secured.nodes.planner import planner
from phylactery_agent.graph.secured.nodes.risk_gate import risk_gate
from phylactery_agent.graph.secured.nodes.router import router
from phylactery_agent.graph.secured.nodes.supervisor import STEPS_OF_A_CALL, supervisor
from phylactery_agent.graph.secured.nodes.tools import tools
from phylactery_agent.i18n.messages import in_each_language

RECURSION_LIMIT: Final = MAX_SUPERSTEPS + 5 + MAX_TOOL_CALLS * (STEPS_OF_A_CALL + 1)
"""What a turn may run, and a plan that was approved with one answer, whose calls ApprovalHandler takes one by one."""
"""The safety limit behind Supervisor's own guard. LangGraph's default of 10007 is too high to protect anything."""

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

SECURED: Final = GraphSpec(
    name="secured",
    descriptions=in_each_language("graph_secured"),
    state=AgentState,
    entry="Router",
    nodes=NODES,
    recursion_limit=RECURSION_LIMIT,
    new_run_input=new_run_input,
    reentry_input=reentry_input,
    continues=frozenset({"6873680de963b51a"}),  # 0.1
)
