"""phylactery handoff: answer people in place of the agent, in a terminal or by single commands."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer
from phylactery_client import EscalationClient, PhylacteryError
from phylactery_client.escalations import Escalation

from phylactery_cli.calling import Caller, failed
from phylactery_cli.handoff.showing import cells, detail_lines
from phylactery_cli.options import Options, Page, shared
from phylactery_cli.terminal import one_line, plain_console, printable

app = typer.Typer(
    help="Conversations that wait for a person: work the queue, or list, show, claim, reply, note, release."
)
_COMMAND = "handoff"
_ALL = "ALL"

Name = Annotated[str, typer.Option("--name", help="Your name as the people you answer see it.")]
RequestId = Annotated[str, typer.Option(help="Makes a repetition harmless: 8 to 128 characters.")]


@app.callback(invoke_without_command=True)
@shared()
def handoff(context: typer.Context, name: Name = "") -> None:
    """Open a terminal in which a person works the queue, unless a command follows."""
    if context.invoked_subcommand is not None:
        return
    from phylactery_cli.handoff.desk import work

    options = Options.of(context)
    target, well = options.target_of("agent"), True
    try:
        with contextlib.suppress(KeyboardInterrupt):
            well = asyncio.run(work(target, options.token(), plain_console(), options.texts, name=name))
    except PhylacteryError as error:
        away = options.texts("service_away", target=target)
        raise failed(_COMMAND, error.message if error.reason else away) from None
    if not well:
        raise typer.Exit(1)


def _caller(context: typer.Context) -> Caller[EscalationClient]:
    options = Options.of(context)
    token, target = options.token(), options.target_of("agent")
    return Caller(
        _COMMAND,
        target,
        options.texts,
        lambda: EscalationClient(target, token=token, retry_seconds=0),
        json=options.json,
    )


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    state: Annotated[str, typer.Option(help="OPEN, CLAIMED, RELEASED, CLOSED or ALL; empty: not ended yet.")] = "",
    mine: Annotated[bool, typer.Option("--mine", help="Only what you claimed.")] = False,
    policy: Annotated[str, typer.Option(help="Only of one policy, for example KEYWORD.")] = "",
    page: Page = "",
) -> None:
    """List conversations that wait for a person or are with one, the longest waiting first."""
    caller = _caller(context)
    every = ("OPEN", "CLAIMED", "RELEASED", "CLOSED")
    states = every if state.upper() == _ALL else tuple(word for word in (state.upper(),) if word)

    async def found(client: EscalationClient, token: str) -> tuple[Sequence[Escalation], str]:
        some = await client.list(states=states, mine_only=mine, policy=policy.upper(), page_token=token)
        return some.escalations, some.next_page_token

    caller.print_pages(found, "handoff_columns", partial(cells, caller.texts), none="handoff_none", token=page)


@app.command()
@shared()
def show(context: typer.Context, escalation_id: str) -> None:
    """Show a conversation, why a person was called, and the notes of handlers."""
    caller = _caller(context)
    detail = caller.ask(lambda client: client.get(escalation_id))
    if caller.json:
        typer.echo(caller.line(detail))
        return
    console = plain_console()
    for line in detail_lines(caller.texts, detail):
        console.print(line, soft_wrap=True)


@app.command()
@shared()
def claim(context: typer.Context, escalation_id: str, name: Name = "") -> None:
    """Take a conversation, or keep the one you have: the agent says nothing in it."""
    caller = _caller(context)
    one = caller.ask(lambda client: client.claim(escalation_id, display_name=name))
    until = f"{one.claim_expire_time:%H:%M:%S} UTC" if one.claim_expire_time else ""
    told = caller.texts("handoff_claimed", id=one.escalation_id, until=until, person=one_line(one.subject))
    typer.echo(caller.line(one) if caller.json else told)


@app.command()
@shared()
def reply(context: typer.Context, escalation_id: str, text: str, request_id: RequestId = "") -> None:
    """Send a message to the person, under your claim."""
    caller = _caller(context)
    entry = caller.ask(lambda client: client.reply(escalation_id, text, request_id=request_id or None))
    typer.echo(caller.line(entry) if caller.json else caller.texts("handoff_replied"))


@app.command()
@shared()
def note(context: typer.Context, escalation_id: str, text: str, request_id: RequestId = "") -> None:
    """Add a note that only handlers see."""
    caller = _caller(context)
    entry = caller.ask(lambda client: client.add_note(escalation_id, text, request_id=request_id or None))
    typer.echo(caller.line(entry) if caller.json else caller.texts("handoff_noted"))


@app.command()
@shared()
def release(
    context: typer.Context,
    escalation_id: str,
    summary: Annotated[str, typer.Option(help="What was agreed; the person can read it.")] = "",
    queue: Annotated[bool, typer.Option("--queue", help="Back to the queue, for a colleague.")] = False,
) -> None:
    """Give a conversation back to the agent, or to the queue."""
    caller = _caller(context)
    to, told = ("QUEUE", "handoff_requeued") if queue else ("AGENT", "handoff_released")
    one = caller.ask(lambda client: client.release(escalation_id, summary=summary, to=to))
    typer.echo(caller.line(one) if caller.json else caller.texts(told, id=printable(one.escalation_id)))
