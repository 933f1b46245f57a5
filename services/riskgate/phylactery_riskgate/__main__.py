"""Starts RiskGate: python -m phylactery_riskgate."""

from __future__ import annotations

import sys
from typing import Any

from phylactery_chassis.server import run
from phylactery_chassis.settings import explain
from pydantic import ValidationError

from phylactery_riskgate.assembly import build
from phylactery_riskgate.settings import RiskGateSettings


def main(**options: Any) -> None:
    """Runs until SIGINT or SIGTERM; a wrong setting is one sentence on standard error and exit code 2.

    options are settings that go before the environment.
    """
    try:
        settings = RiskGateSettings(**options)
    except ValidationError as error:
        sys.stderr.write(f"riskgate: {explain(error, 'RISKGATE_')}\n")
        raise SystemExit(2) from None
    run(lambda: build(settings), settings)


if __name__ == "__main__":
    main()
