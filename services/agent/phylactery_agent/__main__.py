"""Starts the agent: python -m phylactery_agent, configured by AGENT_… in the environment."""

from __future__ import annotations

from phylactery_chassis.rpc import server

from phylactery_agent.app import build
from phylactery_agent.settings import AgentSettings


def main() -> None:
    """Serve until SIGINT or SIGTERM, or migrate where told to; a fault is one sentence and exit code 2."""
    server.main(AgentSettings, build)


if __name__ == "__main__":
    main()
