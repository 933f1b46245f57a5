"""Entry point of the agent: ``python -m phylactery_agent``, configured by AGENT_… environment variables."""

from __future__ import annotations

from phylactery_chassis.rpc import server

from phylactery_agent.app import build
from phylactery_agent.settings import AgentSettings


def main() -> None:
    """Serve until SIGINT or SIGTERM, or migrate if requested; on failure exit with one sentence and code 2."""
    server.main(AgentSettings, build)


if __name__ == "__main__":
    main()
