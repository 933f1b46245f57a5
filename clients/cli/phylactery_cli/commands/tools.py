"""phylactery tools: list the agent's tools with their status, pin them, and export them for a catalog."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from phylactery_agent.tools.export import exported
from phylactery_agent.tools.mcp.config import McpConfigError, load_config
from phylactery_agent.tools.mcp.pins import PinsError, load_pins
from phylactery_agent.tools.mcp.specs import pinned_specs
from phylactery_agent.tools.registry import ToolRegistrationError, ToolRegistry
from phylactery_client.results import Tool

from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, agent_caller, group, shared
from phylactery_cli.terminal import printable

app = group("The agent's tools: list, pin, export.")

_PINS = Path(".phylactery/agent/mcp.json")
Servers = Annotated[
    str, typer.Option(envvar="AGENT_MCP_SERVERS", help="MCP servers: a YAML file, or JSON in place (docs/mcp.md).")
]
PinFile = Annotated[Path, typer.Option(envvar="AGENT_MCP_PINS", help="The file of the MCP tools agreed to.")]


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    *,
    enabled: Annotated[bool, typer.Option("--enabled", help="Leave out those that are switched off.")] = False,
) -> None:
    """List the tools of a running agent: where each comes from, its risk, and why some are switched off."""
    caller = agent_caller(context, "tools")
    found = caller.ask(lambda client: client.list_tools(enabled_only=enabled))
    shown = caller.print_list(found.tools, "tools_columns", partial(_cells, caller.texts), none="")
    if shown and found.check_time is None:
        typer.echo(caller.texts("tools_unchecked"))


def _cells(texts: Texts, tool: Tool) -> tuple[object, ...]:
    on = texts("tools_on" if tool.checked else "tools_on_unchecked")
    what = tool.description_es if texts.language == "es" and tool.description_es else tool.description
    return (
        tool.name,
        on if tool.enabled else tool.disabled_reason,
        texts.approval_word(tool.risk),
        tool.effect.lower(),
        tool.source,
        what,
    )


@app.command()
@shared(asks=False)
def pin(
    context: typer.Context,
    *,
    server: Annotated[list[str] | None, typer.Argument(help="The servers to look at; all without one.")] = None,
    servers: Servers = "",
    pins: PinFile = _PINS,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: agree to what is shown.")] = False,
) -> None:
    """Show what MCP servers say of their tools, beside what was agreed to before, and keep it once you agree.

    An agent uses no tool that is not pinned, nor one whose server describes it otherwise now. It reads the pins when it
    starts.
    """
    from phylactery_cli.commands.pin import pin_tools  # late: the SDK is heavy, and the other commands need none of it

    pin_tools(server or (), servers, pins, Options.of(context).texts, yes=yes)


@app.command()
@shared(asks=False)
def export(
    module: Annotated[
        list[str] | None, typer.Option(help="A module that brings more tools, as AGENT_TOOL_MODULES names it.")
    ] = None,
    servers: Servers = "",
    pins: PinFile = _PINS,
    only: Annotated[str, typer.Option(help="The tools of one MCP server alone.")] = "",
) -> None:
    """Write the tools as JSON: `phylactery tools export | riskgate catalog draft - --from-agent` proposes entries.

    The pinned tools of MCP servers are among them, where servers are named.
    """
    try:
        tools = ToolRegistry(module or ())
        external = pinned_specs(load_config(servers), load_pins(pins), only)
    except (ToolRegistrationError, ImportError, McpConfigError, PinsError) as error:
        typer.echo(f"phylactery: {printable(str(error))}", err=True)
        raise typer.Exit(1) from None
    specs = [*([] if only else tools.values()), *external]
    typer.echo(json.dumps(exported(specs), ensure_ascii=False, indent=2))
