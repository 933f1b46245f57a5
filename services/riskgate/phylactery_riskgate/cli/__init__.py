"""The command `riskgate`: serves, and administers a running service."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Final

import typer
from phylactery_chassis.auth.commands import make_app
from phylactery_chassis.util.version import version_line

from phylactery_riskgate.cli import catalog, control, keys, policy_lifecycle
from phylactery_riskgate.cli.approvals import commands as approvals
from phylactery_riskgate.cli.audit import commands as audit
from phylactery_riskgate.cli.calls import evaluate, explain
from phylactery_riskgate.cli.common import unusable
from phylactery_riskgate.cli.inspect import inspect
from phylactery_riskgate.cli.serve import migrate, serve

app = typer.Typer(no_args_is_help=True, add_completion=False)


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


app.command()(serve)
app.command()(migrate)
app.command()(inspect)
app.command()(evaluate)
app.command()(explain)
app.command()(control.revoke)
app.add_typer(control.freeze, name="freeze")
app.add_typer(control.unfreeze, name="unfreeze")
app.add_typer(approvals.app, name="approvals")
app.add_typer(audit.app, name="audit")
app.add_typer(catalog.app, name="catalog")
app.add_typer(keys.app, name="keys")
app.add_typer(make_app(unusable), name="tokens")
app.add_typer(policy_lifecycle.app, name="policy")

_OPTIONAL: Final = (
    ("hook", "phylactery_hooks", "cli"),
    ("mcp-proxy", "phylactery_mcp_proxy", "cli"),
    ("doctor", "phylactery_mcp_proxy", "doctor"),
)
"""Commands of distributions that may be installed beside RiskGate, which runs without them."""
for _name, _package, _module in _OPTIONAL:
    if find_spec(_package) is not None:
        app.add_typer(import_module(f"{_package}.{_module}").app, name=_name)


def main() -> None:
    """Run the command."""
    app()
