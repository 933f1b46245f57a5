"""`riskgate tokens`: who may call, for RISKGATE_IDENTITY_MODE tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.identity import Role, TokensFileError
from phylactery_chassis.tokens import add_token

from phylactery_riskgate.cli.common import unusable

app = typer.Typer(no_args_is_help=True, help="Identities: a token each, of which the file keeps a hash.")


@app.callback()
def tokens() -> None:
    """Identities: a token each, of which the file keeps a hash."""


@app.command("add")
def tokens_add(
    file: Annotated[Path, typer.Option(help="the tokens file; made where it does not exist")],
    subject: Annotated[str, typer.Option(help="who the token stands for")],
    tenant: Annotated[str, typer.Option(help="their tenant; '*' for a delegate of every tenant")],
    role: Annotated[list[Role], typer.Option(help="what they may do; again for several")],
    level: Annotated[str, typer.Option(help="user, admin or system")] = "user",
) -> None:
    """Adds an identity and prints its token, once. A running service reads the file at its next start."""
    try:
        typer.echo(add_token(file, subject=subject, tenant=tenant, roles=role, level=level))
    except TokensFileError as error:
        raise unusable(str(error)) from None
    except OSError as error:
        raise unusable(f"{file}: cannot be written ({error.strerror})") from None
