"""phylactery forms: the agent's forms, and a folder of form files checked, tested and tried without an agent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery_client import FormClient
from phylactery_client.forms import Form, FormSubmission
from phylactery_forms.definitions.documents import FormError
from phylactery_forms.definitions.reading import read_forms
from phylactery_forms.definitions.submissions import submissions_section
from phylactery_forms.dialogue.state import OPEN, given_values
from phylactery_forms.stories.runner import Said, Simulation
from phylactery_forms.values.model import Context

from phylactery_cli.calling import Caller, failed, json_line
from phylactery_cli.forms.files import checked, started, tested
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, Page, group, shared
from phylactery_cli.terminal import printable

app = group("Forms: list, show and submissions of the agent; check, test, simulate, new and export for form files.")
_COMMAND = "forms"
_OWN = "forms_submission_columns", "forms_no_submission"

Folder = Annotated[Path, typer.Argument(help="The folder of the form files; their stories are in its folder stories.")]


def _caller(context: typer.Context) -> Caller[FormClient]:
    options = Options.of(context)
    token, target = options.token(), options.target_of("agent")
    return Caller(
        _COMMAND, target, options.texts, lambda: FormClient(target, token=token, retry_seconds=0), json=options.json
    )


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Say what is wrong with a file, and exit with 1."""
    try:
        yield
    except FormError as error:
        raise failed(_COMMAND, str(error)) from None


@app.command("list")
@shared()
def list_(context: typer.Context) -> None:
    """List the forms that the agent fills in."""
    caller = _caller(context)
    spanish = caller.texts.language == "es"

    def cells(form: Form) -> tuple[object, ...]:
        return form.id, form.version, form.title_es if spanish else form.title, form.tool

    caller.print_list(caller.ask(lambda client: client.list()), "forms_columns", cells, none="forms_none")


@app.command()
@shared()
def show(context: typer.Context, form: Annotated[str, typer.Argument(help="The form's id.")]) -> None:
    """Show the fields of one of the agent's forms, in the order in which they are asked."""
    caller = _caller(context)
    found = caller.ask(lambda client: client.get(form))
    if caller.json:
        typer.echo(json_line(found))
        return
    spanish = caller.texts.language == "es"
    rows = [
        (
            field.id,
            field.type,
            caller.texts("forms_required") if field.required else "",
            caller.texts("forms_sensitive") if field.sensitive else "",
            field.question_es if spanish else field.question,
        )
        for field in found.fields
    ]
    caller.print("forms_fields", rows)


@app.command()
@shared()
def submissions(
    context: typer.Context,
    form: Annotated[str, typer.Option(help="Only of one form.")] = "",
    everyone: Annotated[
        bool, typer.Option("--everyone", help="Of all people, with what they submitted: for handlers and operators.")
    ] = False,
    page: Page = "",
) -> None:
    """List the forms that you submitted, the newest first; with --everyone what all people submitted."""
    caller = _caller(context)

    async def found(client: FormClient, token: str) -> tuple[tuple[FormSubmission, ...], str]:
        some = await client.submissions(form=form, everyone=everyone, page_token=token)
        return some.submissions, some.next_page_token

    def cells(one: FormSubmission) -> tuple[object, ...]:
        if everyone:
            values = "; ".join(f"{value.field}: {value.shown}" for value in one.values)
            return one.submission_id, one.form, one.user_id, one.update_time, values
        return one.form, one.status, one.thread_id, one.run_id, one.update_time

    columns, none = ("forms_stored_columns", "forms_none_stored") if everyone else _OWN
    caller.print_pages(found, columns, cells, none=none, token=page)


@app.command()
@shared(asks=False)
def check(context: typer.Context, folder: Folder) -> None:
    """Say what is wrong with form files and their stories, each with file and line; exit with 1 if anything is."""
    options = Options.of(context)
    with _told():
        found = checked(folder)
    if options.json:
        told = {name: form.read_as_stored for name, form in sorted(found.forms.items()) if form.read_as_stored}
        typer.echo(json_line({"forms": sorted(found.forms), "faults": list(found.faults), "read_as_submit_form": told}))
    else:
        for fault in found.faults:
            typer.echo(printable(fault), err=True)
        for name, form in sorted(found.forms.items()):
            if form.read_as_stored:
                typer.echo(options.texts("forms_read_as_stored", form=name, tool=form.read_as_stored))
        typer.echo(options.texts("forms_checked", forms=len(found.forms), faults=len(found.faults)))
    if found.faults:
        raise typer.Exit(1)


@app.command()
@shared(asks=False)
def test(context: typer.Context, folder: Folder) -> None:
    """Run the stories of form files; exit with 1 if a reply is not as expected."""
    options, texts = Options.of(context), Options.of(context).texts
    with _told():
        done = tested(folder)
    if options.json:
        typer.echo(json_line(done))
    else:
        for failure in done.failures:
            typer.echo(printable(failure), err=True)
        counts = {"stories": done.stories, "turns": done.turns, "failures": len(done.failures)}
        typer.echo(texts("forms_tested", **counts))
        (steps, all_steps), (edges, all_edges) = done.steps, done.edges
        typer.echo(texts("forms_covered", steps=steps, all_steps=all_steps, edges=edges, all_edges=all_edges))
        if done.missing:
            typer.echo(texts("forms_missing", what=", ".join(done.missing)))
    if done.failures:
        raise typer.Exit(1)


@app.command()
@shared(asks=False)
def simulate(
    context: typer.Context,
    folder: Folder,
    form: Annotated[str, typer.Argument(help="The form's id.")],
    steps: Annotated[bool, typer.Option("--steps", help="Print the nodes that each message took.")] = False,
) -> None:
    """Fill in a form in the terminal, a message a line, without an agent: nothing is sent."""
    options = Options.of(context)
    with _told():
        forms = read_forms(folder)
    chosen = forms.get(form)
    if chosen is None:
        raise failed(_COMMAND, options.texts("forms_unknown", form=form, known=", ".join(forms)))
    run = Simulation(chosen, Context(options.language, datetime.now(UTC).astimezone()))
    _reply(options, run, run.begin(), None, steps=steps)
    for line in typer.get_text_stream("stdin"):
        said = run.say(line.rstrip("\r\n"))
        _reply(options, run, said.turn["response"], said, steps=steps)
        if run.conversation["status"] not in OPEN:
            break
    if run.conversation["status"] == "submitting" and chosen.submit is not None and not options.json:
        args = chosen.submitted_args(given_values(chosen, run.conversation))
        typer.echo(options.texts("forms_would_call", tool=chosen.submit.tool, args=json_line(args)))


def _reply(options: Options, run: Simulation, reply: str, said: Said | None, *, steps: bool) -> None:
    if options.json:
        values = {name: one["value"] for name, one in run.conversation["values"].items()}
        shown = {name: value for name, value in values.items() if not run.form.by_id[name].sensitive}
        line: dict[str, Any] = {"message": "" if said is None else said.text, "reply": reply}
        nodes = [] if said is None else list(said.steps)
        typer.echo(json_line({**line, "status": run.conversation["status"], "values": shown, "nodes": nodes}))
        return
    if steps and said is not None:
        typer.echo(f"  {' → '.join(said.steps)}")
    for text in reply.splitlines():
        typer.echo(printable(text))


@app.command()
@shared(asks=False)
def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The id of the form: lower-case letters, digits and _.")],
    folder: Annotated[Path, typer.Option(help="Where to write it.")] = Path("forms"),
) -> None:
    """Write a form to start from, and stories for it. Nothing is overwritten."""
    texts: Texts = Options.of(context).texts
    with _told():
        form, story = started(name, folder)
    typer.echo(texts("forms_made", form=form, story=story, folder=folder))


@app.command()
@shared(asks=False)
def export(folder: Folder) -> None:
    """Print what RiskGate has to know of the forms: the section "submissions" of its bundle's tools.yaml."""
    with _told():
        typer.echo(submissions_section(read_forms(folder).values()), nl=False)
