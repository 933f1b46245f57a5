"""python -m benchmarks [SUITE]: one suite, or all of them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from benchmarks import dialog, intent, labelled_claims, labelled_secrets, memory, reach, riskgate, runtime, sla, webhook

SUITES: Mapping[str, Callable[[], Coroutine[Any, Any, None]]] = {
    "intent": intent.run,
    "riskgate": riskgate.run,
    "memory": memory.run,
    "runtime": runtime.run,
    "reach": reach.run,
    "sla": sla.run,
    "webhook": webhook.run,
    "secrets": labelled_secrets.run,
    "claims": labelled_claims.run,
    "dialog": dialog.run,
}


def main() -> int:
    """Return the exit code: 2 for an unknown suite."""
    wanted = sys.argv[1:] or list(SUITES)
    unknown = [name for name in wanted if name not in SUITES]
    if unknown:
        own = "agentdojo has an environment of its own: make bench SUITE=agentdojo"
        sys.stderr.write(f"no suite {', '.join(unknown)}; there are: {', '.join(SUITES)}; {own}\n")
        return 2
    for name in wanted:
        asyncio.run(SUITES[name]())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
