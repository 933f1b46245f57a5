"""Starts the agent: python -m phylactery_agent, configured by AGENT_… in the environment."""

from __future__ import annotations

from phylactery_chassis.server import run

from phylactery_agent.service.build import build
from phylactery_agent.settings import AgentSettings


def main() -> None:
    """Runs until SIGINT or SIGTERM; whatever keeps it from starting is one sentence and exit code 2."""
    run(AgentSettings, build)


if __name__ == "__main__":
    main()
