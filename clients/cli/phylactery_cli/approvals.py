"""phylactery approvals: see what waits at RiskGate, and answer it there."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import RiskGateClient
from phylactery_client.results import Approval
from rich.table import Table
from rich.text import Text

from phylactery_cli.calling import Caller
from phylactery_cli.options import LANGUAGE, RISKGATE, Json, RiskGateTarget, Speak, TokenFile, Yes
from phylactery_cli.terminal import confirmed, one_line, plain_console
from phylactery_cli.texts import Language, Texts

app = typer.Typer(help="Approvals at RiskGate: list, show, approve, reject.", no_args_is_help=True)
_ALL = "ALL"
_ORIGINS = frozenset({"USER", "REGISTRY", "POINTED", "FOREIGN"})
"""Where an argument is from, where RiskGate was shown the task."""
Full = Annotated[bool, typer.Option("--full", help="Show long values whole.")]


def _caller(target: str, token_file: Path | None, language: Language) -> Caller[RiskGateClient]:
    def opened() -> RiskGateClient:
        return RiskGateClient(target, token=read_secret(token_file, "--token-file"))

    return Caller("approvals", target, Texts(language), opened)


def _line(approval: Approval) -> str:
    """Answers the approval as ASCII JSON; the code stays out, for output is kept and piped."""
    return json.dumps({k: v for k, v in asdict(approval).items() if k != "code"}, default=str)


def _show(approval: Approval, texts: Texts, *, full: bool = False) -> None:
    """Prints an approval; ``full`` says that long values were asked for whole."""
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
        flag = f"  ← {texts('approval_marked')}" if argument.altered and argument.marks != ("CUT",) else ""
        style = "bold" if argument.control else ""
        shown = Text(one_line(argument.display) + flag, style=style)
        if argument.origin in _ORIGINS:
            place = f": {one_line(argument.origin_place)}" if argument.origin_place else ""
            shown.append(f"  ← {texts('origin_' + argument.origin)}{place}", style="dim")
        table.add_row(Text(one_line(argument.path), style="dim"), shown)
    console = plain_console()
    console.print(table)
    left_out = sum(argument.characters_left_out for argument in approval.arguments)
    if left_out:
        text = texts(
            "approval_cut_in_full" if full else "approval_cut", count=f"{left_out:,}", id=one_line(approval.id)
        )
        console.print(Text(text, style="bold red"), soft_wrap=True)


def _cells(texts: Texts, approval: Approval) -> tuple[object, ...]:
    expires = f"{approval.expire_time:%H:%M:%S} UTC" if approval.expire_time else ""
    state, risk = texts.as_it_stands(approval.state), texts.as_it_stands(approval.risk)
    return approval.id, state, approval.tool, risk, approval.approval_class, approval.requester, expires


@app.command("list")
def list_(
    target: RiskGateTarget = RISKGATE,
    token_file: TokenFile = None,
    state: Annotated[
        str, typer.Option(help="PENDING, APPROVED, REDEEMED, REJECTED, EXPIRED, CANCELLED or ALL.")
    ] = "PENDING",
    json_: Json = False,
    language: Speak = LANGUAGE,
) -> None:
    """Lists approvals you may see, newest first."""
    caller = _caller(target, token_file, language)
    wanted = "" if state.upper() == _ALL else state.upper()
    page = caller.ask(lambda client: client.list_approvals(state=wanted, page_size=100))
    if json_:
        for approval in page.approvals:
            typer.echo(_line(approval))
        return
    if not page.approvals:
        typer.echo(caller.texts("approval_nothing" if wanted == "PENDING" else "approval_none"))
        return
    caller.print("approval_columns", (_cells(caller.texts, approval) for approval in page.approvals))


@app.command()
def show(
    approval_id: str,
    *,
    target: RiskGateTarget = RISKGATE,
    token_file: TokenFile = None,
    full: Full = False,
    json_: Json = False,
    language: Speak = LANGUAGE,
) -> None:
    """Shows one approval: what would run, with which arguments."""
    caller = _caller(target, token_file, language)
    approval = caller.ask(lambda client: client.get_approval(approval_id, full=full))
    if json_:
        typer.echo(_line(approval))
    else:
        _show(approval, caller.texts, full=full)


@app.command()
def approve(
    approval_id: str,
    *,
    target: RiskGateTarget = RISKGATE,
    token_file: TokenFile = None,
    full: Full = False,
    yes: Yes = False,
    language: Speak = LANGUAGE,
) -> None:
    """Shows one approval and approves exactly what was shown."""
    caller = _caller(target, token_file, language)
    texts = caller.texts

    async def answer(client: RiskGateClient) -> Approval | None:
        seen = await client.get_approval(approval_id, full=full)
        _show(seen, texts, full=full)
        if seen.state != "PENDING":
            raise ValueError(texts("approval_closed", id=seen.id, state=texts.as_it_stands(seen.state)))
        if not yes and not confirmed(texts("approval_confirm"), texts):
            return None
        return await client.approve(approval_id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id)

    _tell(caller.ask(answer), texts)


@app.command()
def reject(
    approval_id: str,
    target: RiskGateTarget = RISKGATE,
    token_file: TokenFile = None,
    reason: Annotated[str, typer.Option(help="Why, in your own words.")] = "",
    language: Speak = LANGUAGE,
) -> None:
    """Rejects one approval."""
    caller = _caller(target, token_file, language)
    _tell(caller.ask(lambda client: client.reject(approval_id, reason=reason)), caller.texts)


def _tell(approval: Approval | None, texts: Texts) -> None:
    if approval is None:
        typer.echo(texts("unchanged"))
        raise typer.Exit(1)
    typer.echo(f"{approval.id}: {texts.as_it_stands(approval.state)}")
