"""Starts the agent: python -m phylactery_agent, configured by AGENT_… in the environment."""

from __future__ import annotations

import sys

from phylactery_chassis.server import run
from phylactery_chassis.settings import explain
from pydantic import ValidationError

from phylactery_agent.service.build import build
from phylactery_agent.settings import AgentSettings


def main() -> None:
    """Runs the agent until SIGINT or SIGTERM; a wrong setting is one sentence and exit code 2."""
    try:
        settings = AgentSettings()
    except ValidationError as error:
        sys.stderr.write(f"agent: {explain(error, 'AGENT_')}\n")
        raise SystemExit(2) from None
    run(lambda: build(settings), settings)


if __name__ == "__main__":
    main()
