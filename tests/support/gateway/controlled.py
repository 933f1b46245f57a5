"""Real services behind a gateway, for a client in another process, which may stop and start them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.agent.system import System, open_system
from tests.support.gateway.rpc import offered, open_door
from tests.support.processes.ports import lasting_port

ORIGIN = "https://console.example"
_NAMES = ("agent", "memory", "riskgate")


@dataclass
class Controlled:
    """The services, their gateway, and the address where they are stopped and started."""

    system: System
    folder: Path
    agent_port: int
    gateway_options: Mapping[str, Any]
    gateway_port: int = field(default_factory=lasting_port)
    control_url: str = ""
    _gateway: AsyncExitStack = field(default_factory=AsyncExitStack)

    @property
    def url(self) -> str:
        """The URL of the gateway, the same after a restart."""
        return f"http://127.0.0.1:{self.gateway_port}"

    @property
    def env(self) -> dict[str, str]:
        """What a test in another process is told."""
        return {
            "PHYLACTERY_URL": self.url,
            "PHYLACTERY_CONTROL": self.control_url,
            "PHYLACTERY_ORIGIN": ORIGIN,
            "PHYLACTERY_SANDBOX": str(self.system.sandbox),
        }

    async def start_gateway(self) -> None:
        services = offered({name: self.system.target(name) for name in _NAMES})
        options = {"port": self.gateway_port, "rpc_origins": [ORIGIN], **self.gateway_options}
        await self._gateway.enter_async_context(open_door(self.folder, services, **options))

    async def stop_gateway(self) -> None:
        await self._gateway.aclose()

    async def start_agent(self) -> None:
        await self.system.start_agent(port=self.agent_port)

    async def stop_agent(self) -> None:
        await self.system.stop("agent")

    async def obey(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Do what a request's path names, and answer when it is done."""
        actions: dict[str, Callable[[], Awaitable[None]]] = {
            "/start-gateway": self.start_gateway,
            "/stop-gateway": self.stop_gateway,
            "/start-agent": self.start_agent,
            "/stop-agent": self.stop_agent,
        }
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        await actions[path]()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def controlled(
    folder: Path, *, gateway_options: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[Controlled]:
    """Run the services and the gateway for the block; ``options`` are those of open_system."""
    port = lasting_port()
    async with open_system(folder, **options, port=port) as system:
        services = Controlled(system, folder, port, gateway_options or {})
        server = await asyncio.start_server(services.obey, "127.0.0.1", 0)
        services.control_url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await services.start_gateway()
        try:
            yield services
        finally:
            server.close()
            await services.stop_gateway()
