"""A gateway in this process that offers the RPCs of real services over HTTP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from phylactery_gateway.app import Gateway, build
from phylactery_gateway.rpc.services import known_services
from phylactery_gateway.settings import GatewaySettings

LIMIT_SECONDS = 150.0


async def eventually(ask: Callable[[], Awaitable[bool]]) -> None:
    """Ask until the answer is yes."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not await ask():
        assert time.monotonic() < limit, "it did not come about"
        await asyncio.sleep(0.05)


@dataclass
class Door:
    """A gateway and a client of it."""

    gateway: Gateway
    client: httpx.AsyncClient

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.gateway.port}"

    async def call(self, path: str, request: Any = None, **headers: str) -> httpx.Response:
        """Post a request as JSON; text is sent as it is. A name in headers has _ for -."""
        body = request if isinstance(request, str | bytes) else json.dumps({} if request is None else request)
        named = {"content-type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        return await self.client.post(path, content=body, headers=named)

    @asynccontextmanager
    async def stream(self, path: str, request: Any = None, **headers: str) -> AsyncIterator[Events]:
        """Open a stream of events for the block."""
        named = {"content-type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        body = json.dumps({} if request is None else request)
        async with self.client.stream("POST", path, content=body, headers=named) as response:
            yield Events(response)


class Events:
    """Reads server-sent events."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self._lines = response.aiter_lines()

    async def next(self) -> dict[str, Any] | None:
        """Return the next event's fields, its data decoded, or {"": …} for a comment; None at the end."""
        found: dict[str, Any] = {}
        async for line in self._lines:
            if not line:
                if found:
                    return found
                continue
            name, _, value = line.partition(": ")
            found[name] = json.loads(value) if name == "data" else value
        return None

    async def rest(self) -> list[dict[str, Any]]:
        """Return all events until the end, without comments."""
        found = []
        while (event := await self.next()) is not None:
            if "" not in event:
                found.append(event)
        return found


def offered(targets: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """Return the setting that offers these services, or all, of the packages at these addresses."""
    found = names or known_services()
    return {name: targets[name.split(".")[1]] for name in found if name.split(".")[1] in targets}


@asynccontextmanager
async def open_door(folder: Path, services: Mapping[str, str], **options: Any) -> AsyncIterator[Door]:
    """Run a gateway without channels for the block."""
    settings = GatewaySettings(
        **{
            "data_dir": folder / "gateway",
            "port": 0,
            "agent_target": "127.0.0.1:1",
            "drain_seconds": 1,
            "rpc_services": dict(services),
            **options,
        }
    )
    gateway = await build(settings)
    await gateway.start()
    try:
        base = f"http://127.0.0.1:{gateway.port}"
        async with httpx.AsyncClient(base_url=base, timeout=LIMIT_SECONDS, trust_env=False) as client:
            yield Door(gateway, client)
    finally:
        await gateway.stop()
