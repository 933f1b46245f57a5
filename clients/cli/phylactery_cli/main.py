"""The phylactery command: run, up, chat, demo, erase, approvals, graphs, memory, runs, threads, tokens, tools."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.identity import Role, TokensFileError
from phylactery_chassis.tokens import add_token
from rich.console import Console

from phylactery_cli import approvals as approvals_command
from phylactery_cli import erase as erase_command
from phylactery_cli import graphs as graphs_command
from phylactery_cli import memory as memory_command
from phylactery_cli import runs as runs_command
from phylactery_cli import threads as threads_command
from phylactery_cli import tools as tools_command
from phylactery_cli.models import model_lines
from phylactery_cli.options import AGENT, LANGUAGE, AgentTarget, Speak, TokenFile, read_token
from phylactery_cli.supervisor import DEFAULT_PORTS, SERVICES, InUseError, Stack, StackError, running
from phylactery_cli.terminal import plain_console
from phylactery_cli.texts import Texts

app = typer.Typer(
    help="Phylactery: agents whose every effect passes a gate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a traceback with local variables would print secrets
)
tokens_app = typer.Typer(help="Static tokens for identity_mode 'tokens'.", no_args_is_help=True)
app.add_typer(approvals_command.app, name="approvals")
app.add_typer(graphs_command.app, name="graphs")
app.add_typer(memory_command.app, name="memory")
app.add_typer(runs_command.app, name="runs")
app.add_typer(threads_command.app, name="threads")
app.add_typer(tokens_app, name="tokens")
app.add_typer(tools_command.app, name="tools")

_WELCOME = "welcome.txt"
_WATCH_SECONDS = 0.5

DataDir = Annotated[Path, typer.Option(help="Folder for everything the services keep.")]
Graph = Annotated[str, typer.Option(help="The graph of a new conversation: secured or react; empty is the agent's.")]


@contextlib.contextmanager
def _serving(data_dir: Path, console: Console, texts: Texts) -> Iterator[Stack]:
    """Runs the three services for the block and says where they are and that they stopped."""
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
    """Puts something to read into a sandbox nobody has used."""
    sandbox.mkdir(parents=True, exist_ok=True)
    if not any(sandbox.iterdir()):
        shutil.copyfile(Path(__file__).parent / _WELCOME, sandbox / _WELCOME)


def _still_up(stack: Stack, texts: Texts) -> Callable[[], str | None]:
    def ask() -> str | None:
        name = stack.died()
        return texts("died", service=name, log=stack.processes[name].log) if name else None

    return ask


@app.command()
def run(
    data_dir: DataDir = Path(".phylactery"),
    language: Speak = LANGUAGE,
    thread: Annotated[str, typer.Option(help="The conversation to go on with.")] = "main",
    graph: Graph = "",
) -> None:
    """Starts the three services and opens a chat; leaving it stops them."""
    from phylactery_cli.chat import talk

    console, texts, died = plain_console(), Texts(language), None
    with _serving(data_dir, console, texts) as stack:
        console.print(f"\n{texts('hint')}")
        asyncio.run(
            talk(
                stack.target("agent"),
                console,
                texts,
                thread_id=thread,
                data_dir=data_dir,
                graph=graph,
                still_up=_still_up(stack, texts),
            )
        )
        died = stack.died()
    if died:
        raise typer.Exit(1)


@app.command()
def up(data_dir: DataDir = Path(".phylactery"), language: Speak = LANGUAGE) -> None:
    """Starts the three services and keeps them running until Ctrl-C."""
    console, texts = plain_console(), Texts(language)
    with _serving(data_dir, console, texts) as stack:
        ask = _still_up(stack, texts)
        while (reason := ask()) is None:
            time.sleep(_WATCH_SECONDS)
        console.print(reason, style="red", soft_wrap=True)
        raise typer.Exit(1)


@app.command()
def chat(
    *,
    target: AgentTarget = AGENT,
    thread: Annotated[str, typer.Option(help="The conversation.")] = "main",
    token_file: TokenFile = None,
    graph: Graph = "",
    data_dir: DataDir = Path(".phylactery"),
    language: Speak = LANGUAGE,
) -> None:
    """Opens a chat with an agent that is running already."""
    from phylactery_cli.chat import talk

    token, console, texts = read_token(token_file), plain_console(), Texts(language)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(talk(target, console, texts, thread_id=thread, token=token, data_dir=data_dir, graph=graph))


@app.command()
def demo(
    keep: Annotated[Path | None, typer.Option(help="Keep the demo's files in this new folder.")] = None,
) -> None:
    """Plays a scripted conversation against the real services and shows what happened at every step."""
    from phylactery_cli.demo.play import play  # late, as the chat: the other commands need neither

    raise typer.Exit(play(plain_console(), keep))


app.command()(erase_command.erase)


@tokens_app.command("add")
def add(
    subject: Annotated[str, typer.Option(help="Who the token stands for.")],
    tenant: Annotated[str, typer.Option(help="Their tenant; '*' for a delegate of every tenant.")],
    role: Annotated[list[Role], typer.Option(help="What they may do; give it several times for several.")],
    file: Annotated[Path, typer.Option(help="The tokens file; created where it does not exist.")],
    level: Annotated[str, typer.Option(help="user, admin or system.")] = "user",
) -> None:
    """Adds an identity and prints its token, once: only a hash is kept."""
    try:
        typer.echo(add_token(file, subject=subject, tenant=tenant, roles=role, level=level))
    except (TokensFileError, OSError) as error:
        why = f"{file} cannot be written ({error.strerror})" if isinstance(error, OSError) else error
        typer.echo(f"phylactery: {why}", err=True)
        raise typer.Exit(1) from None


def main() -> None:
    """Runs the command."""
    app()
