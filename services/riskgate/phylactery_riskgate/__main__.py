"""Starts RiskGate: python -m phylactery_riskgate."""

from __future__ import annotations

from typing import Any

from phylactery_chassis.rpc import server

from phylactery_riskgate.app import build
from phylactery_riskgate.settings import RiskGateSettings


def serve(*, workers: int = 1, **options: Any) -> None:
    """Run until SIGINT or SIGTERM; whatever keeps it from starting is one sentence and exit code 2.

    workers are processes behind one port, each with an audit log of its own. options are settings that go before the
    environment.
    """
    if workers > 1:
        server.run_workers(RiskGateSettings, workers, **options)
    else:
        server.run(RiskGateSettings, build, **options)


def main() -> None:
    """Serve, or migrate where told to."""
    server.main(RiskGateSettings, build)


if __name__ == "__main__":
    main()
