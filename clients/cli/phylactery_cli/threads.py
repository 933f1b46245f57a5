"""phylactery threads: see your conversations, follow one, delete one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from google.protobuf import json_format
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient
from phylactery_client.errors import UnavailableError
from phylactery_client.results import ChatPage, Event, Thread

from phylactery_cli.calling import answer, json_line, print_table
from phylactery_cli.event_texts import EventTexts
from phylactery_cli.render import EventPrinter
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.terminal import confirmed, moment, plain_console, printable
from phylactery_cli.texts import Language, Texts, preferred_language

app = typer.Typer(help="Conversations: list, show, watch, delete.", no_args_is_help=True)
T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")]
_TARGET = f"127.0.0.1:{DEFAULT_PORTS['agent']}"
_SHOWN_MESSAGES = 20
_AGAIN_SECONDS = 1.0


class _Caller:
    """Calls the agent as the options say; a failure is one sentence on standard error and exit code 1."""

    def __init__(self, context: typer.Context) -> None:
        self.texts = Texts(context.obj["language"])
        self.words = EventTexts(context.obj["language"])
        self._target, self._token = context.obj["target"], context.obj["token"]

    def ask(self, call: Callable[[PhylacteryClient], Awaitable[T]]) -> T:
        """Answers what the call does."""
        away = self.texts("service_away", target=self._target)
        return answer("threads", lambda: PhylacteryClient(self._target, token=self._token), call, away=away)

    def print(self, *threads: Thread) -> None:
        """Prints threads as a table."""
        rows = (
            (
                thread.id,
                self.words.state(thread.last_run.status) if thread.last_run else "",
                thread.graph,
                thread.last_sequence,
                moment(thread.create_time),
                moment(thread.update_time),
            )
            for thread in threads
        )
        print_table(self.texts.columns("threads_columns"), rows)


@app.callback()
def options(
    context: typer.Context,
    *,
    target: Annotated[str, typer.Option(help="Where the agent is.")] = _TARGET,
    token_file: Annotated[Path | None, typer.Option(help="File with your token.")] = None,
    language: Annotated[Language, typer.Option("--language", help="Language of this command.")] = preferred_language(),
) -> None:
    """Conversations: list, show, watch, delete."""
    try:
        token = read_secret(token_file, "--token-file")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    context.obj = {"target": target, "token": token, "language": language}


@app.command("list")
def list_(
    context: typer.Context,
    page: Annotated[str, typer.Option(help="The page to go on with.")] = "",
    json_: Json = False,
) -> None:
    """Lists your conversations, the newest opened first."""
    caller = _Caller(context)
    found = caller.ask(lambda client: client.list_threads(page_token=page))
    if json_:
        for thread in found.threads:
            typer.echo(json_line(thread))
        return
    if not found.threads:
        typer.echo(caller.texts("threads_none"))
        return
    caller.print(*found.threads)
    if found.next_page_token:
        typer.echo(caller.texts("runs_more", token=found.next_page_token))


@app.command()
def show(context: typer.Context, thread_id: str, json_: Json = False) -> None:
    """Shows where one conversation stands and what was said last."""
    caller = _Caller(context)

    async def both(client: PhylacteryClient) -> tuple[Thread, ChatPage]:
        return await client.get_thread(thread_id), await client.list_messages(thread_id, page_size=_SHOWN_MESSAGES)

    thread, said = caller.ask(both)
    if json_:
        typer.echo(json_line(thread))
        return
    caller.print(thread)
    for message in reversed(said.messages):
        who = caller.texts("you" if message.role == "user" else "agent")
        typer.echo(f"{who} › {printable(message.text)}")


@app.command()
def watch(
    context: typer.Context,
    thread_id: str,
    after: Annotated[int, typer.Option(min=0, help="The last event you saw; 0 begins with the first kept.")] = 0,
    follow: Annotated[bool, typer.Option(help="Go on as events come; without it, end with the last there is.")] = True,
    json_: Json = False,
) -> None:
    """Shows the events of one conversation, and each that comes, until Ctrl-C."""
    caller = _Caller(context)
    printer = EventPrinter(plain_console(), caller.texts)

    def show_event(event: Event) -> None:
        if json_:
            typer.echo(json.dumps(json_format.MessageToDict(event.raw)))
        else:
            printer.show(event.raw)

    with contextlib.suppress(KeyboardInterrupt):
        caller.ask(lambda client: _watch(client, thread_id, after, show_event, follow=follow))


@app.command()
def delete(
    context: typer.Context,
    thread_id: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
) -> None:
    """Deletes one conversation and everything kept of it, for good."""
    caller = _Caller(context)
    if not yes and not confirmed(caller.texts("threads_confirm", id=printable(thread_id)), caller.texts):
        typer.echo(caller.texts("unchanged"))
        raise typer.Exit(1)
    caller.ask(lambda client: client.delete_thread(thread_id, timeout=60))
    typer.echo(caller.texts("threads_deleted", id=printable(thread_id)))


async def _watch(
    client: PhylacteryClient, thread_id: str, after: int, show_event: Callable[[Event], None], *, follow: bool
) -> None:
    """Shows events from the one after a sequence; where the agent goes away, it goes on there once it is back."""
    thread = await client.get_thread(thread_id)
    sequence = after or thread.first_sequence - 1
    reached = False
    while follow or sequence < thread.last_sequence:
        try:
            watching = client.watch_thread(thread_id, after_sequence=sequence, timeout=math.inf)
            async with aclosing(watching) as events:
                async for event in events:
                    show_event(event)
                    sequence, reached = event.sequence, True
                    if not follow and sequence >= thread.last_sequence:
                        return
        except UnavailableError:
            if not reached:
                raise
        await asyncio.sleep(_AGAIN_SECONDS)
