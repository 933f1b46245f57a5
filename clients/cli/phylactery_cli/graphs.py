"""phylactery graphs: how the agent works through a message, and the drawing of it."""

from __future__ import annotations

from typing import Annotated

import typer
from phylactery_client.results import Graph

from phylactery_cli.calling import json_line
from phylactery_cli.options import AgentCaller, Json, agent_group
from phylactery_cli.terminal import printable

app = agent_group("graphs", "Graphs: list, show.")


@app.command("list")
def list_(context: typer.Context, json_: Json = False) -> None:
    """Lists the graphs; the one marked serves threads that name none."""
    caller: AgentCaller = context.obj
    spanish = caller.texts.language == "es"

    def cells(graph: Graph) -> tuple[object, ...]:
        what = graph.description_es if spanish else graph.description
        return graph.name, "*" if graph.is_default else "", graph.version, what

    caller.print_list(caller.ask(lambda client: client.list_graphs()), "graphs_columns", cells, none="", json_=json_)


@app.command()
def show(context: typer.Context, name: Annotated[str, typer.Argument()] = "", json_: Json = False) -> None:
    """Prints a graph as Mermaid text, the default one without a name."""
    caller: AgentCaller = context.obj
    drawn = caller.ask(lambda client: client.get_graph(name))
    typer.echo(json_line(drawn) if json_ else "\n".join(printable(line) for line in drawn.mermaid.splitlines()))
