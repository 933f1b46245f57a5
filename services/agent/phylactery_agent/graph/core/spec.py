"""Graphs as data: nodes, their targets, the shared state, and the entry of a turn.

The compiled graph, its drawing and the version stored with a run are all derived from this data, so they cannot differ.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args, get_type_hints, is_typeddict

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from phylactery_agent.graph.core.routing import NodeFunction, RouteError, checked, targets_of
from phylactery_agent.ports import Language, Turn, TurnContext

CompiledGraph = CompiledStateGraph[Any, TurnContext, Any, Any]


@dataclass(frozen=True)
class GraphSpec:
    """The specification of one graph. A suspended run resumes only in a graph that has or continues its version."""

    name: str
    descriptions: Mapping[Language, str]
    state: type[Any]
    """A TypedDict of plain JSON values."""
    entry: str
    """The node at which every turn begins, including a turn that resumes after a suspension."""
    nodes: Mapping[str, NodeFunction]
    recursion_limit: int
    """The safety limit behind the graph's own guards. LangGraph's default of 10007 is too high to protect anything."""
    new_run_input: Callable[[Turn], dict[str, Any]]
    reentry_input: Callable[[Turn], dict[str, Any]]
    names: Mapping[str, str] = field(default_factory=dict)
    """The names that nodes shared with another graph have here, where they differ: the target a node goes to there."""
    continues: frozenset[str] = frozenset()
    """Versions of earlier releases whose checkpoints this graph reads, so that suspended runs survive an upgrade."""

    def __post_init__(self) -> None:
        """Raise RouteError if an edge leads to an unknown node or a node is unreachable."""
        known = {*self.nodes, END}
        reached = {self.entry, *(target for _, target in self.edges)}
        for source, target in self.edges:
            if target not in known:
                raise RouteError(f"{self.name}: {source} declares {target}, which is not a node")
        if lonely := set(self.nodes) - reached:
            raise RouteError(f"{self.name}: no edge leads to {', '.join(sorted(lonely))}")

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Return the edges, read from the annotations that `checked` enforces."""
        return tuple((name, target) for name, function in self.nodes.items() for target in self._targets(function))

    @property
    def drawn_edges(self) -> tuple[tuple[str, str], ...]:
        """Return the edges including the one from the start of a turn."""
        return ((START, self.entry), *self.edges)

    @cached_property
    def version(self) -> str:
        """Return a hash over nodes, edges and the required fields of the state, which a checkpoint depends on."""
        parts = {"entry": self.entry, "edges": sorted(self.edges), "state": _shape(self.state)}
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def compile(self, checkpointer: BaseCheckpointSaver[Any]) -> CompiledGraph:
        """Compile the graph. Invoke it with durability "sync" and a TurnContext as context."""
        return self._compiled.copy({"checkpointer": checkpointer})

    @cached_property
    def _compiled(self) -> CompiledGraph:
        """Return the graph without a checkpointer.

        LangGraph looks for graphs in all that a node can reach, which was a fifth of an agent's start in the tests.
        """
        graph = StateGraph(self.state, context_schema=TurnContext)
        for name, function in self.nodes.items():
            node = checked(name, function, self.names)
            graph.add_node(name, node, destinations=self._targets(function), input_schema=self.state)
        graph.add_edge(START, self.entry)
        return graph.compile(name=self.name).with_config(recursion_limit=self.recursion_limit)

    def _targets(self, function: NodeFunction) -> tuple[str, ...]:
        return tuple(self.names.get(target, target) for target in targets_of(function))


def _shape(kind: Any) -> Any:
    """Return a type as JSON: the required fields of a TypedDict by name, and nested types recursively.

    A checkpoint without an optional field remains readable, so a new one does not change the version.
    """
    if is_typeddict(kind):
        required = kind.__required_keys__
        return {name: _shape(hint) for name, hint in get_type_hints(kind).items() if name in required}
    inner = get_args(kind)
    name = getattr(kind, "__name__", str(kind))
    return [name, *(_shape(each) if not isinstance(each, str) else each for each in inner)] if inner else name


_ROUND = {START: "([start])", END: "([end])"}


def mermaid(spec: GraphSpec) -> str:
    """Return the Mermaid drawing, deterministic for a graph and ending in a line feed."""
    ids = {name: f"n{number}" for number, name in enumerate((START, *spec.nodes, END))}
    boxes = [f"  {number}{_ROUND.get(name, f'[{name}]')}" for name, number in ids.items()]
    arrows = [f"  {ids[source]} --> {ids[target]}" for source, target in spec.drawn_edges]
    return "\n".join(["flowchart TD", *boxes, *arrows, ""])
