"""python -m benchmarks.agentdojo: the suite's lines, from a running RiskGate or with --inside from this process."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks.agentdojo.interpreters import Interpreter
from benchmarks.agentdojo.lines import PARTS, measure

_CATALOGS = Path(__file__).parent / "catalogs"
_SUITES = "workspace,banking"


def _options(environment: Mapping[str, str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agentdojo", description=__doc__)
    parser.add_argument(
        "--suites",
        default=environment.get("AGENTDOJO_SUITES", _SUITES),
        help="which suites, with commas; AGENTDOJO_SUITES (%(default)s)",
    )
    parser.add_argument(
        "--catalogs",
        type=Path,
        default=environment.get("AGENTDOJO_CATALOGS", _CATALOGS),
        help="a folder with a folder for each suite that holds its tools.yaml; AGENTDOJO_CATALOGS",
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="what to play (%(default)s)")
    parser.add_argument(
        "--interpreters",
        default=",".join(Interpreter),
        help="who interprets the words: play the parts with each (%(default)s)",
    )
    parser.add_argument("--inside", action="store_true", help="decide in this process: no wire, no log, no permits")
    parser.add_argument("--why", action="store_true", help="tell on standard error what was decided, and why")
    return parser.parse_args()


def main() -> None:
    """Print the lines."""
    options = _options(os.environ)
    asyncio.run(
        measure(
            options.suites.split(","),
            Path(options.catalogs),
            options.parts.split(","),
            options.interpreters.split(","),
            inside=options.inside,
            report=(lambda text: print(text, file=sys.stderr)) if options.why else (lambda _: None),
        )
    )


if __name__ == "__main__":
    main()
