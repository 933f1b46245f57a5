"""A gateway as a process that serves a phone while strangers attack it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from phylactery_cli.supervisor import Stack
from phylactery_gateway.loopback.graph_api import GraphServer, Phone

from tests.support.gateway.process import GatewayProcess, one_gateway
from tests.support.gateway.running import until

_MIB = 1024 * 1024
_PAUSE_SECONDS = 0.1


@dataclass
class Besieged:
    """The gateway, the phone, and what is seen of both during an attack."""

    process: GatewayProcess
    graph: GraphServer
    stack: Stack
    log: Path
    folder: Path
    healthy: list[float] = field(default_factory=list)
    """How long each answer to a probe took, in seconds."""
    unhealthy: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.process.port)

    def rss_mib(self) -> float:
        """Return what the gateway holds in memory now."""
        assert self.process.process is not None
        return resident_mib(self.process.process.pid)

    def warnings(self) -> list[dict[str, Any]]:
        """Return the gateway's warnings and errors, and what is no line of its log at all."""
        found = []
        for line in self.log.read_text(encoding="utf-8").splitlines():
            try:
                read = json.loads(line)
            except ValueError:
                read = {"level": "error", "event": line}
            if read.get("level") in ("warning", "error", "critical"):
                found.append(read)
        return found

    async def during(self, attack: Awaitable[Any]) -> None:
        """Run an attack to its end; a phone is served and the gateway is healthy meanwhile, and again afterwards."""
        phone = Phone(self.graph, f"ES.{time.monotonic_ns()}")
        probing = asyncio.create_task(self._probe())
        attacking = asyncio.ensure_future(attack)
        try:
            await asyncio.sleep(_PAUSE_SECONDS)
            await self.serves(phone)
            await attacking
            await self.serves(phone)
        finally:
            for task in (attacking, probing):
                task.cancel()
            await asyncio.gather(attacking, probing, return_exceptions=True)
        assert self.healthy
        assert self.unhealthy == []

    async def serves(self, phone: Phone) -> None:
        """Let a phone write, as its channel delivers it: until it is acknowledged. Wait for the reply."""
        before = len(phone.inbox)
        payload = phone.webhook({"type": "text", "text": {"body": "hola"}}, wamid=self.graph.wamid())

        async def deliver() -> None:
            while True:
                with suppress(httpx.HTTPError):
                    if await self.graph.post(payload) == 200:
                        return
                await asyncio.sleep(_PAUSE_SECONDS)

        await deliver()
        await until(lambda: len(phone.inbox) > before, "a reply")

    async def _probe(self) -> None:
        """Ask for the health as a probe does: each time on a connection of its own."""
        while True:
            begun = time.monotonic()
            try:
                async with httpx.AsyncClient(timeout=30) as client:
                    status = (await client.get(f"http://127.0.0.1:{self.port}/healthz")).status_code
                if status == 200:
                    self.healthy.append(time.monotonic() - begun)
                else:
                    self.unhealthy.append(str(status))
            except httpx.HTTPError as error:
                self.unhealthy.append(type(error).__name__)
            await asyncio.sleep(_PAUSE_SECONDS)


def resident_mib(process_id: int) -> float:
    """Return what a process holds in memory now."""
    pages = int(Path(f"/proc/{process_id}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4_096 / _MIB


@asynccontextmanager
async def besieged(stack: Stack, folder: Path) -> AsyncIterator[Besieged]:
    """Run a gateway before the agent of a stack for the block."""
    options = {"lease_seconds": 60, "api_seconds": 20, "head_seconds": 3, "body_seconds": 5}
    async with one_gateway(folder, stack.target("agent"), **options) as (process, graph):
        await process.start()
        place = Besieged(process, graph, stack, folder / "gateway.log", folder)
        await place.serves(Phone(graph))  # what a first message loads is no part of an attack
        yield place
