"""Graph edge: what a caller may see of the graphs, from the same specifications the graphs are compiled from."""

from __future__ import annotations

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import NotFound

from phylactery_agent.api.chat import owner_of
from phylactery_agent.graph.core.registry import SPECS
from phylactery_agent.graph.core.spec import GraphSpec


class GraphEdge:
    """The implementation of GraphService, without gRPC."""

    def __init__(self, default: str) -> None:
        """Set the name of the graph that serves threads without a graph name."""
        self.default = default

    def list(self, principal: Principal) -> list[GraphSpec]:
        """Return the graphs, the default first."""
        owner_of(principal)
        return sorted(SPECS.values(), key=lambda spec: (spec.name != self.default, spec.name))

    def get(self, principal: Principal, name: str) -> GraphSpec:
        """Return a graph, or the default for an empty name. Raise NotFound GRAPH_NOT_FOUND."""
        owner_of(principal)
        spec = SPECS.get(name or self.default)
        if spec is None:
            raise NotFound(
                "GRAPH_NOT_FOUND",
                f"there is no graph '{name}'; there are {', '.join(SPECS)}",
                metadata={"graph": name},
            )
        return spec
