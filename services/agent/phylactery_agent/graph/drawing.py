"""A graph as Mermaid text, from what its nodes declare; never from LangGraph's own drawing, which can lie."""

from __future__ import annotations

from langgraph.graph import END, START

from phylactery_agent.graph.spec import GraphSpec

_ROUND = {START: "([start])", END: "([end])"}


def mermaid(spec: GraphSpec) -> str:
    """Answers the drawing, the same text for the same graph, with a line feed at its end."""
    ids = {name: f"n{number}" for number, name in enumerate((START, *spec.nodes, END))}
    boxes = [f"  {number}{_ROUND.get(name, f'[{name}]')}" for name, number in ids.items()]
    arrows = [f"  {ids[source]} --> {ids[target]}" for source, target in spec.drawn_edges]
    return "\n".join(["flowchart TD", *boxes, *arrows, ""])
