"""Every graph there is, by name, compiled once per process over one saver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver

from phylactery_agent.graph.core.spec import CompiledGraph, GraphSpec
from phylactery_agent.graph.react.builder import REACT, react_with
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.graph.secured.builder import SECURED

SPECS: Final[Mapping[str, GraphSpec]] = {spec.name: spec for spec in (SECURED, REACT)}
GRAPH_NAMES: Final[tuple[str, ...]] = tuple(SPECS)
DEFAULT_GRAPH: Final = SECURED.name


class UnknownGraphError(Exception):
    """There is no graph of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no graph '{name}'; there is {', '.join(GRAPH_NAMES)}")
        self.name = name


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """A graph ready to be invoked, and what it is."""

    compiled: CompiledGraph
    spec: GraphSpec


class Graphs:
    """The graphs of a process."""

    def __init__(self, checkpointer: BaseCheckpointSaver[Any], react: ReactOptions | None = None) -> None:
        """Compile them; react is what the deployment decides about that graph."""
        specs = {**SPECS, REACT.name: react_with(react or ReactOptions())}
        self._served = {name: ServedGraph(spec.compile(checkpointer), spec) for name, spec in specs.items()}

    def get(self, name: str) -> ServedGraph:
        """Return a graph. Raise UnknownGraphError."""
        served = self._served.get(name)
        if served is None:
            raise UnknownGraphError(name)
        return served
