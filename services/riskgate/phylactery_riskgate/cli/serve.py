"""`riskgate serve` and `riskgate migrate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.rpc.server import migrate as migrate_database

from phylactery_riskgate.__main__ import serve as serve_forever
from phylactery_riskgate.cli.common import DataDir, given
from phylactery_riskgate.settings import RiskGateSettings


def serve(  # noqa: PLR0917 - typer's options
    bundle: Annotated[Path | None, typer.Option(help="the bundle's folder; none is the packaged one")] = None,
    or_active: Annotated[
        bool, typer.Option("--or-active", help="use the active bundle if that one cannot be used")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", help="take over a changed bundle folder while serving")] = False,
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="address to listen on")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on; 0 takes a free one")] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="number of processes, each with its own log")] = 1,
) -> None:
    """Serve until it is stopped. Every other setting comes from RISKGATE_… variables.

    A bundle that is named decides, or nothing is served; without one the active bundle of the data folder does.
    """
    options = given(
        bundle=bundle,
        bundle_or_active=or_active or None,
        watch_bundle=watch or None,
        data_dir=data_dir,
        host=host,
        port=port,
    )
    serve_forever(workers=workers, **options)


def migrate() -> None:
    """Bring the database to this version's schema. SQLite does so at every start; PostgreSQL only here."""
    migrate_database(RiskGateSettings)
