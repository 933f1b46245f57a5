"""phylactery threads: see your conversations, follow one, delete one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Annotated

import typer
from google.protobuf import json_format
from phylactery_client import PhylacteryClient
from phylactery_client.errors import UnavailableError
from phylactery_client.results import ChatPage, Event, Thread

from phylactery_cli.calling import json_line
from phylactery_cli.event_texts import EventTexts
from phylactery_cli.options import AgentCaller, Json, Page, Yes, agent_group
from phylactery_cli.render import EventPrinter
from phylactery_cli.terminal import confirmed, moment, plain_console, printable
from phylactery_cli.texts import Texts

app = agent_group("threads", "Conversations: list, show, watch, delete.")

_SHOWN_MESSAGES = 20
_AGAIN_SECONDS = 1.0


def _cells(texts: Texts, thread: Thread) -> tuple[object, ...]:
    state = EventTexts(texts.language).state(thread.last_run.status) if thread.last_run else ""
    times = moment(thread.create_time), moment(thread.update_time)
    return thread.id, state, thread.graph, thread.last_sequence, *times


@app.command("list")
def list_(
    context: typer.Context,
    page: Page = "",
    json_: Json = False,
) -> None:
    """Lists your conversations, the newest opened first."""
    caller: AgentCaller = context.obj
    found = caller.ask(lambda client: client.list_threads(page_token=page))
    cells = partial(_cells, caller.texts)
    if caller.print_list(found.threads, "threads_columns", cells, none="threads_none", json_=json_):
        caller.more(found.next_page_token)


@app.command()
def show(context: typer.Context, thread_id: str, json_: Json = False) -> None:
    """Shows where one conversation stands and what was said last."""
    caller: AgentCaller = context.obj

    async def both(client: PhylacteryClient) -> tuple[Thread, ChatPage]:
        return await client.get_thread(thread_id), await client.list_messages(thread_id, page_size=_SHOWN_MESSAGES)

    thread, said = caller.ask(both)
    if json_:
        typer.echo(json_line(thread))
        return
    caller.print("threads_columns", [_cells(caller.texts, thread)])
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
    caller: AgentCaller = context.obj
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
    yes: Yes = False,
) -> None:
    """Deletes one conversation and everything kept of it, for good."""
    caller: AgentCaller = context.obj
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
