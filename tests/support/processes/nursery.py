"""Cheap real service processes for tests that kill many: modules are imported once, then the process forks."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

_ROOT = Path(__file__).resolve().parents[3]


class Nursery:
    """Starts and ends processes of one service."""

    def __init__(self, service: str) -> None:
        """``service`` is agent, riskgate or memory."""
        self._service = service
        self._parent: Any = None

    async def __aenter__(self) -> Self:
        self._parent = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            self._service,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # a process with threads cannot be forked safely
            cwd=_ROOT,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        self._parent.stdin.close()
        assert await self._parent.wait() == 0

    async def start(self, environment: Mapping[str, str]) -> int:
        """Start a process with additional variables and return its pid."""
        return await self._ask({"start": dict(environment)})

    async def end(self, pid: int, number: int) -> int:
        """Signal a process, wait for it, and return its exit code, or the negated signal number."""
        return await self._ask({"end": pid, "signal": number})

    async def ended(self, pid: int) -> bool:
        """Return True if a process has ended."""
        return bool(await self._ask({"ended": pid}))

    async def _ask(self, what: dict[str, Any]) -> int:
        self._parent.stdin.write(json.dumps(what).encode() + b"\n")
        return int(await self._parent.stdout.readline())


def _fork(run: Any, environment: Mapping[str, str]) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.environ.update(environment)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # otherwise a killed nursery's children would hold the pipes of the test
    os.dup2(nothing, 1)
    code = 1
    try:
        run()
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Import the service, then start and end processes as each line of standard input requests."""
    run = importlib.import_module(f"phylactery_{sys.argv.pop()}.__main__").main
    alive: set[int] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            answer = _fork(run, asked["start"])
            alive.add(answer)
        elif "ended" in asked:
            answer = os.waitid(os.P_PID, asked["ended"], os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        else:
            os.kill(asked["end"], asked["signal"])
            answer = os.waitstatus_to_exitcode(os.waitpid(asked["end"], 0)[1])
            alive.remove(asked["end"])
        sys.stdout.write(f"{int(answer)}\n")
        sys.stdout.flush()
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
