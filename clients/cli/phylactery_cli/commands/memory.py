"""phylactery memory: see what is remembered about you, change it, take it with you, or have it all erased."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, BinaryIO

import typer
from phylactery_chassis.util.durable_files import whole_file
from phylactery_client import MemoryClient, PhylacteryError
from phylactery_client.memory_results import Memory, MemoryMatch, Profile, ProfileField
from phylactery_client.results import Output

from phylactery_cli.calling import Caller, json_line
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, Page, Yes, shared
from phylactery_cli.terminal import confirmed, moment, one_line

app = typer.Typer(
    help="What is remembered: search, list, profile, forget, outputs, erase, export.", no_args_is_help=True
)

Subject = Annotated[str, typer.Option(help="The user a delegate speaks for; empty for yourself.")]
Tenant = Annotated[str, typer.Option(help="Their tenant; empty for the delegate's own.")]
_FIELDS = {
    "query": "memory_bad_query",
    "memory_id": "memory_bad_id",
    "name": "memory_bad_name",
    "text_value": "memory_bad_text",
    "page_token": "memory_bad_page",
    "subject": "memory_bad_user",
}
"""What to say where the service refuses a field."""


@dataclass(frozen=True, slots=True)
class _Memory(Caller[MemoryClient]):
    """Calls memory as the user the options name."""

    subject: str = ""


@app.callback()
@shared()
def whose(context: typer.Context, *, subject: Subject = "", tenant: Tenant = "") -> None:
    """Show what is remembered: search, list, profile, forget, outputs, erase, export."""
    context.obj = subject, tenant


def _caller(context: typer.Context) -> _Memory:
    """Return what calls memory for a command, as the user the group's options name."""
    options, (subject, tenant) = Options.of(context), context.obj
    token, texts, target = options.token(), options.texts, options.target_of("memory")

    def told(error: PhylacteryError) -> str:
        """Return what was wrong in words of this command, the service's own where it has none."""
        if error.reason == "MEMORY_NOT_FOUND":
            return texts("memory_not_found", id=error.metadata.get("memory_id", ""))
        wrong = next((violation.field.rsplit(".", 1)[-1] for violation in error.violations), "")
        return texts(_FIELDS[wrong]) if wrong in _FIELDS else error.message

    def opened() -> MemoryClient:
        return MemoryClient(target, token=token, subject=subject, tenant=tenant, retry_seconds=0)

    return _Memory("memory", target, texts, opened, told, json=options.json, subject=subject)


def _output_cells(output: Output) -> tuple[object, ...]:
    return output.pointer, output.tool_name, output.size_chars, output.thread_id, moment(output.create_time)


def _cells(texts: Texts, memory: Memory) -> tuple[object, ...]:
    text = memory.text or texts("memory_untrusted", text=memory.untrusted_text)
    since = f"{memory.valid_at:%Y-%m-%d}" if memory.valid_at else ""
    until = f"{memory.invalid_at:%Y-%m-%d}" if memory.invalid_at else ""
    return memory.memory_id, texts.memory_word(memory.kind), texts.memory_word(memory.trust), since, until, text


@app.command()
@shared()
def search(
    context: typer.Context,
    query: str,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
) -> None:
    """Find what is remembered about something, in Spanish or English, best first."""
    caller = _caller(context)
    matches = caller.ask(lambda client: client.search_memories(query, limit=limit))

    def cells(match: MemoryMatch) -> tuple[object, ...]:
        return _cells(caller.texts, match.memory)

    caller.print_list(matches, "memory_columns", cells, none="memory_no_match")


@app.command("list")
@shared()
def list_(
    context: typer.Context,
    past: Annotated[bool, typer.Option("--past", help="Also what holds no more.")] = False,
    page: Page = "",
) -> None:
    """List what is remembered, the last written first."""
    caller = _caller(context)

    async def memories(client: MemoryClient, token: str) -> tuple[Sequence[Memory], str]:
        found = await client.list_memories(include_invalid=past, page_token=token)
        return found.memories, found.next_page_token

    caller.print_pages(memories, "memory_columns", partial(_cells, caller.texts), none="memory_none", token=page)


@app.command()
@shared()
def profile(
    context: typer.Context,
    set_: Annotated[list[str], typer.Option("--set", help="name=value; several times for several.")] = [],  # noqa: B006
    remove: Annotated[list[str], typer.Option(help="A name to remove; several times for several.")] = [],  # noqa: B006
    past: Annotated[bool, typer.Option("--past", help="Also what held before.")] = False,
) -> None:
    """Show what holds about you for good, after setting and removing what you name."""
    caller = _caller(context)
    values = {}
    for text in set_:
        name, sign, value = text.partition("=")
        if not sign:
            raise caller.fail(caller.texts("memory_bad_value", text=text))
        values[name.strip()] = value.strip()

    async def change(client: MemoryClient) -> Profile:
        if values or remove:
            await client.set_profile_fields(values, remove=remove)
        return await client.get_profile(max_superseded=20 if past else 0)

    found = caller.ask(change)

    def cells(field: ProfileField) -> tuple[object, ...]:
        held = moment(field.valid_at), moment(field.invalid_at)
        return field.name, field.value, caller.texts.memory_word(field.source), *held, field.memory_id

    fields = (*found.fields, *found.superseded)
    caller.print_list(fields, "memory_profile_columns", cells, none="memory_no_profile")


@app.command()
@shared()
def forget(context: typer.Context, memory_id: str) -> None:
    """Remove one memory for good, and what the profile took from it."""
    caller = _caller(context)
    caller.ask(lambda client: client.forget_memory(memory_id))
    caller.done(caller.texts("memory_forgotten", id=one_line(memory_id)), forgotten=memory_id)


@app.command()
@shared()
def outputs(context: typer.Context, page: Page = "") -> None:
    """List the large outputs of tools that are kept, newest first."""
    caller = _caller(context)
    seen: list[Output] = []
    broken: list[str] = []

    async def kept(client: MemoryClient, token: str) -> tuple[Sequence[Output], str]:
        found = await client.list_outputs(page_token=token)
        seen.extend(found.outputs)
        broken.extend(found.broken_pointers)
        return found.outputs, found.next_page_token

    caller.print_pages(kept, "memory_output_columns", _output_cells, none="", token=page)
    if not (seen or broken or caller.json):
        typer.echo(caller.texts("memory_no_outputs"))
    if seen and not caller.json:
        typer.echo(caller.texts("memory_read_output", pointer=seen[0].pointer), err=True)
    if broken:
        typer.echo(caller.texts("memory_broken_outputs", pointers=", ".join(broken)), err=True)


@app.command()
@shared()
def erase(
    context: typer.Context,
    user: Annotated[str, typer.Argument(help="A user of your tenant, for an operator; empty for yourself.")] = "",
    yes: Yes = False,
) -> None:
    """Erase everything memory holds about a user, and print the proof; phylactery erase covers all three services."""
    caller = _caller(context)
    who = one_line(user or caller.subject) or caller.texts("memory_yourself")
    if not yes and not confirmed(caller.texts("memory_confirm", who=who), caller.texts, err=caller.json):
        typer.echo(caller.texts("unchanged"), err=caller.json)
        raise typer.Exit(1)
    erasure = caller.ask(lambda client: client.erase_user(subject=user))
    if caller.json:
        typer.echo(json_line(erasure))
        return
    counts = ", ".join(f"{name}: {count}" for name, count in asdict(erasure.counts).items())
    typer.echo(caller.texts("memory_erased", counts=counts))
    typer.echo(caller.texts("erase_proof", proof=f"{erasure.erasure_id}  {erasure.receipt_hash}"))
    typer.echo(caller.texts("memory_erase_rest"), err=True)


@app.command()
@shared()
def export(
    context: typer.Context,
    out: Annotated[Path | None, typer.Option(help="A new file, yours alone to read; none prints the lines.")] = None,
) -> None:
    """Write everything memory holds about you as JSON lines; the last one counts them."""
    caller = _caller(context)

    async def write(client: MemoryClient, put: Callable[[str], object]) -> tuple[int, bool]:
        count, whole = 0, False
        async for line in client.export_user():
            put(line + "\n")
            count, whole = count + 1, json.loads(line)["type"] == "end"
        return count, whole

    if out is None:
        count, whole = caller.ask(lambda client: write(client, lambda line: typer.echo(line, nl=False)))
    else:
        try:
            with _new_file(out) as file:
                count, whole = caller.ask(lambda client: write(client, lambda line: file.write(line.encode())))
                if not whole:
                    raise caller.fail(caller.texts("memory_no_file", file=out))
        except FileExistsError:
            raise caller.fail(caller.texts("memory_file_exists", file=out)) from None
        except OSError as error:
            raise caller.fail(f"{out}: {error.strerror}") from None
    if not whole:
        raise caller.fail(caller.texts("memory_broken"))
    if out is not None:
        caller.done(caller.texts("memory_exported", count=count, file=out), records=count, file=out)


@contextmanager
def _new_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new private file for writing; it exists after the block, complete, or not at all.

    Raise FileExistsError, OSError.
    """
    if path.exists():
        raise FileExistsError(path)
    with whole_file(path) as file:
        yield file
        if path.exists():
            raise FileExistsError(path)
