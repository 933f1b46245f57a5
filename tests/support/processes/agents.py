"""Further agent processes over a stack's agent database: the same folder, another port."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from phylactery_chassis.rpc.healthcheck import serving
from phylactery_cli.supervisor import Stack

from tests.support.processes.forks import Forked

LEASE_SECONDS = 2
_LIMIT_SECONDS = 150.0


def wait_until(check: Callable[[], object], what: str) -> None:
    """Wait until a condition holds. Raise AssertionError that names what was awaited."""
    limit = time.monotonic() + _LIMIT_SECONDS
    while not check():
        assert time.monotonic() < limit, f"{what} did not come about"
        time.sleep(0.05)


class OtherAgent(AbstractContextManager["OtherAgent"]):
    """Another agent of a stack; it may die or stop at a crash point."""

    def __init__(self, stack: Stack, name: str, *, point: str = "none", number: str = "SIGKILL") -> None:
        self._ready = stack.data_dir / f"{name}.json"
        self._ready.unlink(missing_ok=True)
        self.log = stack.data_dir / "logs" / f"{name}.log"
        self._environment = {
            **os.environ,
            **stack.extra_env.get("agent", {}),
            "AGENT_DATA_DIR": str(stack.data_dir / "agent"),
            "AGENT_PORT": "0",
            "AGENT_READY_FILE": str(self._ready),
            "AGENT_RISKGATE_TARGET": stack.target("riskgate"),
            "AGENT_MEMORY_TARGET": stack.target("memory"),
            "CRASH_SERVICE": "agent",
            "CRASH_AT": point,
            "CRASH_FILE": "",
            "CRASH_SIGNAL": number,
        }
        self.target = ""

    def __enter__(self) -> Self:
        self.process = Forked("tests.support.processes.crashing", [], self._environment, out=self.log, err=self.log)
        wait_until(self._serves, "another agent")
        return self

    def __exit__(self, _t: type[BaseException] | None, _e: BaseException | None, _b: TracebackType | None) -> None:
        self.process.kill()
        self.process.wait(_LIMIT_SECONDS)

    def stopped(self) -> bool:
        """Return True if it is stopped (SIGSTOP)."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def go_on(self) -> None:
        """Continue a stopped agent."""
        self.process.send_signal(signal.SIGCONT)

    def _serves(self) -> bool:
        if not self._ready.exists():
            assert self.process.poll() is None, self.log.read_text()
            return False
        self.target = f"127.0.0.1:{json.loads(self._ready.read_text())['port']}"
        return serving(self.target, timeout=1)
