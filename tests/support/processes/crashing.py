"""A service that kills or stops itself at a numbered crash point of docs/effects.md.

The service's own program runs unchanged; only this module, which no distribution ships, installs the hook.
"""

from __future__ import annotations

import os
import runpy
import signal
import threading
from pathlib import Path

from phylactery_chassis.util import crashpoints


def main() -> None:
    """Read CRASH_SERVICE (agent, riskgate, memory) and CRASH_AT, then run the service.

    CRASH_AT is a crash point (agent.7), its n-th occurrence (agent.5#2), or a sequence of points
    (agent.claim#2>agent.write#3). CRASH_SIGNAL replaces SIGKILL by another signal, such as SIGSTOP.

    CRASH_FILE is a file that may appear while the service runs: what it says then replaces CRASH_AT.
    """
    number = signal.Signals[os.environ.get("CRASH_SIGNAL", "SIGKILL")]
    wanted = _points(os.environ.get("CRASH_AT", "none"))
    file = Path(os.environ["CRASH_FILE"]) if os.environ.get("CRASH_FILE") else None
    one_at_a_time = threading.Lock()  # points are reached in several threads

    def die(name: str) -> None:
        with one_at_a_time:
            if file is not None and file.exists():
                wanted[:] = _points(file.read_text())
                file.unlink()
            if not wanted or name != wanted[0]:
                return
            wanted.pop(0)
            if not wanted:
                os.kill(os.getpid(), number)

    crashpoints.install(die)
    runpy.run_module(f"phylactery_{os.environ['CRASH_SERVICE']}", run_name="__main__", alter_sys=True)


def _points(text: str) -> list[str]:
    steps = [step.partition("#") for step in text.split(">")]
    return [name for name, _, times in steps for _ in range(int(times or 1))]


if __name__ == "__main__":
    main()
