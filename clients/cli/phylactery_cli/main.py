"""The phylactery command: run, up, chat, demo, erase, and a group of commands for each thing that the services keep."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.auth.commands import make_app
from phylactery_chassis.util.version import version_line
from rich.console import Console

from phylactery_cli.commands import approvals as approvals_command
from phylactery_cli.commands import erase as erase_command
from phylactery_cli.commands import forms as forms_command
from phylactery_cli.commands import gateway as gateway_command
from phylactery_cli.commands import graphs as graphs_command
from phylactery_cli.commands import handoff as handoff_command
from phylactery_cli.commands import memory as memory_command
from phylactery_cli.commands import runs as runs_command
from phylactery_cli.commands import threads as threads_command
from phylactery_cli.commands import tools as tools_command
from phylactery_cli.commands.models import model_lines
from phylactery_cli.i18n.texts import Texts
from phylactery_cli.options import Options, shared
from phylactery_cli.supervisor import DEFAULT_PORTS, SERVICES, Fate, InUseError, Keeper, Stack, StackError, running
from phylactery_cli.terminal import fate_text, plain_console

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables would print secrets
)


def _unusable(message: str) -> typer.Exit:
    """Say why a command could not be carried out; raise what it answers."""
    typer.echo(f"phylactery: {message}", err=True)
    return typer.Exit(1)


app.add_typer(approvals_command.app, name="approvals")
app.add_typer(forms_command.app, name="forms")
app.add_typer(gateway_command.app, name="gateway")
app.add_typer(graphs_command.app, name="graphs")
app.add_typer(handoff_command.app, name="handoff")
app.add_typer(memory_command.app, name="memory")
app.add_typer(runs_command.app, name="runs")
app.add_typer(threads_command.app, name="threads")
app.add_typer(
    make_app(_unusable, shared(asks=False), lambda context: Options.of(context).json),
    name="tokens",
)
app.add_typer(tools_command.app, name="tools")

_WELCOME = "welcome.txt"

DataDir = Annotated[Path, typer.Option(help="Folder for everything the services keep.")]
Graph = Annotated[str, typer.Option(help="The graph of a new conversation: secured or react; empty is the agent's.")]


@contextlib.contextmanager
def _serving(data_dir: Path, console: Console, texts: Texts) -> Iterator[Stack]:
    """Run the three services for the block and say where they are and that they stopped."""
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


app.command("erase")(erase_command.erase)


def main() -> None:
    """Run the command."""
    app()
