"""The options that every command takes, before it and after it, and how a command asks a service with them.

What stands nearest to the command counts: its own options, then its group's, then phylactery's, then the variables.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer
from phylactery_chassis.settings import read_secret
from phylactery_client import PhylacteryClient

from phylactery_cli.calling import Caller
from phylactery_cli.i18n.texts import Language, Texts, preferred_language
from phylactery_cli.supervisor import DEFAULT_PORTS

Service: TypeAlias = Literal["agent", "riskgate", "memory"]
Output: TypeAlias = Literal["text", "json"]

TARGET_VARIABLES: Final[Mapping[Service, str]] = {
    "agent": "PHYLACTERY_TARGET",
    "riskgate": "PHYLACTERY_RISKGATE_TARGET",
    "memory": "PHYLACTERY_MEMORY_TARGET",
}
_META = "phylactery_cli.options"
_OUTPUT, _LANGUAGE, _TOKEN_FILE = "PHYLACTERY_OUTPUT", "PHYLACTERY_LANGUAGE", "PHYLACTERY_TOKEN_FILE"

Page = Annotated[str, typer.Option(help="The page to go on with.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask again.")]

AgentCaller: TypeAlias = Caller[PhylacteryClient]


@dataclass(frozen=True, slots=True)
class Options:
    """What the shared options and variables say for one command."""

    target: str
    """Where the service is, as an option says; empty where none does."""
    token_file: Path | None
    output: Output
    language: Language
    language_chosen: bool
    """Whether the language was set explicitly; otherwise it is the terminal's."""

    @classmethod
    def of(cls, context: typer.Context) -> Options:
        """Return what holds for the command of a context. Raise typer.BadParameter for a variable that is wrong."""
        given: Mapping[str, Any] = context.meta.get(_META, {})
        language = given.get("language") or _variable(_LANGUAGE, "es", "en")
        return cls(
            target=given.get("target", ""),
            token_file=given.get("token_file") or (Path(name) if (name := os.environ.get(_TOKEN_FILE)) else None),
            output=given.get("output") or _variable(_OUTPUT, "text", "json") or "text",
            language=language or preferred_language(),
            language_chosen=bool(language),
        )

    @property
    def json(self) -> bool:
        """Return True where the command prints for machines."""
        return self.output == "json"

    @property
    def texts(self) -> Texts:
        """Return the texts of the command's language."""
        return Texts(self.language)

    def target_of(self, service: Service) -> str:
        """Return where a service is: as the option says, else its variable, else where phylactery up starts it."""
        return self.target or os.environ.get(TARGET_VARIABLES[service]) or f"127.0.0.1:{DEFAULT_PORTS[service]}"

    def token(self) -> str:
        """Read the token; empty without a file. Raise typer.BadParameter where it cannot be read."""
        try:
            return read_secret(self.token_file, "--token-file")
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None


def _variable(name: str, *known: str) -> Any:
    """Return the value of a variable, empty where it is not set. Raise typer.BadParameter for a value that is none."""
    value = os.environ.get(name, "")
    if value and value not in known:
        raise typer.BadParameter(f"{name} is '{value}'; it may be {' or '.join(known)}")
    return value


_EVERY: Final[Mapping[str, Any]] = {
    "language": Annotated[
        Language | None, typer.Option("--language", help=f"es or en: of this command and of the agent. [{_LANGUAGE}]")
    ],
    "output": Annotated[Output | None, typer.Option("--output", help=f"text, or json for machines. [{_OUTPUT}]")],
    "json_": Annotated[bool, typer.Option("--json", help="The same as --output json.")],
}
_ASKING: Final[Mapping[str, Any]] = {
    "target": Annotated[
        str, typer.Option("--target", help=f"Where the service is. [{', '.join(TARGET_VARIABLES.values())}]")
    ],
    "token_file": Annotated[Path | None, typer.Option("--token-file", help=f"File with your token. [{_TOKEN_FILE}]")],
}
_UNSET: Final[Mapping[str, Any]] = {"json_": False, "target": ""}


def shared(*, asks: bool = True) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command or a group the shared options; asks says whether it asks a service."""
    added = {**_EVERY, **(_ASKING if asks else {})}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        wants = next((name for name, one in own.items() if one.annotation is typer.Context), None)
        context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

        @functools.wraps(function)
        def command(**values: Any) -> None:
            here: typer.Context = values["context"] if wants is None else values[wants]
            _note(here, {name: values.pop(name) for name in added})
            if wants is None:
                del values["context"]
            function(**values)

        parameters = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own.values()]
        parameters += [] if wants else [context]
        parameters += [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=_UNSET.get(name), annotation=annotation)
            for name, annotation in added.items()
        ]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def _note(context: typer.Context, values: dict[str, Any]) -> None:
    """Note what was given here, over what was given before it."""
    if values.pop("json_"):
        values["output"] = "json"
    noted = context.meta.setdefault(_META, {})
    noted.update({name: value for name, value in values.items() if value})


def agent_caller(context: typer.Context, command: str) -> AgentCaller:
    """Return what calls the agent for a command. Raise typer.BadParameter where the token cannot be read."""
    options = Options.of(context)
    token, target = options.token(), options.target_of("agent")
    return Caller(
        command,
        target,
        options.texts,
        lambda: PhylacteryClient(target, token=token, retry_seconds=0),
        json=options.json,
    )


def group(what: str) -> typer.Typer:
    """Return a group of commands that ask a service; it takes the shared options too."""
    made = typer.Typer(help=what, no_args_is_help=True)

    @made.callback()
    @shared()
    def options() -> None:
        pass

    return made
