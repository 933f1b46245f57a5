"""`riskgate hook`: put RiskGate before a coding agent, and prove that it is there."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from phylactery_hooks import hook

app = typer.Typer(no_args_is_help=True, help="Hooks of coding agents: install, doctor, bundle, and the hooks.")

FAILED = 1
UNUSABLE = 2


class HostName(StrEnum):
    """A coding agent with hooks."""

    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    GEMINI = "gemini"


Host = Annotated[HostName, typer.Argument(help="the coding agent")]
Folder = Annotated[
    Path | None, typer.Option("--dir", help="folder of the helper's socket, settings and state [~/.phylactery/hooks]")
]
Project = Annotated[
    Path | None, typer.Option("--project", help="a project's settings instead of yours", exists=True, file_okay=False)
]
Event = Annotated[str, typer.Argument(help="the event that the settings name")]


@app.command()
def install(
    host: Host,
    *,
    target: Annotated[str, typer.Option("--target", help="RiskGate's host:port")] = "127.0.0.1:50052",
    token_file: Annotated[Path | None, typer.Option("--token-file", help="file with the token")] = None,
    ca_file: Annotated[Path | None, typer.Option("--ca-file", help="certificate of RiskGate; turns TLS on")] = None,
    http: Annotated[
        str, typer.Option("--http", metavar="URL", help="have the host post its events to `serve` at this address")
    ] = "",
    project: Project = None,
    folder: Folder = None,
) -> None:
    """Write a host's settings so that every tool call asks RiskGate, and fails closed where the host lets it."""
    from phylactery_hooks.install import InstallError, check_project
    from phylactery_hooks.install import install as write
    from phylactery_hooks.settings import HelperSettings, SettingsError, load, save

    where = _folder(folder)
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    where.chmod(0o700)
    try:
        if project is not None:
            check_project(project)
        kept = load(where)
        given = HelperSettings(
            target=target,
            token_file=str(token_file.expanduser().resolve()) if token_file else "",
            ca_file=str(ca_file.expanduser().resolve()) if ca_file else "",
            subject=kept.subject,
            tenant=kept.tenant,
            delegated=kept.delegated,
            idle_seconds=kept.idle_seconds,
            answer_seconds=kept.answer_seconds,
            answer_in_chat=kept.answer_in_chat,
        )
        save(where, given)
        done = write(host, _settings_file(host, project), where, url=http)
    except (InstallError, SettingsError, OSError) as error:
        raise _unusable(str(error)) from None
    typer.echo(f"{'written' if done.changed else 'unchanged'}: {done.path}")
    if done.backup is not None:
        typer.echo(f"as it was: {done.backup}")
    if host is HostName.CODEX:
        typer.echo("Codex runs no hook that you have not trusted: start Codex, type /hooks, and trust these.")
    if http:
        from phylactery_hooks.http import own_token
        from phylactery_hooks.settings import TOKEN_FILE, TOKEN_VARIABLE

        own_token(where)
        token = f'{TOKEN_VARIABLE}="$(cat {where / TOKEN_FILE})"'
        typer.echo(f"Keep `riskgate hook serve` running, and start the agent with {token}.")
        typer.echo("While it does not run, only onFailure keeps tools from running: Claude Code 2.1.295 or later.")
    typer.echo(f"Now prove it: riskgate hook doctor {host.value}")


@app.command()
def serve(
    *,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="loopback alone; port 0 takes a free one")
    ] = "127.0.0.1:50058",
    clients: Annotated[
        Path | None,
        typer.Option(
            "--clients",
            help="JSON of further users: subject, tenant and the hash of their token; "
            "the token of the settings needs the role delegate",
        ),
    ] = None,
    folder: Folder = None,
) -> None:
    """Serve hooks over HTTP, POST /v1/hooks/HOST with a bearer token, and over the socket of the command hooks."""
    from phylactery_hooks.helper import serve as serve_folder
    from phylactery_hooks.http import http_options
    from phylactery_hooks.settings import PATH, TOKEN_FILE, SettingsError

    where = _folder(folder)

    def tell(address: str) -> None:
        typer.echo(f"serving {address}{PATH}{{{','.join(hook.HOSTS)}}}; your token is in {where / TOKEN_FILE}")

    try:
        hook.check_folder(str(where))
        serve_folder(where, http_options(where, listen, clients), tell)
    except (SettingsError, OSError) as error:
        raise _unusable(str(error)) from None


@app.command()
def doctor(host: Host, *, project: Project = None, folder: Folder = None) -> None:
    """Prove that the hooks are in place, allow, deny, and hold when RiskGate is away. Exit code 1: they do not."""
    from phylactery_hooks.doctor import examine

    failed = False
    for check in examine(host, _settings_file(host, project), _folder(folder)):
        typer.echo(f"{'ok  ' if check.passed else 'FAIL'} {check.name}: {check.told}")
        failed = failed or not check.passed
    if failed:
        raise typer.Exit(FAILED)


@app.command()
def bundle(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="an empty folder, or one to make")],
    *,
    allow_tests: Annotated[bool, typer.Option("--allow-tests", help="run tests, builds and commits unasked")] = False,
    allow_writes: Annotated[
        bool, typer.Option("--allow-writes", help="write files of the workspace unless you forbade it")
    ] = False,
) -> None:
    """Write the bundle for coding agents; start RiskGate with it: riskgate serve --bundle DIR."""
    from phylactery_hooks.bundles import BundleError, write_bundle

    try:
        write_bundle(folder, allow_tests=allow_tests, allow_writes=allow_writes)
    except (BundleError, OSError) as error:
        raise _unusable(str(error)) from None
    typer.echo(f"written: {folder}")


@app.command("claude-code")
def claude_code(event: Event = "", *, folder: Folder = None) -> None:
    """Serve one event of Claude Code on standard input; phylactery-hook does the same and starts faster."""
    hook.run(HostName.CLAUDE_CODE, event, str(_folder(folder)))


@app.command()
def codex(event: Event = "", *, folder: Folder = None) -> None:
    """Serve one event of Codex on standard input; phylactery-hook does the same and starts faster."""
    hook.run(HostName.CODEX, event, str(_folder(folder)))


@app.command()
def gemini(event: Event = "", *, folder: Folder = None) -> None:
    """Serve one event of Gemini CLI on standard input; phylactery-hook does the same and starts faster."""
    hook.run(HostName.GEMINI, event, str(_folder(folder)))


def _folder(given: Path | None) -> Path:
    return (given or Path(hook.default_folder())).expanduser().absolute()


def _settings_file(host: HostName, project: Path | None) -> Path:
    from phylactery_hooks.install import settings_path

    return settings_path(host, project.resolve() if project else Path.home())


def _unusable(told: str) -> typer.Exit:
    typer.echo(told, err=True)
    return typer.Exit(UNUSABLE)
