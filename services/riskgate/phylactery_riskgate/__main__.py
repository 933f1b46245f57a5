"""Entry point: starts RiskGate with `python -m phylactery_riskgate`."""

from __future__ import annotations

from typing import Any

from phylactery_chassis.rpc import server

from phylactery_riskgate.app import build
from phylactery_riskgate.settings import RiskGateSettings


def serve(*, workers: int = 1, **options: Any) -> None:
    """Serve until SIGINT or SIGTERM; report a failed start in one sentence and exit with code 2.

    workers is the number of processes behind one port, each with its own audit log. options are settings that take
    precedence over the environment.
    """
    if workers > 1:
        server.run_workers(RiskGateSettings, workers, **options)
    else:
        server.run(RiskGateSettings, build, **options)


def main() -> None:
    """Serve, or run the migrations, as the command line says."""
    server.main(RiskGateSettings, build)


if __name__ == "__main__":
    main()
