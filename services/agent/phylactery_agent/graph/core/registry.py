"""Registry of all graphs by name, each compiled once per process with a shared checkpointer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import BaseCheckpointSaver

from phylactery_agent.graph.core.spec import CompiledGraph, GraphSpec
from phylactery_agent.graph.form.serving import FORM
from phylactery_agent.graph.react.builder import REACT, react_with
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.graph.secured.builder import SECURED

SPECS: Final[Mapping[str, GraphSpec]] = {spec.name: spec for spec in (SECURED, REACT, FORM)}
GRAPH_NAMES: Final[tuple[str, ...]] = tuple(SPECS)
OPENING_GRAPHS: Final[tuple[str, ...]] = (SECURED.name, REACT.name)
"""The graphs a thread may be opened with; a form's messages are served by FORM whatever graph their thread has."""


class UnknownGraphError(Exception):
    """Error for a graph name that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no graph '{name}'; there is {', '.join(GRAPH_NAMES)}")
        self.name = name


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """A compiled graph and its specification."""

    compiled: CompiledGraph
    spec: GraphSpec


class Graphs:
    """The compiled graphs of a process."""

    def __init__(self, checkpointer: BaseCheckpointSaver[Any], react: ReactOptions | None = None) -> None:
        """Compile the graphs; react holds the deployment's options for the react graph."""
        specs = {**SPECS, REACT.name: react_with(react or ReactOptions())}
        self._served = {name: ServedGraph(spec.compile(checkpointer), spec) for name, spec in specs.items()}

    def get(self, name: str) -> ServedGraph:
        """Return a graph. Raise UnknownGraphError if the name is unknown."""
        served = self._served.get(name)
        if served is None:
            raise UnknownGraphError(name)
        return served
