"""phylactery gateway: which people of messaging channels an operator lets do what any other user may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer
from phylactery_chassis.auth.tokens import parse_expiry
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_client import PhylacteryClient
from phylactery_gateway import lifting

from phylactery_cli.calling import json_line
from phylactery_cli.options import agent_caller, group, shared
from phylactery_cli.terminal import printable

T = TypeVar("T")

app = group("People of messaging channels: lift, revoke, lifted. Reads the gateway's database, as GATEWAY_… says.")

Channel = Annotated[str, typer.Argument(help="whatsapp or telegram")]
Id = Annotated[str, typer.Argument(help="the channel's own id: a phone number, a business-scoped id, a chat id")]


def _ask(context: typer.Context, call: Callable[[Database, PhylacteryClient], Awaitable[T]]) -> T:
    """Return what a call does with the gateway's database and the agent. Raise typer.Exit after a failure was said."""
    caller = agent_caller(context, "gateway")
    try:
        with lifting.open_database() as database:
            return caller.ask(lambda client: call(database, client))
    except (StartError, DomainError) as error:
        typer.echo(f"phylactery: {error.message if isinstance(error, DomainError) else error}", err=True)
        raise typer.Exit(1) from None


def _show(context: typer.Context, one: lifting.Lifted) -> None:
    typer.echo(json_line(one) if agent_caller(context, "gateway").json else printable(one.line))


@app.command()
@shared()
def lift(
    context: typer.Context,
    channel: Channel,
    value: Id,
    until: Annotated[str, typer.Option(help="when it ends: 30d, 12h or 2027-01-31T12:00:00Z; empty is never")] = "",
) -> None:
    """Let a person do what any user may, from their next message on. Without it people of channels are guests."""
    try:
        ends = parse_expiry(until)
    except ValueError as error:
        raise typer.BadParameter(f"--until: {error}") from None
    _show(context, _ask(context, lambda database, agent: lifting.lift(database, agent, channel, value, ends)))


@app.command()
@shared()
def revoke(context: typer.Context, channel: Channel, value: Id) -> None:
    """Make a lifted person a guest again, from their next call on."""
    ended = _ask(context, lambda database, agent: lifting.revoke(database, agent, channel, value))
    told = {"channel": channel, "id": value, "subjects": list(ended)}
    line = f"{channel} {value} is a guest again ({', '.join(ended)})"
    typer.echo(json_line(told) if agent_caller(context, "gateway").json else printable(line))


@app.command()
@shared()
def lifted(context: typer.Context) -> None:
    """List who is lifted, until when, and by whom."""
    for one in _ask(context, lifting.lifted):
        _show(context, one)
