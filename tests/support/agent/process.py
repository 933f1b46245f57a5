"""A real agent process alongside the services of a test, optionally killed at a crash point."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

from grpc import aio

from tests.support.agent.system import System
from tests.support.processes.forks import Forked


class AgentProcess:
    """A real agent process with its own folder, optionally killed at a crash point."""

    def __init__(self, system: System, folder: Path, point: str = "none", **settings: str) -> None:
        """``point`` is the crash point; ``settings`` are further environment variables."""
        self.ready = folder / "ready.json"
        folder.mkdir(exist_ok=True)
        self.ready.unlink(missing_ok=True)
        environment = {
            **os.environ, "AGENT_PORT": "0", "AGENT_DATA_DIR": str(folder), "AGENT_READY_FILE": str(self.ready),
            "AGENT_LOG_LEVEL": "ERROR", "AGENT_APPROVAL_POLL_SECONDS": "0", "AGENT_RETRY_SECONDS": "0.05",
            "AGENT_RISKGATE_TARGET": system.target("riskgate"), "AGENT_MEMORY_TARGET": system.target("memory"),
            "CRASH_SERVICE": "agent", "CRASH_AT": point, **settings,
        }  # fmt: skip
        self.child = Forked("tests.support.processes.crashing", environment=environment)

    async def channel(self) -> aio.Channel:
        while not self.ready.exists():
            assert self.child.poll() is None
            await asyncio.sleep(0.05)
        port = json.loads(self.ready.read_text())["port"]
        return aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.enable_retries", 0)])

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(60) == 0
