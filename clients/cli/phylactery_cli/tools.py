"""phylactery tools: what the agent's tools are, where each stands, and what to tell whoever keeps a catalog of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from phylactery_agent.tools.export import exported
from phylactery_agent.tools.mcp.config import McpConfigError, load_config
from phylactery_agent.tools.mcp.pins import PinsError, load_pins
from phylactery_agent.tools.mcp.specs import pinned_specs
from phylactery_agent.tools.registry import TOOL_REGISTRY, ToolRegistrationError, ensure_tools_registered
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient
from phylactery_client.tool_results import Tool

from phylactery_cli.calling import answer, json_line, print_table
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.terminal import printable
from phylactery_cli.texts import Language, Texts, preferred_language

app = typer.Typer(help="The agent's tools: list, pin, export.", no_args_is_help=True)

_TARGET = f"127.0.0.1:{DEFAULT_PORTS['agent']}"
_PINS = Path(".phylactery/agent/mcp.json")
Servers = Annotated[
    str, typer.Option(envvar="AGENT_MCP_SERVERS", help="MCP servers: a YAML file, or JSON in place (docs/mcp.md).")
]
PinFile = Annotated[Path, typer.Option(envvar="AGENT_MCP_PINS", help="The file of the MCP tools agreed to.")]


@app.callback()
def tools() -> None:
    """The agent's tools."""


@app.command("list")
def list_(
    *,
    target: Annotated[str, typer.Option(help="Where the agent is.")] = _TARGET,
    token_file: Annotated[Path | None, typer.Option(help="File with your token.")] = None,
    enabled: Annotated[bool, typer.Option("--enabled", help="Leave out those that are switched off.")] = False,
    language: Annotated[Language, typer.Option("--language", help="Language of this command.")] = preferred_language(),
    json_: Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")] = False,
) -> None:
    """Lists the tools of a running agent: where each comes from, its risk, and why some are switched off."""
    texts = Texts(language)
    try:
        token = read_secret(token_file, "--token-file")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    found = answer(
        "tools",
        lambda: PhylacteryClient(target, token=token),
        lambda client: client.list_tools(enabled_only=enabled),
        away=texts("service_away", target=target),
    )
    if json_:
        for tool in found.tools:
            typer.echo(json_line(tool))
        return
    print_table(texts.columns("tools_columns"), (_cells(tool, texts) for tool in found.tools))
    if found.check_time is None:
        typer.echo(texts("tools_unchecked"))


def _cells(tool: Tool, texts: Texts) -> tuple[object, ...]:
    on = texts("tools_on" if tool.checked else "tools_on_unchecked")
    what = tool.description_es if texts.language == "es" and tool.description_es else tool.description
    return (
        tool.name,
        on if tool.enabled else tool.disabled_reason,
        texts.as_it_stands(tool.risk),
        tool.effect.lower(),
        tool.source,
        what,
    )


@app.command()
def pin(
    *,
    server: Annotated[list[str] | None, typer.Argument(help="The servers to look at; all without one.")] = None,
    servers: Servers = "",
    pins: PinFile = _PINS,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask: agree to what is shown.")] = False,
    language: Annotated[Language, typer.Option("--language", help="Language of this command.")] = preferred_language(),
) -> None:
    """Shows what MCP servers say of their tools, beside what was agreed to before, and keeps it once you agree.

    An agent uses no tool that is not pinned, nor one whose server describes it otherwise now. It reads the pins when it
    starts.
    """
    from phylactery_cli.pinning import pin_tools  # late: the SDK is heavy, and the other commands need none of it

    pin_tools(server or (), servers, pins, Texts(language), yes=yes)


@app.command()
def export(
    module: Annotated[
        list[str] | None, typer.Option(help="A module that brings more tools, as AGENT_TOOL_MODULES names it.")
    ] = None,
    servers: Servers = "",
    pins: PinFile = _PINS,
    only: Annotated[str, typer.Option(help="The tools of one MCP server alone.")] = "",
) -> None:
    """Writes the tools as JSON: `phylactery tools export | riskgate catalog draft - --from-agent` proposes entries.

    The pinned tools of MCP servers are among them, where servers are named.
    """
    try:
        ensure_tools_registered(module or ())
        external = pinned_specs(load_config(servers), load_pins(pins), only)
    except (ToolRegistrationError, ImportError, McpConfigError, PinsError) as error:
        typer.echo(f"phylactery: {printable(str(error))}", err=True)
        raise typer.Exit(1) from None
    specs = [*([] if only else TOOL_REGISTRY.values()), *external]
    typer.echo(json.dumps(exported(specs), ensure_ascii=False, indent=2))
