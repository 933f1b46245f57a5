"""The command `riskgate`: serves, and administers a running service."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Final

import typer
from phylactery_chassis.util.late_commands import late_group
from phylactery_chassis.util.version import version_line

_COMMANDS: Final = {
    "serve": "phylactery_riskgate.cli.serve:serve",
    "migrate": "phylactery_riskgate.cli.serve:migrate",
    "inspect": "phylactery_riskgate.cli.inspect:inspect",
    "evaluate": "phylactery_riskgate.cli.calls:evaluate",
    "explain": "phylactery_riskgate.cli.calls:explain",
    "revoke": "phylactery_riskgate.cli.control:revoke",
    "freeze": "phylactery_riskgate.cli.control:freeze",
    "unfreeze": "phylactery_riskgate.cli.control:unfreeze",
    "undo": "phylactery_riskgate.cli.control:undo",
    "approvals": "phylactery_riskgate.cli.approvals.commands:app",
    "notices": "phylactery_riskgate.cli.notices:app",
    "audit": "phylactery_riskgate.cli.audit.commands:app",
    "receipt": "phylactery_riskgate.cli.receipts:app",
    "catalog": "phylactery_riskgate.cli.catalog:app",
    "keys": "phylactery_riskgate.cli.keys:app",
    "tokens": "phylactery_riskgate.cli.tokens:app",
    "policy": "phylactery_riskgate.cli.policy_lifecycle:app",
}
"""The commands and where they are; they are imported when they are named."""
_OPTIONAL: Final = {
    "hook": "phylactery_hooks.cli:app",
    "mcp-proxy": "phylactery_mcp_proxy.cli:app",
    "doctor": "phylactery_mcp_proxy.doctor:app",
}
"""Commands of distributions that may be installed beside RiskGate, which runs without them."""
_INSTALLED: Final = {name: place for name, place in _OPTIONAL.items() if find_spec(place.partition(".")[0]) is not None}

app = typer.Typer(cls=late_group({**_COMMANDS, **_INSTALLED}), no_args_is_help=True, add_completion=False)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(version_line("phylactery-riskgate", "riskgate"))
        raise typer.Exit


@app.callback()
def riskgate(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """RiskGate: decides about tool calls and keeps the record."""


def main() -> None:
    """Run the command."""
    app()
