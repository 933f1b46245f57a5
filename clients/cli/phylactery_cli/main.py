"""The phylactery command: run, up, chat, demo, erase, and a group of commands for each thing that the services keep."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer
from phylactery_chassis.util.late_commands import late_group
from phylactery_chassis.util.version import version_line
from rich.console import Console

from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, shared
from phylactery_cli.supervisor import DEFAULT_PORTS, SERVICES, Fate, InUseError, Keeper, Stack, StackError, running
from phylactery_cli.terminal import fate_text, plain_console

_COMMANDS: Final = {
    "erase": "phylactery_cli.commands.erase:erase",
    "approvals": "phylactery_cli.commands.approvals:app",
    "forms": "phylactery_cli.commands.forms:app",
    "gateway": "phylactery_cli.commands.gateway:app",
    "graphs": "phylactery_cli.commands.graphs:app",
    "handoff": "phylactery_cli.commands.handoff:app",
    "memory": "phylactery_cli.commands.memory:app",
    "runs": "phylactery_cli.commands.runs:app",
    "threads": "phylactery_cli.commands.threads:app",
    "tokens": "phylactery_cli.commands.tokens:app",
    "tools": "phylactery_cli.commands.tools:app",
}
"""The commands that start no services, and where they are; they are imported when they are named."""

app = typer.Typer(
    cls=late_group(_COMMANDS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables would print secrets
)


_WELCOME = "welcome.txt"

DataDir = Annotated[Path, typer.Option(help="Folder for everything the services keep.")]
Graph = Annotated[str, typer.Option(help="The graph of a new conversation: secured or react; empty is the agent's.")]


@contextlib.contextmanager
def _serving(data_dir: Path, console: Console, texts: Texts) -> Iterator[Stack]:
    """Run the three services for the block and say where they are and that they stopped."""
    from phylactery_cli.commands.models import model_lines  # late: it reads the agent's settings

    stack = Stack(data_dir, DEFAULT_PORTS)
    try:
        with running(stack, leaving=True):
            _welcome(stack.sandbox)
            for name in SERVICES:
                console.print(f"{name:<9}{stack.target(name)}", style="dim")
            for line in model_lines(texts):
                console.print(line, style="dim", soft_wrap=True)
            if stack.single_user():
                console.print(texts("single_user"), style="dim", soft_wrap=True)
            console.print(f"{texts('files')}: {stack.sandbox}", style="dim", soft_wrap=True)
            if any(one.is_file() for one in stack.former_sandbox.rglob("*")):
                told = texts("former_files", folder=stack.former_sandbox, data=stack.data_dir / "agent")
                console.print(told, style="yellow", soft_wrap=True)
            yield stack
            console.print(texts("bye"), style="dim")
    except InUseError as error:
        console.print(texts("in_use", folder=data_dir, target=error.target), style="red", soft_wrap=True)
        raise typer.Exit(1) from None
    except StackError as error:
        console.print(str(error), style="red", soft_wrap=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:  # also while they start
        console.print()
        console.print(texts("stopped", folder=data_dir), style="dim", soft_wrap=True)
        raise typer.Exit(0) from None
    console.print(texts("stopped", folder=data_dir), style="dim", soft_wrap=True)


def _welcome(sandbox: Path) -> None:
    """Put a sample file into an unused sandbox."""
    sandbox.mkdir(parents=True, exist_ok=True)
    if not any(sandbox.iterdir()):
        shutil.copyfile(Path(__file__).parent / _WELCOME, sandbox / _WELCOME)


Attach = Annotated[
    list[Path] | None, typer.Option("--attach", help="A file to send with the first message; may be repeated.")
]
Details = Annotated[bool, typer.Option("--details", help="Show each step and decision, as /details does.")]
Thread = Annotated[str, typer.Option(help="The conversation to go on with.")]


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(version_line("phylactery-cli", "phylactery"))
        raise typer.Exit


@app.callback()
@shared()
def phylactery(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Phylactery: agents whose every effect passes a gate.

    These options hold for every command, before its name or after it; the variables for all of them.
    """


def _refuse_target(context: typer.Context, command: str) -> Options:
    """Return the options of a command that starts services itself. Raise typer.BadParameter where one was named."""
    options = Options.of(context)
    if options.target:
        raise typer.BadParameter(f"{command} starts the services itself; phylactery chat --target talks to others")
    return options


@app.command()
@shared(asks=False)
def run(
    context: typer.Context,
    *,
    data_dir: DataDir = Path(".phylactery"),
    thread: Thread = "main",
    graph: Graph = "",
    details: Details = False,
) -> None:
    """Start the three services and open a chat; leaving it stops them. One that dies is started again."""
    from phylactery_cli.chat.session import ChatOptions, talk

    options = _refuse_target(context, "run")
    console, texts, well = plain_console(stderr=options.json), options.texts, False
    with _serving(data_dir, console, texts) as stack:
        if not options.json:
            console.print(f"\n{texts('hint')}")
        chosen = ChatOptions(
            thread_id=thread,
            language=options.language if options.language_chosen else None,
            graph=graph,
            data_dir=data_dir,
            json=options.json,
            details=details,
            stack=stack,
        )
        well = asyncio.run(talk(stack.target("agent"), console, texts, chosen))
    if not well:
        raise typer.Exit(1)


@app.command()
@shared(asks=False)
def up(context: typer.Context, data_dir: DataDir = Path(".phylactery")) -> None:
    """Start the three services and keep them running until Ctrl-C; one that dies is started again."""
    console, texts = plain_console(), _refuse_target(context, "up").texts

    async def tell(fate: Fate) -> None:
        console.print(fate_text(texts, fate), style="dim" if fate.kind == "back" else "red", soft_wrap=True)

    with _serving(data_dir, console, texts) as stack:
        asyncio.run(Keeper(stack, tell).run())
        raise typer.Exit(1)


@app.command()
@shared()
def chat(
    context: typer.Context,
    *,
    thread: Thread = "main",
    graph: Graph = "",
    data_dir: DataDir = Path(".phylactery"),
    details: Details = False,
    attach: Attach = None,
) -> None:
    """Open a chat with an agent that is running already."""
    from phylactery_cli.chat.session import ChatOptions, talk

    options = Options.of(context)
    chosen = ChatOptions(
        thread_id=thread,
        language=options.language if options.language_chosen else None,
        graph=graph,
        token=options.token(),
        data_dir=data_dir,
        json=options.json,
        details=details,
        attach=tuple(attach or ()),
    )
    well = True
    with contextlib.suppress(KeyboardInterrupt):
        well = asyncio.run(talk(options.target_of("agent"), plain_console(), options.texts, chosen))
    if not well:
        raise typer.Exit(1)


@app.command()
@shared(asks=False)
def demo(
    keep: Annotated[Path | None, typer.Option(help="Keep the demo's files in this new folder.")] = None,
    *,
    whatsapp: Annotated[bool, typer.Option("--whatsapp", help="Play it on a phone, through the gateway.")] = False,
) -> None:
    """Play a scripted conversation against the real services and show what happened at every step."""
    if whatsapp:
        from phylactery_cli.demo.whatsapp import play as play_on_phone  # late, as the chat

        if keep is not None:
            raise typer.BadParameter("--keep is for the demo in the terminal")
        raise typer.Exit(play_on_phone(plain_console()))
    from phylactery_cli.demo.play import play  # late, as the chat: the other commands need neither

    raise typer.Exit(play(plain_console(), keep))


def main() -> None:
    """Run the command."""
    app()
