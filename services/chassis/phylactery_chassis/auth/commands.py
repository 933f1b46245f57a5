"""The `tokens add|list|revoke` commands, shared by every program that has them. Only this module needs typer."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from phylactery_chassis.auth.identity import Role, TokensFileError
from phylactery_chassis.auth.tokens import Listed, add_token, list_tokens, parse_expiry, revoke_tokens, token_id
from phylactery_chassis.util.crypto import make_private

_ABOUT = "Identities for identity mode 'tokens': a token each, of which the file keeps a hash."
_JSON = "phylactery_chassis.tokens.json"
_STANDARD_OUTPUT = 1
_STILL = "a running service keeps the previously read tokens and logs the error every minute"

File = Annotated[Path, typer.Option(help="the tokens file")]
Command: TypeAlias = Callable[..., None]


def with_json(command: Command) -> Command:
    """Give a command that takes its context the option --json."""

    @wraps(command)
    def with_option(*, as_json: bool, context: typer.Context, **values: Any) -> None:
        context.meta[_JSON] = as_json
        command(context=context, **values)

    option = Annotated[bool, typer.Option("--json", help="one JSON object a line instead of text")]
    added = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=option)
    own = inspect.signature(command, eval_str=True).parameters.values()
    parameters = [*(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own), added]
    with_option.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_option.__annotations__ = {one.name: one.annotation for one in parameters}
    return with_option


def make_app(
    unusable: Callable[[str], typer.Exit],
    options: Callable[[Command], Command] = with_json,
    wants_json: Callable[[typer.Context], bool] = lambda context: bool(context.meta[_JSON]),
) -> typer.Typer:
    """Return the commands.

    ``unusable`` turns an error text into the exit of the program that hosts them; ``options`` gives a command the
    options of that program, and ``wants_json`` says whether they ask for JSON.
    """
    app = typer.Typer(no_args_is_help=True, help=_ABOUT)

    @contextmanager
    def usable(file: Path, what: str, more: str = "") -> Iterator[None]:
        try:
            yield
        except TokensFileError as error:
            raise unusable(f"{error}{more}") from None
        except OSError as error:
            raise unusable(f"{file} cannot be {what} ({error.strerror})") from None

    tell = partial(_tell, wants_json)

    @app.callback()
    def tokens() -> None:
        """Identities for identity mode 'tokens': a token each, of which the file keeps a hash."""

    @app.command("add")
    @options
    def add(
        context: typer.Context,
        *,
        file: Annotated[Path, typer.Option(help="the tokens file; made where it does not exist")],
        subject: Annotated[str, typer.Option(help="subject of the token")],
        tenant: Annotated[str, typer.Option(help="their tenant; '*' for a delegate of every tenant")],
        role: Annotated[list[Role], typer.Option(help="role of the subject; repeatable")],
        level: Annotated[
            str, typer.Option(help="guest, user, admin or system; whom a guest names is a guest")
        ] = "user",
        group: Annotated[list[str] | None, typer.Option(help="a group they are in; again for several")] = None,
        tool: Annotated[
            list[str] | None, typer.Option(help="a tool it may be used for, and no other; again for several")
        ] = None,
        display_name: Annotated[str, typer.Option(help="the name under which the people they answer see them")] = "",
        expires: Annotated[
            str, typer.Option(help="when it ends: 2027-01-31T12:00:00Z, or after 90d, 12h or 30m; empty is never")
        ] = "",
    ) -> None:
        """Add an identity and print its token, once. A running service knows it within a second or two."""
        try:
            ends = parse_expiry(expires)
        except ValueError as error:
            raise unusable(f"--expires: {error}") from None
        with usable(file, "written"):
            token = add_token(
                file,
                subject=subject,
                tenant=tenant,
                roles=role,
                level=level,
                groups=group or (),
                tools=tool or (),
                expires=ends,
                display_name=display_name,
            )
        make_private(_STANDARD_OUTPUT)  # a shell makes `> token` readable by everybody, and no service would read that
        tell(context, {"id": token_id(token), "subject": subject, "tenant": tenant, "token": token}, token)

    @app.command("list")
    @options
    def show(context: typer.Context, *, file: File) -> None:
        """List the identities: an id for `revoke`, who, and what each may do. No token can be told from it."""
        with usable(file, "read", f"; {_STILL}"):
            listed = list_tokens(file)
        for one in listed:
            tell(context, _facts(one), _line(one))

    @app.command("revoke")
    @options
    def revoke(
        context: typer.Context,
        *,
        file: File,
        token_id: Annotated[list[str] | None, typer.Argument(help="ids that `list` shows")] = None,
        subject: Annotated[str, typer.Option(help="every token of this subject")] = "",
        tenant: Annotated[str, typer.Option(help="every token of this tenant; with --subject, only theirs in it")] = "",
    ) -> None:
        """Remove tokens. A running service stops to accept them within a second or two, and ends their streams."""
        if bool(token_id) == bool(subject or tenant):
            raise unusable("name the tokens by their ids, or with --subject and --tenant; not both")
        with usable(file, "written"):
            for one in revoke_tokens(file, ids=token_id or (), subject=subject, tenant=tenant):
                tell(context, _facts(one) | {"revoked": True}, f"revoked {_line(one)}")

    return app


def _tell(
    wants_json: Callable[[typer.Context], bool], context: typer.Context, facts: dict[str, object], line: str
) -> None:
    typer.echo(json.dumps(facts, ensure_ascii=False) if wants_json(context) else line)


def _facts(one: Listed) -> dict[str, object]:
    entry = one.entry
    return {
        "id": one.id,
        "subject": entry.subject,
        "tenant": entry.tenant,
        "roles": [str(role) for role in entry.roles],
        "level": entry.level,
        "groups": entry.groups,
        "tools": entry.tools or [],
        "expires": _time(entry.expires) if entry.expires else None,
        "expired": one.expired,
    }


def _line(one: Listed) -> str:
    entry = one.entry
    parts = [one.id, f"{entry.subject}@{entry.tenant}", ",".join(entry.roles), entry.level]
    parts += [f"groups={','.join(entry.groups)}"] if entry.groups else []
    parts += [f"tools={','.join(entry.tools)}"] if entry.tools else []
    parts += [f"{'expired' if one.expired else 'expires'}={_time(entry.expires)}"] if entry.expires else []
    return "  ".join(parts)


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
