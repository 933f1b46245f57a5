"""Starts the memory service: python -m phylactery_memory."""

from __future__ import annotations

from phylactery_chassis.server import run

from phylactery_memory.service import build
from phylactery_memory.settings import MemorySettings


def main() -> None:
    """Runs until SIGINT or SIGTERM; whatever keeps it from starting is one sentence and exit code 2."""
    run(MemorySettings, build)


if __name__ == "__main__":
    main()
