"""phylactery tokens: the identities of an installation with tokens."""

from __future__ import annotations

import typer
from phylactery_chassis.auth.commands import make_app

from phylactery_cli.options import Options, shared


def _unusable(message: str) -> typer.Exit:
    """Say why a command could not be carried out; raise what it answers."""
    typer.echo(f"phylactery: {message}", err=True)
    return typer.Exit(1)


app = make_app(_unusable, shared(asks=False), lambda context: Options.of(context).json)
