"""phylactery threads: see your conversations, follow one, delete one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from phylactery_client import PhylacteryClient
from phylactery_client.results import ChatPage, Event, Thread

from phylactery_cli.calling import json_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import AgentCaller, Page, Yes, agent_caller, group, shared
from phylactery_cli.render.render import EventPrinter
from phylactery_cli.terminal import confirmed, moment, plain_console, printable

app = group("Conversations: list, show, watch, delete.")

_SHOWN_MESSAGES = 20


def _caller(context: typer.Context) -> AgentCaller:
    return agent_caller(context, "threads")


def _cells(texts: Texts, thread: Thread) -> tuple[object, ...]:
    state = texts.event_state(thread.last_run.status) if thread.last_run else ""
    times = moment(thread.create_time), moment(thread.update_time)
    return thread.id, state, thread.graph, thread.last_sequence, *times


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    page: Page = "",
) -> None:
    """List your conversations, the newest opened first."""
    caller = _caller(context)

    async def threads(client: PhylacteryClient, token: str) -> tuple[Sequence[Thread], str]:
        found = await client.list_threads(page_token=token)
        return found.threads, found.next_page_token

    cells = partial(_cells, caller.texts)
    caller.print_pages(threads, "threads_columns", cells, none="threads_none", token=page)


@app.command()
@shared()
def show(context: typer.Context, thread_id: str) -> None:
    """Show where one conversation stands and what was said last."""
    caller = _caller(context)

    async def both(client: PhylacteryClient) -> tuple[Thread, ChatPage]:
        return await client.get_thread(thread_id), await client.list_messages(thread_id, page_size=_SHOWN_MESSAGES)

    thread, said = caller.ask(both)
    if caller.json:
        typer.echo(json_line({**asdict(thread), "messages": [asdict(message) for message in said.messages]}))
        return
    caller.print("threads_columns", [_cells(caller.texts, thread)])
    for message in reversed(said.messages):
        who = caller.texts("you" if message.role == "user" else "agent")
        typer.echo(f"{who} › {printable(message.text)}")


@app.command()
@shared()
def watch(
    context: typer.Context,
    thread_id: str,
    after: Annotated[int, typer.Option(min=0, help="The last event you saw; 0 begins with the first kept.")] = 0,
    follow: Annotated[bool, typer.Option(help="Go on as events come; without it, end with the last there is.")] = True,
) -> None:
    """Show the events of one conversation, and each that comes, until Ctrl-C."""
    caller = _caller(context)
    printer = EventPrinter(plain_console(), caller.texts, json=caller.json)

    def show_event(event: Event) -> None:
        printer.show(event.raw)

    with contextlib.suppress(KeyboardInterrupt):
        caller.ask(lambda client: _watch(client, thread_id, after, show_event, follow=follow))


@app.command()
@shared()
def delete(
    context: typer.Context,
    thread_id: str,
    yes: Yes = False,
) -> None:
    """Delete one conversation and everything kept of it, for good."""
    caller = _caller(context)
    asked = caller.texts("threads_confirm", id=printable(thread_id))
    if not yes and not confirmed(asked, caller.texts, err=caller.json):
        typer.echo(caller.texts("unchanged"), err=caller.json)
        raise typer.Exit(1)
    caller.ask(lambda client: client.delete_thread(thread_id))
    caller.done(caller.texts("threads_deleted", id=printable(thread_id)), deleted=thread_id)


async def _watch(
    client: PhylacteryClient, thread_id: str, after: int, show_event: Callable[[Event], None], *, follow: bool
) -> None:
    """Show events from the one after a sequence; where the agent goes away, it goes on there once it is back."""
    thread = await client.get_thread(thread_id)
    sequence = after or thread.first_sequence - 1
    if not follow and sequence >= thread.last_sequence:
        return
    async with aclosing(client.watch_thread(thread_id, after_sequence=sequence)) as events:
        async for event in events:
            show_event(event)
            if not follow and event.sequence >= thread.last_sequence:
                return
