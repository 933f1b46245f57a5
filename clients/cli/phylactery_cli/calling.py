"""How the commands call a service: once, with one sentence on standard error and exit code 1 where that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

import typer
from google.protobuf import json_format
from phylactery.agent.v1 import event_pb2
from phylactery_client import PhylacteryError
from phylactery_client.errors import UnavailableError
from rich.table import Table
from rich.text import Text

from phylactery_cli.i18n.texts import Texts
from phylactery_cli.terminal import one_line, plain_console, printable

T = TypeVar("T")
C = TypeVar("C")
V = TypeVar("V")

_WIDTH = 1_000


@dataclass(frozen=True, slots=True)
class Caller(Generic[C]):
    """Calls one service for a command, and prints what it answers.

    ``open`` opens a client, which it may refuse with ValueError; ``told`` words what the service refuses.
    """

    command: str
    target: str
    texts: Texts
    open: Callable[[], AbstractAsyncContextManager[C]]
    told: Callable[[PhylacteryError], str] = str
    json: bool = False
    """Whether it prints for machines: one JSON object a line."""
    line: Callable[[Any], str] = field(default_factory=lambda: json_line)
    """How a result reads for machines."""

    def ask(self, call: Callable[[C], Awaitable[T]], *, told: Callable[[PhylacteryError], str] | None = None) -> T:
        """Return what a call of the service does; ``told`` words what it refuses, for this call.

        Raise typer.Exit after a failure was said.
        """

        async def within() -> T:
            async with self.open() as client:
                return await call(client)

        try:
            return asyncio.run(within())
        except UnavailableError as error:
            away = self.texts("service_away", target=self.target)
            raise self.fail(error.message if error.reason else away) from None
        except PhylacteryError as error:
            raise self.fail((told or self.told)(error)) from None
        except ValueError as error:
            raise self.fail(str(error)) from None

    def fail(self, why: str) -> typer.Exit:
        """Say why the command failed, and return the exit."""
        return failed(self.command, why)

    def print(self, columns: str, rows: Iterable[Iterable[object]]) -> None:
        """Print a table whose columns the texts name."""
        print_table(self.texts.columns(columns), rows)

    def print_list(
        self, found: Sequence[V], columns: str, cells: Callable[[V], Iterable[object]], *, none: str
    ) -> bool:
        """Print what was found, for machines a JSON object a line; return whether it printed a table.

        ``none`` names the text that is said where nothing was found; an empty one says nothing.
        """
        if self.json:
            for value in found:
                typer.echo(self.line(value))
            return False
        if not found:
            if none:
                typer.echo(self.texts(none))
            return False
        self.print(columns, map(cells, found))
        return True

    def print_pages(
        self,
        page: Callable[[C, str], Awaitable[tuple[Sequence[V], str]]],
        columns: str,
        cells: Callable[[V], Iterable[object]],
        *,
        none: str,
        token: str,
    ) -> bool:
        """Print a page of what there is, and say how to go on; for machines that page and all after it.

        ``page`` answers the page of a token and the token of the next. Return whether it printed a table.
        """

        async def all_of(client: C) -> None:
            following = token
            while True:
                found, following = await page(client, following)
                self.print_list(found, columns, cells, none="")
                if not following:
                    return

        if self.json:
            self.ask(all_of)
            return False
        found, following = self.ask(lambda client: page(client, token))
        table = self.print_list(found, columns, cells, none=none)
        if following:
            typer.echo(self.texts("runs_more", token=following), err=True)
        return table

    def done(self, text: str, **facts: object) -> None:
        """Say what was done: for machines the facts, as one JSON object."""
        typer.echo(json_line(facts) if self.json else text)


def failed(command: str, why: str) -> typer.Exit:
    """Say why a command failed, and return the exit."""
    typer.echo(f"{command}: {printable(why)}", err=True)
    return typer.Exit(1)


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; an id stays whole in a narrow terminal, to be pasted."""
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    plain_console(width=_WIDTH).print(table)


def json_line(value: Any) -> str:
    """Return a result as ASCII JSON in one line; times are as RFC 3339 has them."""
    plain = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return json.dumps(plain, default=_plain)


def event_line(raw: event_pb2.Event) -> str:
    """Return an event of a thread as ASCII JSON in one line, its fields named as everywhere."""
    return json.dumps(json_format.MessageToDict(raw, preserving_proto_field_name=True))


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g}s"
    return str(value)
