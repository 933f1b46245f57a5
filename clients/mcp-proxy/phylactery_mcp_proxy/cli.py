"""The command `riskgate mcp-proxy`: runs a proxy, and pins the tools of its server.

What it needs beyond typer is imported when it runs, because `riskgate` loads this module at every start.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from phylactery_mcp_proxy.settings import ServerTarget
    from phylactery_mcp_proxy.state.folder import StateFolder

DEFAULT_TARGET: Final = "127.0.0.1:50052"
REFUSED, UNUSABLE = 1, 2
"""Exit codes: a person did not accept; the command could not be carried out."""
_RUN: Final = "run"


class _RunByDefault(TyperGroup):
    """A group whose command without a name is ``run``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert ``run`` unless another command, or help, is named."""
        if args and args[0] not in self.commands and args[0] not in {*ctx.help_option_names, "--version"}:
            args = [_RUN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_RunByDefault,
    no_args_is_help=True,
    add_completion=False,
    help="Put RiskGate in front of an MCP server. Without a command: run.",
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib import metadata

        # all distributions carry one version, and this one may run from a checkout
        typer.echo(f"phylactery-mcp-proxy {metadata.version('phylactery-client')}")
        raise typer.Exit


@app.callback()
def proxy(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Put RiskGate in front of an MCP server. Without a command: run."""


Name = Annotated[str, typer.Option("--name", help="the server's name: lower-case letters and digits")]
Command = Annotated[list[str] | None, typer.Argument(metavar="[-- COMMAND …]", help="the server's command")]
Url = Annotated[str, typer.Option("--url", help="the server's URL (streamable HTTP), instead of a command")]
Env = Annotated[
    list[str] | None, typer.Option("--env", help="a variable to pass on to the server; repeat it for others")
]
HeaderFile = Annotated[
    list[str] | None, typer.Option("--header-file", metavar="NAME=FILE", help="a header for the URL, from a file")
]
PlainHttp = Annotated[bool, typer.Option("--plain-http", help="permit http:// to another machine")]
State = Annotated[
    Path | None,
    typer.Option("--state", help="folder for pins and state; ~/.local/state/phylactery/mcp-proxy/NAME without it"),
]
StartSeconds = Annotated[float, typer.Option("--start-seconds", min=1, max=600, help="time the server has to start")]


@app.command(_RUN)
def run_proxy(  # noqa: PLR0917 - typer's options
    name: Name,
    command: Command = None,
    url: Url = "",
    env: Env = None,
    header_file: HeaderFile = None,
    plain_http: PlainHttp = False,
    state: State = None,
    start_seconds: StartSeconds = 20.0,
    call_seconds: Annotated[
        float, typer.Option("--call-seconds", min=1, max=86_400, help="time a call has; then its effect is in doubt")
    ] = 120.0,
    target: Annotated[
        str, typer.Option("--target", envvar="RISKGATE_TARGET", help="where RiskGate is, as host:port")
    ] = DEFAULT_TARGET,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="file with the proxy's token; without it RISKGATE_TOKEN")
    ] = None,
    subject: Annotated[
        str, typer.Option("--subject", help="whose client this is; the proxy's token needs the role delegate")
    ] = "",
    forms: Annotated[
        bool, typer.Option("--forms", help="ask that person for approvals of class self through the client")
    ] = False,
    thread: Annotated[str, typer.Option("--thread", help="the thread of the calls at RiskGate; mcp-NAME")] = "",
    http: Annotated[
        str, typer.Option("--http", metavar="HOST:PORT", help="serve streamable HTTP, instead of standard streams")
    ] = "",
    clients: Annotated[
        Path | None, typer.Option("--clients", help="with --http: JSON of subjects and the hashes of their tokens")
    ] = None,
    http_host: Annotated[
        list[str] | None, typer.Option("--http-host", help="with --http: a further Host under which it is reached")
    ] = None,
) -> None:
    """Serve the pinned tools of an MCP server, each call decided by RiskGate.

    For an MCP client this is the server: put this command, with the real one after --, into its configuration.
    """
    from phylactery_mcp_proxy.frontend.http import Address, read_clients
    from phylactery_mcp_proxy.running import Options, run
    from phylactery_mcp_proxy.settings import ConfigError, GateTarget, read_secret
    from phylactery_mcp_proxy.state.folder import StateError

    quiet_logs()
    try:
        server = _server(name, command, url, env, header_file, plain_http, start_seconds, call_seconds)
        if forms and not (subject or clients):
            raise ConfigError("--forms needs --subject, or --clients: say whose answers they are")  # noqa: TRY301
        if (clients or http_host) and not http:
            raise ConfigError("--clients and --http-host go with --http")  # noqa: TRY301
        token = read_secret(token_file, "--token-file") if token_file else os.environ.get("RISKGATE_TOKEN", "").strip()
        options = Options(
            target=server,
            gate=GateTarget(target, token, subject, thread),
            folder=_folder(state, name),
            forms=forms,
            http=Address.parse(http, tuple(http_host or ())) if http else None,
            clients=read_clients(clients) if clients else None,
        )
        asyncio.run(run(options))
    except (ConfigError, StateError) as error:
        raise _unusable(str(error)) from None
    except KeyboardInterrupt:
        raise typer.Exit from None


@app.command()
def pin(  # noqa: PLR0917 - typer's options
    name: Name,
    command: Command = None,
    url: Url = "",
    env: Env = None,
    header_file: HeaderFile = None,
    plain_http: PlainHttp = False,
    state: State = None,
    start_seconds: StartSeconds = 20.0,
    trust_annotations: Annotated[
        bool, typer.Option("--trust-annotations", help="draft with the server's annotations even where they relax")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="pin without asking")] = False,
) -> None:
    """Show what a server's tools are, or how they changed, and pin them; draft their entries for the catalog.

    Exit code 0: pinned, or nothing changed. 1: not accepted. 2: the server or the folder cannot be used.
    """
    from phylactery_mcp_proxy.settings import ConfigError
    from phylactery_mcp_proxy.state.catalog import draft, next_steps, write_offered
    from phylactery_mcp_proxy.state.folder import StateError
    from phylactery_mcp_proxy.state.pins import Pins, changes, load_pins, save_pins
    from phylactery_mcp_proxy.upstream.session import connected, list_tools, why_of

    async def listed() -> Any:
        async with connected(server, lambda: None) as (session, _), asyncio.timeout(start_seconds):
            return await list_tools(session)

    quiet_logs()
    try:
        server = _server(name, command, url, env, header_file, plain_http, start_seconds, call_seconds=1)
        folder = _folder(state, name)
        pins = load_pins(folder)
    except (ConfigError, StateError) as error:
        raise _unusable(str(error)) from None
    try:
        found = asyncio.run(listed())
    except Exception as error:  # noqa: BLE001 - any failure of a server is reported in one sentence
        raise _unusable(f"the tools of {name} cannot be listed: {why_of(error)}") from None
    moved = bool(pins.tools) and pins.server != server.identity
    differences = list(changes(pins.tools, found))
    if moved:
        typer.echo(f"The pins of {name} are those of another command or URL.")
    for one in differences:
        typer.echo(f"{one.kind}: {one.tool!a:.200}")
        for line in one.lines:
            typer.echo(f"  {line}")
    if not differences and not moved:
        typer.echo(f"The tools of {name} are as they were pinned.")
    elif not yes and not typer.confirm(f"Pin the {len(found)} tools of {name} as they are now?"):
        raise typer.Exit(REFUSED)
    try:
        save_pins(folder, Pins(server.identity, found))
        write_offered(folder, name, found)
        drafted = asyncio.run(draft(folder, trust_annotations=trust_annotations))
    except StateError as error:
        raise _unusable(str(error)) from None
    typer.echo(f"{len(found)} tools of {name} are pinned. A running proxy takes them over when it is started again.")
    typer.echo(next_steps(name, folder, drafted))


def main() -> None:
    """Run the command."""
    app()


def quiet_logs() -> None:
    """Log our own sentences to standard error, and nothing of the SDK, which repeats what servers send."""
    logging.basicConfig(stream=sys.stderr, level=logging.ERROR, format="riskgate mcp-proxy: %(message)s")
    logging.getLogger("phylactery_mcp_proxy").setLevel(logging.WARNING)
    for name in ("mcp", "client", "httpx2", "uvicorn"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).propagate = False


def _server(  # noqa: PLR0917 - the options of both commands
    name: str,
    command: list[str] | None,
    url: str,
    env: list[str] | None,
    header_file: list[str] | None,
    plain_http: bool,
    start_seconds: float,
    call_seconds: float,
) -> ServerTarget:
    from phylactery_mcp_proxy.settings import ConfigError, ServerTarget

    headers = {}
    for one in header_file or ():
        header, equals, file = one.partition("=")
        if not equals or not file:
            raise ConfigError("--header-file takes NAME=FILE")
        headers[header] = Path(file)
    return ServerTarget(
        name=name,
        command=tuple(command or ()),
        url=url,
        env=tuple(env or ()),
        header_files=headers,
        plain_http=plain_http,
        start_seconds=start_seconds,
        call_seconds=call_seconds,
    )


def _folder(state: Path | None, name: str) -> StateFolder:
    from phylactery_mcp_proxy.state.folder import StateFolder, default_folder

    return StateFolder(state or default_folder(name))


def _unusable(message: str) -> typer.Exit:
    shown = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in message)
    typer.echo(f"riskgate mcp-proxy: {shown}", err=True)
    return typer.Exit(UNUSABLE)
