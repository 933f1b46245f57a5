"""GraphService: what a caller may see of the graphs, from the same specifications the graphs are compiled from."""

from __future__ import annotations

from phylactery.agent.v1 import graph_pb2, graph_pb2_grpc
from phylactery_chassis.auth.identity import Principal, current_principal
from phylactery_chassis.errors import NotFound
from phylactery_chassis.rpc.validation import EdgeModel, OptionalIdentifier, from_message

from phylactery_agent.api.mapping import Context, owner_of
from phylactery_agent.graph.core.registry import SPECS
from phylactery_agent.graph.core.spec import GraphSpec, mermaid


class GraphRequest(EdgeModel):
    """GetGraph; an empty name means the default."""

    name: OptionalIdentifier


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


class GraphServicer(graph_pb2_grpc.GraphServiceServicer):
    """phylactery.agent.v1.GraphService."""

    def __init__(self, edge: GraphEdge) -> None:
        self._edge = edge

    async def ListGraphs(self, request: graph_pb2.ListGraphsRequest, _context: Context) -> graph_pb2.ListGraphsResponse:
        """Return every graph."""
        found = self._edge.list(current_principal())
        return graph_pb2.ListGraphsResponse(graphs=[graph_message(spec, default=self._edge.default) for spec in found])

    async def GetGraph(self, request: graph_pb2.GetGraphRequest, _context: Context) -> graph_pb2.GetGraphResponse:
        """Return one graph with its nodes."""
        return drawn_graph(
            self._edge.get(current_principal(), from_message(GraphRequest, request).name), default=self._edge.default
        )


def graph_message(spec: GraphSpec, *, default: str) -> graph_pb2.Graph:
    """Return a graph in list form."""
    return graph_pb2.Graph(
        name=spec.name,
        description=spec.descriptions["en"],
        description_es=spec.descriptions["es"],
        version=spec.version,
        is_default=spec.name == default,
    )


def drawn_graph(spec: GraphSpec, *, default: str) -> graph_pb2.GetGraphResponse:
    """Return a graph with its nodes."""
    return graph_pb2.GetGraphResponse(
        graph=graph_message(spec, default=default),
        nodes=list(spec.nodes),
        edges=[graph_pb2.GraphEdge(source=source, target=target) for source, target in spec.drawn_edges],
        mermaid=mermaid(spec),
    )
