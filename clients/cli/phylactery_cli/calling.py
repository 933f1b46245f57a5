"""How the commands call a service: once, with one sentence on standard error and exit code 1 where that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, is_dataclass
from typing import Any, Generic, TypeVar

import typer
from phylactery_client import PhylacteryError
from phylactery_client.errors import UnavailableError
from rich.table import Table
from rich.text import Text

from phylactery_cli.terminal import one_line, plain_console, printable
from phylactery_cli.texts import Texts

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

    def ask(self, call: Callable[[C], Awaitable[T]], *, told: Callable[[PhylacteryError], str] | None = None) -> T:
        """Answers what a call of the service does; ``told`` words what it refuses, for this call.

        Raises typer.Exit after a failure was said.
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
        """Says why the command failed, and answers the exit."""
        return failed(self.command, why)

    def print(self, columns: str, rows: Iterable[Iterable[object]]) -> None:
        """Prints a table whose columns the texts name."""
        print_table(self.texts.columns(columns), rows)

    def print_list(
        self, found: Sequence[V], columns: str, cells: Callable[[V], Iterable[object]], *, none: str, json_: bool
    ) -> bool:
        """Prints what was found, for machines a JSON object a line; answers whether it printed a table.

        ``none`` names the text that is said where nothing was found; an empty one leaves an empty table.
        """
        if json_:
            for value in found:
                typer.echo(json_line(value))
            return False
        if none and not found:
            typer.echo(self.texts(none))
            return False
        self.print(columns, map(cells, found))
        return True

    def more(self, token: str) -> None:
        """Says how to go on, where there is more."""
        if token:
            typer.echo(self.texts("runs_more", token=token))


def failed(command: str, why: str) -> typer.Exit:
    """Says why a command failed, and answers the exit."""
    typer.echo(f"{command}: {printable(why)}", err=True)
    return typer.Exit(1)


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table; an id stays whole in a narrow terminal, to be pasted."""
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    plain_console(width=_WIDTH).print(table)


def json_line(value: Any) -> str:
    """Answers a result as ASCII JSON in one line."""
    return json.dumps(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value, default=str)
