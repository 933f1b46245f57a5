"""phylactery runs: see what runs did, end one early, and say what became of an effect nobody could know about."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient
from phylactery_client.run_results import Run, ToolCallRecord

from phylactery_cli.calling import answer, failed, json_line, print_table
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.terminal import confirmed, moment, printable
from phylactery_cli.texts import Language, Texts, preferred_language

app = typer.Typer(help="Runs: list, show, cancel, doubts, resolve.", no_args_is_help=True)
T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")]
Page = Annotated[str, typer.Option(help="The page to go on with.")]
_TARGET = f"127.0.0.1:{DEFAULT_PORTS['agent']}"
_WIDTH = 1_000


class _Caller:
    """Calls the agent as the options say; a failure is one sentence on standard error and exit code 1."""

    def __init__(self, context: typer.Context) -> None:
        self.texts: Texts = context.obj["texts"]
        self._target, self._token = context.obj["target"], context.obj["token"]

    def ask(self, call: Callable[[PhylacteryClient], Awaitable[T]]) -> T:
        """Answers what the call does."""
        away = self.texts("service_away", target=self._target)
        return answer("runs", lambda: PhylacteryClient(self._target, token=self._token), call, away=away)

    def print(self, columns: str, rows: Iterable[Iterable[object]]) -> None:
        """Prints a table whose columns the texts name."""
        print_table(self.texts.columns(columns), rows)

    def more(self, token: str) -> None:
        """Says how to go on, where there is more."""
        if token:
            typer.echo(self.texts("runs_more", token=token))


@app.callback()
def options(
    context: typer.Context,
    *,
    target: Annotated[str, typer.Option(help="Where the agent is.")] = _TARGET,
    token_file: Annotated[Path | None, typer.Option(help="File with your token.")] = None,
    language: Annotated[Language, typer.Option("--language", help="Language of this command.")] = preferred_language(),
) -> None:
    """Runs: list, show, cancel, doubts, resolve."""
    try:
        token = read_secret(token_file, "--token-file")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    context.obj = {"target": target, "token": token, "texts": Texts(language)}


@app.command("list")
def list_(
    context: typer.Context,
    status: Annotated[str, typer.Option(help="QUEUED, RUNNING, SUSPENDED, DONE, FAILED or CANCELLED.")] = "",
    thread: Annotated[str, typer.Option(help="Those of one conversation.")] = "",
    page: Page = "",
    json_: Json = False,
) -> None:
    """Lists your runs, newest first."""
    caller = _Caller(context)
    found = caller.ask(lambda client: client.list_runs(status=status.upper(), thread_id=thread, page_token=page))
    if json_:
        for run in found.runs:
            typer.echo(json_line(run))
        return
    if not found.runs:
        typer.echo(caller.texts("runs_none"))
        return
    rows = ((run.id, run.status, run.reason, run.thread_id, moment(run.create_time)) for run in found.runs)
    caller.print("runs_columns", rows)
    caller.more(found.next_page_token)


@app.command()
def show(context: typer.Context, run_id: str, json_: Json = False) -> None:
    """Shows one run: its steps, and what its tool calls came to."""
    caller = _Caller(context)
    _show(caller, caller.ask(lambda client: client.get_run(run_id)), json_=json_)


@app.command()
def cancel(
    context: typer.Context,
    run_id: str,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask again.")] = False,
    json_: Json = False,
) -> None:
    """Ends one run for good; what it did stays done."""
    caller = _Caller(context)
    if not yes and not confirmed(caller.texts("runs_confirm", id=printable(run_id)), caller.texts, err=json_):
        typer.echo(caller.texts("unchanged"), err=json_)
        raise typer.Exit(1)
    _show(caller, caller.ask(lambda client: client.cancel_run(run_id)), json_=json_)


@app.command()
def doubts(context: typer.Context, page: Page = "", json_: Json = False) -> None:
    """Lists the effects nobody can say the end of, over all runs."""
    caller = _Caller(context)
    found = caller.ask(lambda client: client.list_tool_calls(state="in_doubt", page_token=page))
    if json_:
        for call in found.tool_calls:
            typer.echo(json_line(call))
        return
    if not found.tool_calls:
        typer.echo(caller.texts("runs_no_doubt"))
        return
    caller.print("runs_call_columns", (_cells(call) for call in found.tool_calls))
    caller.more(found.next_page_token)
    typer.echo(caller.texts("runs_doubt_hint"))


@app.command()
def resolve(
    context: typer.Context,
    run_id: str,
    tool_call_id: str,
    happened: Annotated[bool | None, typer.Option("--happened/--did-not-happen", help="What became of it.")] = None,
    json_: Json = False,
) -> None:
    """Says what became of an effect that is in doubt."""
    caller = _Caller(context)
    if happened is None:
        raise failed("runs", caller.texts("runs_which"))
    settled = caller.ask(lambda client: client.resolve_in_doubt(run_id, tool_call_id, happened=happened))
    if json_:
        typer.echo(json_line(settled))
        return
    typer.echo(
        caller.texts(
            "runs_settled", id=printable(settled.tool_call_id), state=settled.state, resolution=settled.resolution
        )
    )


def _show(caller: _Caller, run: Run, *, json_: bool) -> None:
    if json_:
        typer.echo(json_line(run))
        return
    caller.print("runs_columns", [(run.id, run.status, run.reason, run.thread_id, moment(run.create_time))])
    if run.plan_steps:
        rows = ((step.step_id, step.status, step.tries, step.description) for step in run.plan_steps)
        caller.print("runs_step_columns", rows)
    if run.tool_calls:
        caller.print("runs_call_columns", (_cells(call) for call in run.tool_calls))


def _cells(call: ToolCallRecord) -> tuple[object, ...]:
    state = call.state + (f" ({call.error_code})" if call.error_code else "")
    return call.run_id, call.tool_call_id, call.tool, state, call.thread_id, moment(call.create_time)
