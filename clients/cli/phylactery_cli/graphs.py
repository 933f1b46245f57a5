"""phylactery graphs: how the agent works through a message, and the drawing of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient

from phylactery_cli.calling import answer, json_line, print_table
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.terminal import printable
from phylactery_cli.texts import Language, Texts, preferred_language

app = typer.Typer(help="Graphs: list, show.", no_args_is_help=True)
T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")]
_TARGET = f"127.0.0.1:{DEFAULT_PORTS['agent']}"


@app.callback()
def options(
    context: typer.Context,
    *,
    target: Annotated[str, typer.Option(help="Where the agent is.")] = _TARGET,
    token_file: Annotated[Path | None, typer.Option(help="File with your token.")] = None,
    language: Annotated[Language, typer.Option("--language", help="Language of this command.")] = preferred_language(),
) -> None:
    """Graphs: list, show."""
    try:
        token = read_secret(token_file, "--token-file")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    context.obj = {"target": target, "token": token, "language": language}


@app.command("list")
def list_(context: typer.Context, json_: Json = False) -> None:
    """Lists the graphs; the one marked serves threads that name none."""
    texts = Texts(context.obj["language"])
    found = _ask(context, texts, lambda client: client.list_graphs())
    if json_:
        for graph in found:
            typer.echo(json_line(graph))
        return
    spanish = context.obj["language"] == "es"
    rows = (
        (
            graph.name,
            "*" if graph.is_default else "",
            graph.version,
            graph.description_es if spanish else graph.description,
        )
        for graph in found
    )
    print_table(texts.columns("graphs_columns"), rows)


@app.command()
def show(context: typer.Context, name: Annotated[str, typer.Argument()] = "", json_: Json = False) -> None:
    """Prints a graph as Mermaid text, the default one without a name."""
    drawn = _ask(context, Texts(context.obj["language"]), lambda client: client.get_graph(name))
    typer.echo(json_line(drawn) if json_ else "\n".join(printable(line) for line in drawn.mermaid.splitlines()))


def _ask(context: typer.Context, texts: Texts, call: Callable[[PhylacteryClient], Awaitable[T]]) -> T:
    target, token = context.obj["target"], context.obj["token"]
    away = texts("service_away", target=target)
    return answer("graphs", lambda: PhylacteryClient(target, token=token), call, away=away)
