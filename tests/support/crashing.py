"""Starts a service that kills itself with SIGKILL, or stops itself, at one numbered crash point of effects.md.

The service's own program runs unchanged; only this module, which no distribution ships, installs the hook.
"""

from __future__ import annotations

import os
import runpy
import signal

from phylactery_chassis import crashpoints


def main() -> None:
    """Reads CRASH_SERVICE (agent, riskgate, memory) and CRASH_AT, then runs the service.

    CRASH_AT is a crash point, agent.7, or its n-th time, agent.5#2. CRASH_SIGNAL names another signal, SIGSTOP.
    """
    number = signal.Signals[os.environ.get("CRASH_SIGNAL", "SIGKILL")]
    wanted, _, nth = os.environ["CRASH_AT"].partition("#")
    left = int(nth or 1)

    def die(name: str) -> None:
        nonlocal left
        left -= name == wanted
        if left == 0 and name == wanted:
            os.kill(os.getpid(), number)

    crashpoints.install(die)
    runpy.run_module(f"phylactery_{os.environ['CRASH_SERVICE']}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
