"""How the commands call a service: once, with one sentence on standard error and exit code 1 where that fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, is_dataclass
from typing import Any, TypeVar

import typer
from phylactery_client import PhylacteryError
from phylactery_client.errors import UnavailableError
from rich.table import Table
from rich.text import Text

from phylactery_cli.terminal import one_line, plain_console, printable

T = TypeVar("T")
C = TypeVar("C")

_WIDTH = 1_000


def failed(command: str, why: str) -> typer.Exit:
    """Says why a command failed, and answers the exit."""
    typer.echo(f"{command}: {printable(why)}", err=True)
    return typer.Exit(1)


def answer(
    command: str,
    client: Callable[[], AbstractAsyncContextManager[C]],
    call: Callable[[C], Awaitable[T]],
    *,
    away: str,
    told: Callable[[PhylacteryError], str] = str,
) -> T:
    """Answers what a call of a service does; ``away`` is said where nothing answers, ``told`` words what it refuses.

    Raises typer.Exit after a failure was said.
    """

    async def within() -> T:
        async with client() as opened:
            return await call(opened)

    try:
        return asyncio.run(within())
    except UnavailableError as error:
        raise failed(command, error.message if error.reason else away) from None
    except PhylacteryError as error:
        raise failed(command, told(error)) from None
    except ValueError as error:
        raise failed(command, str(error)) from None


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Prints a table; an id stays whole in a narrow terminal, to be pasted."""
    table = Table(*columns, box=None)
    for row in rows:
        table.add_row(*(Text(one_line(str(cell))) for cell in row))
    plain_console(width=_WIDTH).print(table)


def json_line(value: Any) -> str:
    """Answers a result as ASCII JSON in one line."""
    return json.dumps(asdict(value) if is_dataclass(value) and not isinstance(value, type) else value, default=str)
