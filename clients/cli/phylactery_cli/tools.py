"""phylactery tools: what the agent's tools say about themselves, for whoever keeps a catalog of them."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from phylactery_agent.tools.export import exported
from phylactery_agent.tools.registry import TOOL_REGISTRY, ToolRegistrationError, ensure_tools_registered

from phylactery_cli.terminal import printable

app = typer.Typer(help="The agent's tools: export.", no_args_is_help=True)


@app.callback()
def tools() -> None:
    """The agent's tools."""


@app.command()
def export(
    module: Annotated[
        list[str] | None, typer.Option(help="A module that brings more tools, as AGENT_TOOL_MODULES names it.")
    ] = None,
) -> None:
    """Writes the tools as JSON: `phylactery tools export | riskgate catalog draft - --from-agent` proposes entries."""
    try:
        ensure_tools_registered(module or ())
    except (ToolRegistrationError, ImportError) as error:
        typer.echo(f"phylactery: {printable(str(error))}", err=True)
        raise typer.Exit(1) from None
    typer.echo(json.dumps(exported(TOOL_REGISTRY.values()), ensure_ascii=False, indent=2))
