"""The wrapper around every node: targets are checked, supersteps counted, and the node shows in the trace.

LangGraph ends a run as a success when a Command names a node that does not exist; here it raises.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args, get_origin, get_type_hints

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_chassis.telemetry import semconv
from phylactery_chassis.telemetry.telemetry import span

from phylactery_agent.graph.state import AgentState
from phylactery_agent.graph.trail import Stopwatch
from phylactery_agent.ports import TurnContext


class NodeFunction(Protocol):
    """A node: reads the state, reaches the outside through the runtime's context, answers where to go with what."""

    async def __call__(self, state: Any, runtime: Runtime[TurnContext]) -> Command[Any]:
        """Runs the node."""
        ...


class RouteError(RuntimeError):
    """A node named a target outside its own annotation, or declares none: a fault of ours."""


def targets_of(function: NodeFunction) -> tuple[str, ...]:
    """Answers the nodes a function's ``Command[Literal[...]]`` annotation names.

    Raises:
        RouteError: it is not annotated so.
    """
    annotation = get_type_hints(function).get("return")
    inner = get_args(annotation)
    if get_origin(annotation) is not Command or not inner or get_origin(inner[0]) is not Literal:
        raise RouteError(f"{getattr(function, '__name__', function)} must answer Command[Literal[...]]")
    return tuple(str(target) for target in get_args(inner[0]))


def checked(name: str, function: NodeFunction) -> NodeFunction:
    """Answers the node as the graph runs it."""
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
        watch.ended(dict(state), command)
        budgets = update.get("budgets", state["budgets"])
        update["budgets"] = {**budgets, "supersteps": budgets["supersteps"] + 1}
        return Command(goto=command.goto, update=update)

    return run
