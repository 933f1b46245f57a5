"""phylactery runs: list, show, cancel and retry runs, and resolve effects with unknown outcome."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from google.protobuf import json_format
from phylactery_client import PhylacteryClient, PhylacteryError
from phylactery_client.errors import NotFoundError, OutOfRangeError
from phylactery_client.results import Event
from phylactery_client.run_results import Run, RunBudget, RunStep, ToolCallRecord

from phylactery_cli.calling import json_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import AgentCaller, Page, Yes, agent_caller, group, shared
from phylactery_cli.render.render import detail
from phylactery_cli.terminal import confirmed, moment, printable

app = group("Runs: list, show, cancel, retry, unknown, resolve.")

_STEPS_AT_ONCE = 500
_WHY_NOT = frozenset({"NOT_FAILED", "RETRIED", "WORDS_GONE", "NO_TOOLS", "THREAD_BUSY"})


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    status: Annotated[str, typer.Option(help="QUEUED, RUNNING, SUSPENDED, DONE, FAILED, DEAD or CANCELLED.")] = "",
    thread: Annotated[str, typer.Option(help="Those of one conversation.")] = "",
    page: Page = "",
) -> None:
    """List your runs, newest first."""
    caller = _caller(context)

    async def runs(client: PhylacteryClient, token: str) -> tuple[Sequence[Run], str]:
        found = await client.list_runs(status=status.upper(), thread_id=thread, page_token=token)
        return await _whole(client, found.runs) if caller.json else found.runs, found.next_page_token

    caller.print_pages(runs, "runs_columns", partial(_run_cells, caller.texts), none="runs_none", token=page)


@app.command()
@shared()
def show(context: typer.Context, run_id: str) -> None:
    """Show one run: its plan, its tool calls, the nodes it executed, its events, and what of its budgets it used."""
    caller = _caller(context)
    run, nodes, events = caller.ask(lambda client: _everything(client, run_id))
    if caller.json:
        told = [_event_json(event) for event in events]
        typer.echo(json_line({**asdict(run), "run_steps": [asdict(node) for node in nodes], "events": told}))
        return
    _show(caller, run)
    if run.retry_of:
        typer.echo(caller.texts("runs_retry_of", id=printable(run.retry_of)))
    if nodes:
        caller.print("runs_node_columns", (_node_cells(node) for node in nodes))
    if rows := [(event.sequence, moment(event.create_time), detail(event.raw, caller.texts)) for event in events]:
        caller.print("runs_event_columns", (row for row in rows if row[2]))
    if run.budget is not None:
        caller.print("runs_budget_columns", _budget_rows(caller.texts, run.budget))


@app.command()
@shared()
def retry(
    context: typer.Context,
    run_id: str,
    acknowledge_effects: Annotated[
        bool, typer.Option("--acknowledge-effects", help="What it did may happen a second time.")
    ] = False,
    request_id: Annotated[str, typer.Option(help="The same one again begins nothing twice.")] = "",
) -> None:
    """Begin a run that failed once more, with the same words."""
    caller = _caller(context)

    def told(error: PhylacteryError) -> str:
        why = error.metadata.get("why", "") if error.reason == "RUN_NOT_RETRYABLE" else ""
        named = {"id": printable(run_id), "calls": printable(error.metadata.get("tool_call_ids", ""))}
        if why == "EFFECTS":
            return caller.texts("runs_retry_effects", **named)
        return caller.texts(f"runs_retry_{why}", id=named["id"]) if why in _WHY_NOT else str(error)

    begun = caller.ask(
        lambda client: client.retry_run(run_id, acknowledge_effects=acknowledge_effects, request_id=request_id or None),
        told=told,
    )
    if caller.json:
        typer.echo(json_line(begun))
        return
    _show(caller, begun.run)
    if begun.effects:
        typer.echo(caller.texts("runs_effects"))
        caller.print("runs_call_columns", (_cells(caller.texts, call) for call in begun.effects))


@app.command()
@shared()
def cancel(
    context: typer.Context,
    run_id: str,
    yes: Yes = False,
) -> None:
    """End one run for good; what it did stays done."""
    caller = _caller(context)
    if not yes and not confirmed(caller.texts("runs_confirm", id=printable(run_id)), caller.texts, err=caller.json):
        typer.echo(caller.texts("unchanged"), err=caller.json)
        raise typer.Exit(1)
    _show(caller, caller.ask(lambda client: client.cancel_run(run_id)))


@app.command()
@app.command("doubts", hidden=True)  # the name before 0.2
@shared()
def unknown(context: typer.Context, page: Page = "") -> None:
    """List the effects with unknown outcome, over all runs."""
    caller = _caller(context)

    async def calls(client: PhylacteryClient, token: str) -> tuple[Sequence[ToolCallRecord], str]:
        found = await client.list_tool_calls(state="in_doubt", page_token=token)
        return found.tool_calls, found.next_page_token

    cells = partial(_cells, caller.texts)
    if caller.print_pages(calls, "runs_call_columns", cells, none="runs_no_doubt", token=page):
        typer.echo(caller.texts("runs_doubt_hint"))


@app.command()
@shared()
def resolve(
    context: typer.Context,
    run_id: str,
    tool_call_id: str,
    happened: Annotated[bool | None, typer.Option("--happened/--did-not-happen", help="What became of it.")] = None,
) -> None:
    """Say what became of an effect that is in doubt."""
    caller = _caller(context)
    if happened is None:
        raise caller.fail(caller.texts("runs_which"))
    settled = caller.ask(lambda client: client.resolve_in_doubt(run_id, tool_call_id, happened=happened))
    if caller.json:
        typer.echo(json_line(settled))
        return
    typer.echo(
        caller.texts(
            "runs_settled",
            id=printable(settled.tool_call_id),
            state=caller.texts.run_word(settled.state),
            resolution=caller.texts.run_word(settled.resolution),
        )
    )


def _show(caller: AgentCaller, run: Run) -> None:
    if caller.json:
        typer.echo(json_line(run))
        return
    caller.print("runs_columns", [_run_cells(caller.texts, run)])
    if run.plan_steps:
        rows = (
            (step.step_id, caller.texts.run_word(step.status), step.tries, step.description) for step in run.plan_steps
        )
        caller.print("runs_step_columns", rows)
    if run.tool_calls:
        caller.print("runs_call_columns", (_cells(caller.texts, call) for call in run.tool_calls))


def _caller(context: typer.Context) -> AgentCaller:
    return agent_caller(context, "runs")


async def _whole(client: PhylacteryClient, runs: Sequence[Run]) -> list[Run]:
    """Return runs of a list with their tool calls and plans, without those that were deleted meanwhile."""
    found = []
    for run in runs:
        with contextlib.suppress(NotFoundError):
            found.append(await client.get_run(run.id))
    return found


def _run_cells(texts: Texts, run: Run) -> tuple[object, ...]:
    return run.id, texts.run_word(run.status), run.reason, run.thread_id, moment(run.create_time)


def _cells(texts: Texts, call: ToolCallRecord) -> tuple[object, ...]:
    state = texts.run_word(call.state) + (f" ({call.error_code})" if call.error_code else "")
    return call.run_id, call.tool_call_id, call.tool, state, call.thread_id, moment(call.create_time)


def _node_cells(node: RunStep) -> tuple[object, ...]:
    took = f"{node.duration_us / 1_000:.1f}"
    return node.superstep, node.node, took, " ".join(node.next_nodes), node.tool_call_id, node.finish_reason


def _budget_rows(texts: Texts, budget: RunBudget) -> Iterator[tuple[object, ...]]:
    """Yield each budget that is used or bounded."""
    uses = (
        (budget.supersteps, 1),
        (budget.tool_calls, 1),
        (budget.model_calls, 1),
        (budget.tokens, 1),
        (budget.cost_micros, 1),
        (budget.active_us, 1_000_000),
    )
    for name, (use, unit) in zip(texts.columns("runs_budgets"), uses, strict=True):
        if use is not None and (use.used or use.limit):
            used = use.used if unit == 1 else round(use.used / unit, 1)  # only seconds come in parts
            yield name, used, use.limit // unit or texts("runs_no_limit")


async def _everything(client: PhylacteryClient, run_id: str) -> tuple[Run, list[RunStep], list[Event]]:
    """Return a run, every node of it that is kept, and its events."""
    run = await client.get_run(run_id)
    nodes: list[RunStep] = []
    token = ""
    while True:
        page = await client.list_run_steps(run_id, page_size=_STEPS_AT_ONCE, page_token=token)
        nodes += page.run_steps
        token = page.next_page_token
        if not token:
            return run, nodes, await _events(client, run)


async def _events(client: PhylacteryClient, run: Run) -> list[Event]:
    """Return the events of a run that are kept, up to the newest of its thread."""
    newest, after = (await client.get_thread(run.thread_id)).last_sequence, 0
    while True:
        try:
            return await _events_after(client, run, after, newest)
        except OutOfRangeError as error:
            first = int(error.metadata.get("first_sequence", "0"))
            if first <= after:
                raise
            after = first - 1


async def _events_after(client: PhylacteryClient, run: Run, after: int, newest: int) -> list[Event]:
    found: list[Event] = []
    if after >= newest:
        return found
    async with aclosing(client.watch_thread(run.thread_id, after_sequence=after, reconnect=False)) as events:
        async for event in events:
            if event.run_id == run.id:
                found.append(event)
            if event.sequence >= newest:
                break
    return found


def _event_json(event: Event) -> dict[str, object]:
    """Return an event for machines; what an approval is answered with is for the chat."""
    told: dict[str, object] = json_format.MessageToDict(event.raw, preserving_proto_field_name=True)
    for name in ("code", "arguments"):
        if isinstance(asked := told.get("approval_required"), dict):
            asked.pop(name, None)
    return told
