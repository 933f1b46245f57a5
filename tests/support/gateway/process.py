"""A gateway as a process of its own."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from phylactery_gateway.loopback.graph_api import GraphServer

from tests.support.gateway.running import environment_of, open_servers, settings_of, until
from tests.support.processes import commands
from tests.support.processes.forks import Forked
from tests.support.processes.ports import lasting_port

_CRASHING = "tests.support.processes.crashing"


class GatewayProcess:
    """A gateway in a process of its own."""

    def __init__(
        self, folder: Path, environment: dict[str, str], name: str = "gateway", *, module: str = _CRASHING
    ) -> None:
        self._folder, self._environment, self._name, self._module = folder, environment, name, module
        self.process: Forked | None = None

    async def start(self, point: str = "none") -> None:
        ready, log = self._folder / f"{self._name}.json", self._folder / f"{self._name}.log"
        ready.unlink(missing_ok=True)
        environment = {
            **os.environ,
            **self._environment,
            "GATEWAY_READY_FILE": str(ready),
            "CRASH_SERVICE": "gateway",
            "CRASH_AT": point,
        }
        self.process = Forked(self._module, [], environment, out=log, err=log)

        def serves() -> bool:
            assert self.process is not None
            assert self.process.poll() is None, log.read_text()
            return ready.exists()

        await until(serves, "a gateway")
        self.port = json.loads(ready.read_text())["port"]

    async def lift(self, *bsuids: str) -> None:
        """Let people do what any user may, by the command of an operator."""
        for bsuid in bsuids or ("ES.13491208655302741918",):
            run = partial(commands.run, environment={**os.environ, **self._environment})
            done = await asyncio.to_thread(run, "phylactery_gateway", "lift", "whatsapp", bsuid)
            assert done.returncode == 0, done.stderr

    async def died(self) -> None:
        assert self.process is not None
        assert await asyncio.to_thread(self.process.wait, 60) == -9

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)


@asynccontextmanager
async def one_gateway(folder: Path, agent: str, **options: Any) -> AsyncIterator[tuple[GatewayProcess, GraphServer]]:
    """Run the channels' servers for the block, beside a gateway that is not started yet."""
    async with open_servers() as (graph, bot):
        port = lasting_port()
        settings = settings_of(
            folder, graph, bot, agent, port=port, **{"api_seconds": 1, "lease_seconds": 4, **options}
        )
        graph.webhook = f"http://127.0.0.1:{port}/webhooks/whatsapp"
        process = GatewayProcess(folder, environment_of(settings))
        try:
            yield process, graph
        finally:
            process.kill()
