"""phylactery graphs: how the agent works through a message, and the drawing of it."""

from __future__ import annotations

from typing import Annotated

import typer
from phylactery_client.results import Graph

from phylactery_cli.calling import json_line
from phylactery_cli.options import agent_caller, group, shared
from phylactery_cli.terminal import printable

app = group("Graphs: list, show.")


@app.command("list")
@shared()
def list_(context: typer.Context) -> None:
    """List the graphs; the one marked serves threads that name none."""
    caller = agent_caller(context, "graphs")
    spanish = caller.texts.language == "es"

    def cells(graph: Graph) -> tuple[object, ...]:
        what = graph.description_es if spanish else graph.description
        return graph.name, "*" if graph.is_default else "", graph.version, what

    caller.print_list(caller.ask(lambda client: client.list_graphs()), "graphs_columns", cells, none="")


@app.command()
@shared()
def show(context: typer.Context, name: Annotated[str, typer.Argument()] = "") -> None:
    """Print a graph as Mermaid text, the default one without a name."""
    caller = agent_caller(context, "graphs")
    drawn = caller.ask(lambda client: client.get_graph(name))
    typer.echo(json_line(drawn) if caller.json else "\n".join(printable(line) for line in drawn.mermaid.splitlines()))
