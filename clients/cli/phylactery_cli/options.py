"""The options that several commands take, and the group of commands that ask the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient

from phylactery_cli.calling import Caller
from phylactery_cli.supervisor import DEFAULT_PORTS
from phylactery_cli.texts import Language, Texts, preferred_language

AGENT, RISKGATE, MEMORY = (f"127.0.0.1:{DEFAULT_PORTS[name]}" for name in ("agent", "riskgate", "memory"))
"""Where phylactery up starts the services."""
LANGUAGE = preferred_language()

AgentTarget = Annotated[str, typer.Option(help="Where the agent is.")]
RiskGateTarget = Annotated[str, typer.Option(help="Where RiskGate is.")]
MemoryTarget = Annotated[str, typer.Option(help="Where memory is.")]
TokenFile = Annotated[Path | None, typer.Option(help="File with your token.")]
Speak = Annotated[Language, typer.Option("--language", help="Language of this command.")]
Json = Annotated[bool, typer.Option("--json", help="For machines: one JSON object a line.")]
Page = Annotated[str, typer.Option(help="The page to go on with.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]

AgentCaller: TypeAlias = Caller[PhylacteryClient]


def read_token(file: Path | None) -> str:
    """Reads the token of --token-file; empty without one. Raises typer.BadParameter where it cannot be read."""
    try:
        return read_secret(file, "--token-file")
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def agent_caller(command: str, target: str, token_file: Path | None, language: Language) -> AgentCaller:
    """Answers what calls the agent for a command. Raises typer.BadParameter where the token cannot be read."""
    token = read_token(token_file)
    return Caller(command, target, Texts(language), lambda: PhylacteryClient(target, token=token))


def agent_group(command: str, what: str) -> typer.Typer:
    """Answers a group of commands that ask the agent: its options stand before theirs, its context holds the caller."""
    group = typer.Typer(help=what, no_args_is_help=True)

    @group.callback()
    def options(
        context: typer.Context,
        *,
        target: AgentTarget = AGENT,
        token_file: TokenFile = None,
        language: Speak = LANGUAGE,
    ) -> None:
        context.obj = agent_caller(command, target, token_file, language)

    return group
