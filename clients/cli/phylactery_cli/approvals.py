"""phylactery approvals: see what waits at RiskGate, and answer it there."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import RiskGateClient
from phylactery_client.results import Approval
from rich.table import Table
from rich.text import Text

from phylactery_cli.calling import answer, failed
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.terminal import confirmed, one_line, plain_console
from phylactery_cli.texts import Language, Texts, preferred_language

app = typer.Typer(help="Approvals at RiskGate: list, show, approve, reject.", no_args_is_help=True)
T = TypeVar("T")

Target = Annotated[str, typer.Option(help="Where RiskGate is.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with your token.")]
Speak = Annotated[Language, typer.Option("--language", help="Language of this command.")]
Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")]
_TARGET = f"127.0.0.1:{DEFAULT_PORTS['riskgate']}"
_ALL = "ALL"
_WIDTH = 1_000
_LANGUAGE = preferred_language()
_ORIGINS = frozenset({"USER", "REGISTRY", "POINTED", "FOREIGN"})
"""Where an argument is from, where RiskGate was shown the task."""


def _ask(target: str, token_file: Path | None, texts: Texts, call: Callable[[RiskGateClient], Awaitable[T]]) -> T:
    try:
        token = read_secret(token_file, "--token-file")
    except ValueError as error:
        raise failed("approvals", str(error)) from None
    away = texts("service_away", target=target)
    return answer("approvals", lambda: RiskGateClient(target, token=token), call, away=away)


def _line(approval: Approval) -> str:
    """Answers the approval as ASCII JSON; the code stays out, for output is kept and piped."""
    return json.dumps({k: v for k, v in asdict(approval).items() if k != "code"}, default=str)


def _show(approval: Approval, texts: Texts) -> None:
    table = Table.grid(padding=(0, 2))
    values = (
        approval.id,
        texts.as_it_stands(approval.state) + (f" ({approval.closed_reason})" if approval.closed_reason else ""),
        approval.tool,
        texts.as_it_stands(approval.risk),
        approval.approval_class,
        approval.requester,
        approval.thread_id,
        f"{approval.expire_time:%Y-%m-%d %H:%M:%S} UTC" if approval.expire_time else "",
    )
    for name, value in zip(texts.columns("approval_fields"), values, strict=True):
        table.add_row(Text(name, style="dim"), Text(one_line(value)))
    for argument in approval.arguments:
        flag = f"  ← {texts('approval_marked')}" if argument.altered else ""
        style = "bold" if argument.control else ""
        shown = Text(one_line(argument.display) + flag, style=style)
        if argument.origin in _ORIGINS:
            place = f": {one_line(argument.origin_place)}" if argument.origin_place else ""
            shown.append(f"  ← {texts('origin_' + argument.origin)}{place}", style="dim")
        table.add_row(Text(one_line(argument.path), style="dim"), shown)
    plain_console().print(table)


@app.command("list")
def list_(
    target: Target = _TARGET,
    token_file: TokenFile = None,
    state: Annotated[
        str, typer.Option(help="PENDING, APPROVED, REDEEMED, REJECTED, EXPIRED, CANCELLED or ALL.")
    ] = "PENDING",
    json_: Json = False,
    language: Speak = _LANGUAGE,
) -> None:
    """Lists approvals you may see, newest first."""
    texts = Texts(language)
    wanted = "" if state.upper() == _ALL else state.upper()
    page = _ask(target, token_file, texts, lambda client: client.list_approvals(state=wanted, page_size=100))
    if json_:
        for approval in page.approvals:
            typer.echo(_line(approval))
        return
    if not page.approvals:
        typer.echo(texts("approval_nothing" if wanted == "PENDING" else "approval_none"))
        return
    table = Table(*texts.columns("approval_columns"), box=None)
    for approval in page.approvals:
        expires = f"{approval.expire_time:%H:%M:%S} UTC" if approval.expire_time else ""
        state, risk = texts.as_it_stands(approval.state), texts.as_it_stands(approval.risk)
        cells = (approval.id, state, approval.tool, risk, approval.approval_class, approval.requester)
        table.add_row(*(Text(one_line(cell)) for cell in cells), expires)
    plain_console(width=_WIDTH).print(table)  # an id stays whole in a narrow terminal, to be pasted


@app.command()
def show(
    approval_id: str,
    target: Target = _TARGET,
    token_file: TokenFile = None,
    json_: Json = False,
    language: Speak = _LANGUAGE,
) -> None:
    """Shows one approval: what would run, with which arguments."""
    texts = Texts(language)
    approval = _ask(target, token_file, texts, lambda client: client.get_approval(approval_id))
    if json_:
        typer.echo(_line(approval))
    else:
        _show(approval, texts)


@app.command()
def approve(
    approval_id: str,
    target: Target = _TARGET,
    token_file: TokenFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    language: Speak = _LANGUAGE,
) -> None:
    """Shows one approval and approves exactly what was shown."""
    texts = Texts(language)

    async def answer(client: RiskGateClient) -> Approval | None:
        seen = await client.get_approval(approval_id)
        _show(seen, texts)
        if seen.state != "PENDING":
            raise ValueError(texts("approval_closed", id=seen.id, state=texts.as_it_stands(seen.state)))
        if not yes and not confirmed(texts("approval_confirm"), texts):
            return None
        return await client.approve(approval_id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id)

    _tell(_ask(target, token_file, texts, answer), texts)


@app.command()
def reject(
    approval_id: str,
    target: Target = _TARGET,
    token_file: TokenFile = None,
    reason: Annotated[str, typer.Option(help="Why, in your own words.")] = "",
    language: Speak = _LANGUAGE,
) -> None:
    """Rejects one approval."""
    texts = Texts(language)
    _tell(_ask(target, token_file, texts, lambda client: client.reject(approval_id, reason=reason)), texts)


def _tell(approval: Approval | None, texts: Texts) -> None:
    if approval is None:
        typer.echo(texts("unchanged"))
        raise typer.Exit(1)
    typer.echo(f"{approval.id}: {texts.as_it_stands(approval.state)}")
