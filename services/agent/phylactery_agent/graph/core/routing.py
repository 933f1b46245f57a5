"""Wrapper around every node: checks targets, counts supersteps and records a trace span.

LangGraph ends a run as a success when a Command names a node that does not exist; this wrapper raises instead.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from langgraph.config import get_config
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import span

from phylactery_agent.graph.core.state import AgentState
from phylactery_agent.ports import NodeStep, Trail, TurnContext


class Stopwatch:
    """Timer for one node, started on construction. The constructor raises if the run may not continue."""

    def __init__(self, trail: Trail, node: str) -> None:
        trail.begin()
        self._trail, self._node = trail, node
        self._started_us, self._began_ns = trail.now_us(), time.perf_counter_ns()

    def ended(self, state: Mapping[str, Any], command: Command[Any]) -> None:
        """Record that the node ended with this command. A call's arguments and results are never read."""
        update = command.update if isinstance(command.update, Mapping) else {}
        goto = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
        self._trail.note(
            NodeStep(
                node=self._node,
                graph_step=int(get_config()["metadata"]["langgraph_step"]),
                started_us=self._started_us,
                duration_us=(time.perf_counter_ns() - self._began_ns) // 1_000,
                next_nodes=tuple(str(target) for target in goto if target and target != END),
                tool_call_id=_tool_call_id(state, update),
                finish_reason=str(update.get("finish_reason") or ""),
            )
        )


def _tool_call_id(state: Mapping[str, Any], update: Mapping[str, Any]) -> str:
    """Return the id of the call a node proposed or worked on.

    A node that reads a result counts as working on its call.
    """
    call = update.get("proposed_tool") or state.get("proposed_tool") or {}
    return str(call.get("tool_call_id") or "")


class NodeFunction(Hashable, Protocol):
    """A node: reads the state, reaches external services through the runtime's context, and returns a Command."""

    async def __call__(self, state: Any, runtime: Runtime[TurnContext]) -> Command[Any]:
        """Run the node."""
        ...


class RouteError(RuntimeError):
    """Error for a node that targets a node outside its annotation or declares no targets: an internal error (bug)."""


@lru_cache(maxsize=512)  # read three times for each node of a graph, and a tenth of a start went to it
def targets_of(function: NodeFunction) -> tuple[str, ...]:
    """Return the nodes that a function's ``Command[Literal[...]]`` annotation names.

    Raises:
        RouteError: The function has no such annotation.
    """
    annotation = get_type_hints(function).get("return")
    inner = get_args(annotation)
    if get_origin(annotation) is not Command or not inner or get_origin(inner[0]) is not Literal:
        raise RouteError(f"{getattr(function, '__name__', function)} must answer Command[Literal[...]]")
    return tuple(str(target) for target in get_args(inner[0]))


def checked(name: str, function: NodeFunction, names: Mapping[str, str] = MappingProxyType({})) -> NodeFunction:
    """Return the node wrapped with the checks the graph needs; names has its targets that are called otherwise here."""
    targets = frozenset(targets_of(function))
    plans = name.lower() == "planner"
    title = semconv.PLAN if plans else f"node {name}"
    described = {semconv.NODE: name} | ({semconv.GEN_AI_OPERATION: semconv.PLAN} if plans else {})

    async def run(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Any]:
        watch = Stopwatch(runtime.context.trail, name)
        with span(title, attributes={**described, semconv.RUN_ID: state["run_id"]}):
            command = await function(state, runtime)
        if not isinstance(command.goto, str) or command.goto not in targets:
            raise RouteError(f"{name} may not go to {command.goto!r}; it declares {sorted(targets)}")
        update = dict(command.update or {})
        goto = names.get(command.goto, command.goto)
        watch.ended(dict(state), Command(goto=goto, update=update))
        budgets = update.get("budgets", state["budgets"])
        update["budgets"] = {**budgets, "supersteps": budgets["supersteps"] + 1}
        return Command(goto=goto, update=update)

    return run
