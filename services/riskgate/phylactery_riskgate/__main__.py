"""Starts RiskGate: python -m phylactery_riskgate."""

from __future__ import annotations

from typing import Any

from phylactery_chassis import server

from phylactery_riskgate.assembly import build
from phylactery_riskgate.settings import RiskGateSettings


def serve(**options: Any) -> None:
    """Runs until SIGINT or SIGTERM; whatever keeps it from starting is one sentence and exit code 2.

    options are settings that go before the environment.
    """
    server.run(RiskGateSettings, build, **options)


def main() -> None:
    """Serves, or migrates where told to."""
    server.main(RiskGateSettings, build)


if __name__ == "__main__":
    main()
