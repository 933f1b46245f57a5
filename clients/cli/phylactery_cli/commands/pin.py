"""phylactery tools pin: what MCP servers say of their tools, shown, and kept once a person has agreed to it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from phylactery_agent.tools.mcp.config import McpConfig, McpConfigError, ServerConfig, ServerFaultError, load_config
from phylactery_agent.tools.mcp.listing import list_tools
from phylactery_agent.tools.mcp.pins import Change, Pin, Pins, PinsError, changes, load_pins, save_pins
from phylactery_agent.tools.mcp.specs import spec_of, tool_name
from phylactery_riskgate.domain.catalog.drafting.schemas import DraftError, usable

from phylactery_cli.calling import failed
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import confirmed, one_line, printable


@dataclass(frozen=True, slots=True)
class _Seen:
    """A server as it is now: how its tools stand to their pins, those that can be pinned, and why the others cannot."""

    server: str
    changes: Sequence[Change]
    pins: Mapping[str, Pin]
    unusable: Mapping[str, str]


def pin_tools(names: Sequence[str], servers: str, pins: Path, texts: Texts, *, yes: bool) -> None:
    """Show what differs from the pins, asks, and write the pin file. Raise typer.Exit 1 where nothing was agreed to.

    A server that is not named keeps its pins.
    """
    try:
        config, kept = load_config(servers), load_pins(pins)
        seen = [_look(name, config.servers[name], kept) for name in _chosen(names, config)]
    except (McpConfigError, PinsError) as error:
        raise failed("tools", str(error)) from None
    for one in seen:
        _show(one, texts)
    if not any(one.changes for one in seen):
        typer.echo(texts("pin_same"))
        return
    if not yes and not confirmed(texts("pin_confirm"), texts):
        typer.echo(texts("unchanged"))
        raise typer.Exit(1)
    try:
        save_pins(pins, Pins({**kept.servers, **{one.server: one.pins for one in seen}}))
    except OSError as error:
        raise failed("tools", f"{pins} cannot be written ({error.strerror})") from None
    typer.echo(texts("pin_done", file=pins, count=sum(len(one.pins) for one in seen)))


def _chosen(names: Sequence[str], config: McpConfig) -> Sequence[str]:
    strangers = [name for name in names if name not in config.servers]
    if strangers:
        raise McpConfigError(f"there is no server {strangers[0]!r}; there are {', '.join(config.servers) or 'none'}")
    if not config.servers:
        raise McpConfigError("no server is configured: name a file with --servers, or in AGENT_MCP_SERVERS")
    return names or list(config.servers)


def _look(name: str, config: ServerConfig, kept: Pins) -> _Seen:
    try:
        listed = asyncio.run(list_tools(config))
    except ServerFaultError as error:
        raise failed("tools", f"{name}: {error}") from None
    pins: dict[str, Pin] = {}
    unusable: dict[str, str] = {}
    for tool, definition in listed.items():
        try:
            pins[tool] = Pin(definition, _schema(definition))
        except DraftError as error:
            unusable[tool] = str(error)
        else:
            spec_of(name, config, pins[tool])
    usable_now = {tool: pin.definition for tool, pin in pins.items()}
    return _Seen(name, list(changes(kept.of(name), usable_now)), pins, unusable)


def _schema(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema in the form a catalog holds, which is also what is offered: nothing undeclared is let through.

    Whatever fits it fits the tool's own schema, and the hash of it is the one RiskGate computes.
    """
    schema, _ = usable(definition.get("inputSchema"))
    return schema if "additionalProperties" in schema else {**schema, "additionalProperties": False}


def _show(seen: _Seen, texts: Texts) -> None:
    for tool, why in seen.unusable.items():
        typer.echo(texts("pin_unusable", server=seen.server, tool=printable(tool), why=printable(why)), err=True)
    for change in seen.changes:
        typer.echo(texts(f"pin_{change.kind}", name=tool_name(seen.server, change.tool), tool=one_line(change.tool)))
        for line in change.lines[2:]:
            typer.echo(f"    {one_line(line)}")
