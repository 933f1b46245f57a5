"""A real agent process alongside the services of a test, optionally killed at a crash point."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from pathlib import Path

from grpc import aio

from tests.support.agent.system import System
from tests.support.databases.invariants import at_rest
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
            "CRASH_SERVICE": "agent", "CRASH_AT": point, "CRASH_FILE": str(folder / "crash"), **settings,
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


class MortalAgent:
    """Agents over one folder: where a test had one killed, the next one serves that test's end and the next test."""

    def __init__(self, system: System, **settings: str) -> None:
        self._system, self._settings = system, settings
        self._folders = (system.folder / f"killed-{number}" for number in itertools.count())
        self._process: AgentProcess | None = None
        self.folder = next(self._folders)

    async def channel(self) -> aio.Channel:
        """Return a channel to the agent, which is started where none lives, once nothing is under way."""
        if self._process is None or self._process.child.poll() is not None:
            self._process = AgentProcess(self._system, self.folder, **self._settings)
        channel = await self._process.channel()
        await self._rest()
        return channel

    async def crash_at(self, point: str) -> None:
        """Make the agent die at a crash point, counted from now, when nothing is under way."""
        await self._rest()
        whole = self.folder / "crash.new"
        whole.write_text(point)
        whole.rename(self.folder / "crash")

    async def died(self) -> bool:
        """Wait for the agent's end; return whether it killed itself."""
        assert self._process is not None
        return await asyncio.to_thread(self._process.child.wait, 60) == -signal.SIGKILL

    def leave(self) -> None:
        """End the agent and begin in another folder."""
        if self._process is not None:
            self._process.child.kill()
            self._process.child.wait(60)
        self._process, self.folder = None, next(self._folders)

    async def _rest(self) -> None:
        end = time.monotonic() + 60
        while not at_rest(f"sqlite:///{self.folder / 'agent.db'}"):
            assert time.monotonic() < end, "what the agent had to do did not end"
            await asyncio.sleep(0.02)
