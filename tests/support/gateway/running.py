"""A gateway in this process between a loopback Graph API, a loopback Bot API, and an agent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.util.clock import Clock
from phylactery_client import PhylacteryClient
from phylactery_gateway import lifting
from phylactery_gateway.app import Gateway, build
from phylactery_gateway.loopback.bot_api import BotServer
from phylactery_gateway.loopback.graph_api import GraphServer, Phone
from phylactery_gateway.settings import GatewaySettings

LIMIT_SECONDS = 150.0
BOT = "778899"


class RealClock:
    """The machine's clock, which a test may move."""

    def __init__(self) -> None:
        self._ahead_us = 0

    def now_us(self) -> int:
        return time.time_ns() // 1_000 + self._ahead_us

    def advance(self, seconds: float) -> None:
        self._ahead_us += int(seconds * 1_000_000)


@dataclass
class Desk:
    """A gateway and what is around it."""

    gateway: Gateway
    graph: GraphServer
    bot: BotServer
    clock: RealClock
    folder: Path

    def phone(self, bsuid: str = "ES.100", phone: str = "34600000001") -> Phone:
        return Phone(self.graph, bsuid, phone)

    async def lift(self, agent_target: str, *people: tuple[str, str]) -> None:
        """Let people do what any user may, as an operator does: channel and id of each, those of the tests if none.

        They need not have written yet.
        """
        async with PhylacteryClient(agent_target) as agent:
            for channel, value in people or (("whatsapp", "ES.100"), ("telegram", "1001")):
                await lifting.lift(self.gateway.database, agent, channel, value)

    async def revoke(self, agent_target: str, channel: str = "whatsapp", value: str = "ES.100") -> None:
        """Make somebody a guest again, as an operator does."""
        async with PhylacteryClient(agent_target) as agent:
            await lifting.revoke(self.gateway.database, agent, channel, value)

    async def rows(self, query: str, **values: Any) -> list[Any]:
        """Return the rows of a query."""
        return list(
            await self.gateway.database.read(lambda connection: connection.execute(sa.text(query), values).all())
        )

    async def until(self, check: Callable[[], Any], what: str = "it") -> Any:
        """Wait until a condition holds and return its value. Raise AssertionError that names what was awaited."""
        return await until(check, what)

    async def until_rows(self, query: str, count: int, **values: Any) -> list[Any]:
        """Wait until a query has so many rows."""
        limit = time.monotonic() + LIMIT_SECONDS
        while len(rows := await self.rows(query, **values)) != count:
            assert time.monotonic() < limit, f"{query} has {len(rows)} rows, not {count}"
            await asyncio.sleep(0.02)
        return rows


async def until(check: Callable[[], Any], what: str = "it") -> Any:
    """Wait until a condition holds and return its value. Raise AssertionError that names what was awaited."""
    limit = time.monotonic() + LIMIT_SECONDS
    while not (value := check()):
        assert time.monotonic() < limit, f"{what} did not come about"
        await asyncio.sleep(0.02)
    return value


def settings_of(folder: Path, graph: GraphServer, bot: BotServer, agent_target: str, **options: Any) -> dict[str, Any]:
    """Return the settings of a gateway between these, and write its secrets."""
    secrets = folder / "secrets"
    secrets.mkdir(parents=True, exist_ok=True)
    contents = {
        "app_secret": graph.app_secret,
        "verify": "verify-me",
        "token": graph.token,
        "bot_token": bot.token,
        "bot_secret": bot.secret,
    }
    for name, content in contents.items():
        (secrets / name).write_text(content)
    return {
        "data_dir": folder / "gateway",
        "port": 0,
        "agent_target": agent_target,
        "debounce_seconds": 0,
        "drain_seconds": 1,
        "look_seconds": 0.5,
        "whatsapp_app_secret_file": secrets / "app_secret",
        "whatsapp_verify_token_file": secrets / "verify",
        "whatsapp_token_file": secrets / "token",
        "whatsapp_numbers": [graph.number],
        "whatsapp_api_url": graph.url,
        "whatsapp_pair_seconds": 0.05,
        "telegram_token_file": secrets / "bot_token",
        "telegram_secret_file": secrets / "bot_secret",
        "telegram_api_url": bot.url,
        **options,
    }


def environment_of(settings: dict[str, Any]) -> dict[str, str]:
    """Return settings as a process's environment."""
    written = {name: json.dumps(value) if isinstance(value, list) else str(value) for name, value in settings.items()}
    return {f"GATEWAY_{name.upper()}": value for name, value in written.items()}


@asynccontextmanager
async def open_servers() -> AsyncIterator[tuple[GraphServer, BotServer]]:
    """Run the channels' servers for the block."""
    graph, bot = GraphServer("app-secret", "graph-token"), BotServer(f"{BOT}:bot-token", "bot-secret")
    await graph.start()
    await bot.start()
    try:
        yield graph, bot
    finally:
        await graph.stop()
        await bot.stop()


@asynccontextmanager
async def open_gateway(
    folder: Path, agent_target: str = "127.0.0.1:1", *, clock: Clock | None = None, **options: Any
) -> AsyncIterator[Desk]:
    """Run a gateway for the block. Without an agent's address there is no agent."""
    own = RealClock()
    async with open_servers() as (graph, bot):
        settings = GatewaySettings(**settings_of(folder, graph, bot, agent_target, **options))
        gateway = await build(settings, clock=clock or own)
        await gateway.start()
        base = f"http://127.0.0.1:{gateway.port}/webhooks"
        graph.webhook, bot.webhook = f"{base}/whatsapp", f"{base}/telegram"
        try:
            yield Desk(gateway, graph, bot, own, folder)
        finally:
            await gateway.stop()
