"""Entry point of the memory service: python -m phylactery_memory."""

from __future__ import annotations

from phylactery_chassis.rpc import server

from phylactery_memory.app import build
from phylactery_memory.settings import MemorySettings


def main() -> None:
    """Serve until SIGINT or SIGTERM, or migrate; an error is one sentence and exit code 2."""
    server.main(MemorySettings, build)


if __name__ == "__main__":
    main()
