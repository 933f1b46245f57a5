"""A service that kills or stops itself at a numbered crash point of docs/effects.md.

The service's own program runs unchanged; only this module, which no distribution ships, installs the hook.
"""

from __future__ import annotations

import os
import runpy
import signal

from phylactery_chassis.util import crashpoints


def main() -> None:
    """Read CRASH_SERVICE (agent, riskgate, memory) and CRASH_AT, then run the service.

    CRASH_AT is a crash point (agent.7), its n-th occurrence (agent.5#2), or a sequence of points
    (agent.claim#2>agent.write#3). CRASH_SIGNAL replaces SIGKILL by another signal, such as SIGSTOP.
    """
    number = signal.Signals[os.environ.get("CRASH_SIGNAL", "SIGKILL")]
    wanted = [name for step in os.environ["CRASH_AT"].split(">") for name in _times(step)]

    def die(name: str) -> None:
        if not wanted or name != wanted[0]:
            return
        wanted.pop(0)
        if not wanted:
            os.kill(os.getpid(), number)

    crashpoints.install(die)
    runpy.run_module(f"phylactery_{os.environ['CRASH_SERVICE']}", run_name="__main__", alter_sys=True)


def _times(step: str) -> list[str]:
    name, _, times = step.partition("#")
    return [name] * int(times or 1)


if __name__ == "__main__":
    main()
