"""Starts RiskGate: python -m phylactery_riskgate."""

from __future__ import annotations

from typing import Any

from phylactery_chassis.server import run

from phylactery_riskgate.assembly import build
from phylactery_riskgate.settings import RiskGateSettings


def main(**options: Any) -> None:
    """Runs until SIGINT or SIGTERM; whatever keeps it from starting is one sentence and exit code 2.

    options are settings that go before the environment.
    """
    run(RiskGateSettings, build, **options)


if __name__ == "__main__":
    main()
