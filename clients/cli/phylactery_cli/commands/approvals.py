"""phylactery approvals: see what waits at RiskGate, and answer it there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from phylactery_client import RiskGateClient
from phylactery_client.results import Approval
from rich.table import Table
from rich.text import Text

from phylactery_cli.calling import Caller, json_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, Page, Yes, group, shared
from phylactery_cli.terminal import confirmed, one_line, plain_console

app = group("Approvals at RiskGate: list, show, approve, reject.")
_ALL = "ALL"
_ORIGINS = frozenset({"USER", "REGISTRY", "POINTED", "FOREIGN"})
"""Where an argument is from, where RiskGate was shown the task."""
Full = Annotated[bool, typer.Option("--full", help="Show long values whole.")]


def _caller(context: typer.Context) -> Caller[RiskGateClient]:
    options = Options.of(context)
    token, target = options.token(), options.target_of("riskgate")
    return Caller(
        "approvals",
        target,
        options.texts,
        lambda: RiskGateClient(target, token=token, retry_seconds=0),
        json=options.json,
        line=_line,
    )


def _line(approval: Approval) -> str:
    """Return the approval as ASCII JSON; the code stays out, for output is kept and piped."""
    return json_line({k: v for k, v in asdict(approval).items() if k != "code"})


def _show(approval: Approval, texts: Texts, *, full: bool = False) -> None:
    """Print an approval; ``full`` says that long values were asked for whole."""
    table = Table.grid(padding=(0, 2))
    values = (
        approval.id,
        texts.approval_word(approval.state) + (f" ({approval.closed_reason})" if approval.closed_reason else ""),
        approval.tool,
        texts.approval_word(approval.risk),
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
        count, hint = f"{left_out:,}", one_line(approval.id)
        text = texts("approval_cut_in_full", count=count) if full else texts("approval_cut", count=count, id=hint)
        console.print(Text(text, style="bold red"), soft_wrap=True)


def _cells(texts: Texts, approval: Approval) -> tuple[object, ...]:
    expires = f"{approval.expire_time:%H:%M:%S} UTC" if approval.expire_time else ""
    state, risk = texts.approval_word(approval.state), texts.approval_word(approval.risk)
    return approval.id, state, approval.tool, risk, approval.approval_class, approval.requester, expires


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    state: Annotated[
        str, typer.Option(help="PENDING, APPROVED, REDEEMED, REJECTED, EXPIRED, CANCELLED or ALL.")
    ] = "PENDING",
    page: Page = "",
) -> None:
    """List approvals you may see, newest first."""
    caller = _caller(context)
    wanted = "" if state.upper() == _ALL else state.upper()

    async def approvals(client: RiskGateClient, token: str) -> tuple[Sequence[Approval], str]:
        found = await client.list_approvals(state=wanted, page_size=100, page_token=token)
        return found.approvals, found.next_page_token

    none = "approval_nothing" if wanted == "PENDING" else "approval_none"
    caller.print_pages(approvals, "approval_columns", partial(_cells, caller.texts), none=none, token=page)


@app.command()
@shared()
def show(
    context: typer.Context,
    approval_id: str,
    *,
    full: Full = False,
) -> None:
    """Show one approval: what would run, with which arguments."""
    caller = _caller(context)
    approval = caller.ask(lambda client: client.get_approval(approval_id, full=full))
    if caller.json:
        typer.echo(_line(approval))
    else:
        _show(approval, caller.texts, full=full)


@app.command()
@shared()
def approve(
    context: typer.Context,
    approval_id: str,
    *,
    full: Full = False,
    yes: Yes = False,
) -> None:
    """Show one approval and approve exactly what was shown."""
    caller = _caller(context)
    texts = caller.texts
    if caller.json and not yes:
        raise caller.fail(texts("approval_json_yes"))

    async def answer(client: RiskGateClient) -> Approval | None:
        seen = await client.get_approval(approval_id, full=full)
        if not caller.json:
            _show(seen, texts, full=full)
        if seen.state != "PENDING":
            raise ValueError(texts("approval_closed", id=seen.id, state=texts.approval_word(seen.state)))
        if not yes and not confirmed(texts("approval_confirm"), texts):
            return None
        return await client.approve(approval_id, args_hash=seen.args_hash, code=seen.code, thread_id=seen.thread_id)

    _tell(caller.ask(answer), caller)


@app.command()
@shared()
def reject(
    context: typer.Context,
    approval_id: str,
    reason: Annotated[str, typer.Option(help="Why, in your own words.")] = "",
) -> None:
    """Reject one approval."""
    caller = _caller(context)
    _tell(caller.ask(lambda client: client.reject(approval_id, reason=reason)), caller)


def _tell(approval: Approval | None, caller: Caller[RiskGateClient]) -> None:
    if approval is None:
        typer.echo(caller.texts("unchanged"))
        raise typer.Exit(1)
    said = f"{approval.id}: {caller.texts.approval_word(approval.state)}"
    typer.echo(_line(approval) if caller.json else said)
