"""Starts the memory service: python -m phylactery_memory."""

from __future__ import annotations

import sys

from phylactery_chassis.server import run
from phylactery_chassis.settings import explain
from pydantic import ValidationError

from phylactery_memory.service import build
from phylactery_memory.settings import MemorySettings


def main() -> None:
    """Runs until SIGINT or SIGTERM; a wrong setting is one sentence on standard error and exit code 2."""
    try:
        settings = MemorySettings()
    except ValidationError as error:
        sys.stderr.write(f"memory: {explain(error, 'MEMORY_')}\n")
        raise SystemExit(2) from None
    run(lambda: build(settings), settings)


if __name__ == "__main__":
    main()
