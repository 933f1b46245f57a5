"""Attacks on the ports of a running installation, while a phone is served: memory, health, answers, and the log."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.agent.v1 import tool_pb2, tool_pb2_grpc

from tests.support.gateway.besieged import Besieged, resident_mib
from tests.support.gateway.running import until
from tests.support.gateway.strangers import MADE_UP, UNSIGNED, Stranger, connect, connected, head

pytestmark = pytest.mark.slow
CONNECTIONS = 200
LARGE = 2_900_000
FEW_MIB = 25.0
"""What 200 connections may hold that send nothing that is kept. It is 4 where nothing else runs, and was 768."""
HELD_MIB = 16 + 2 * FEW_MIB
"""With bodies of signatures that nobody made: GATEWAY_MAX_HELD_BYTES, and what is between it and the sockets."""
WARNINGS = 8
"""So many lines an attack may cause; each sends thousands."""


async def each(strangers: list[Stranger], act: Callable[[Stranger], Awaitable[Any]]) -> None:
    async with asyncio.TaskGroup() as group:
        for one in strangers:
            group.create_task(_any(act(one)))


async def _any(act: Awaitable[Any]) -> Any:
    return await act


async def large_bodies(place: Besieged, signature: str, limit: float) -> None:
    """Send a large body over each of many connections, and keep them open."""
    before = place.rss_mib()
    async with connected(place.port, CONNECTIONS) as strangers:

        async def act(one: Stranger) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(4):
                    await one.send(head(length=LARGE, more=signature) + b"x" * (LARGE - 1), pieces=64 * 1024)

        await each(strangers, act)
        highest = place.rss_mib()
        for _ in range(10):
            await asyncio.sleep(0.1)
            highest = max(highest, place.rss_mib())
    assert highest - before < limit, f"{before:.0f} MiB grew to {highest:.0f}"


async def slow_heads(place: Besieged) -> None:
    """Send heads a byte at a time, and nothing at all."""
    async with connected(place.port, CONNECTIONS) as strangers:
        for one in strangers[::4]:
            await one.send(b"POST /webhooks/whatsapp HTTP/1.1\r\n")
        await each(strangers[1::4], lambda one: one.send(head(more="X: y\r\n" * 20), pieces=4, pause=0.1))


async def slow_bodies(place: Besieged) -> None:
    """Send bodies a byte at a time, some in chunks."""
    async with connected(place.port, CONNECTIONS) as strangers:
        for number, one in enumerate(strangers):
            await one.send(head(length=LARGE if number % 2 else None, more=MADE_UP))
        await each(strangers, lambda one: one.send(b"1\r\nx\r\n" * 6, pieces=1, pause=0.1))


async def wrong_signatures(place: Besieged) -> None:
    """Send whole webhooks that are signed by nobody, by another secret, and over another body."""
    body = json.dumps(place.graph.change({"messages": []})).encode()
    others = (MADE_UP, f"X-Hub-Signature-256: {place.graph.sign(body + b' ')}\r\n", "X-Hub-Signature-256: sha256=x\r\n")
    for _ in range(300):
        for more in others:
            one = await connect(place.port)
            await one.send(head(length=len(body), more=more) + body)
            assert await one.status() == 401
            one.leave()


async def malformed(place: Besieged) -> None:
    """Send what is no HTTP, heads without an end, and chunks that lie."""
    parts = (
        b"\x16\x03\x01" * 500,
        b"\x00" * 9_000,
        b"GET /" + b"a" * 60_000,
        b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 9_000,
        b"POST /webhooks/whatsapp HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        head(length=None, more=MADE_UP) + b"zz\r\nx\r\n",
        head(length=None, more=MADE_UP) + b"5\r\nhello world\r\n0\r\n\r\n",
        head(length=None, more=MADE_UP) + b"fffffff\r\n" + b"x" * 9_000,
        head(length=9, more=f"{MADE_UP}Transfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        head("/phylactery.agent.v1.ChatService/SendMessage", length=LARGE),
        head("/webhooks/" + "%00" * 900, length=LARGE),
    )
    for _ in range(60):
        for part in parts:
            one = await connect(place.port)
            await one.send(part)
            one.leave()


async def sent_ahead(place: Besieged) -> None:
    """Send thousands of requests ahead and read no answer."""
    ahead = head("/healthz", method="GET") * 2_000
    async with connected(place.port, 20) as strangers:

        async def act(one: Stranger) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(3):
                    await one.send(ahead, pieces=64 * 1024)

        await each(strangers, act)


async def many_connections(place: Besieged) -> None:
    """Open more connections than there are places."""
    async with connected(place.port, 2_300) as strangers:
        for one in strangers[::10]:
            await one.send(b"GET /")


ATTACKS: dict[str, tuple[Callable[[Besieged], Awaitable[None]], float]] = {
    "unsigned large bodies": (lambda place: large_bodies(place, UNSIGNED, FEW_MIB), FEW_MIB),
    "large bodies of made-up signatures": (lambda place: large_bodies(place, MADE_UP, HELD_MIB), HELD_MIB),
    "slow heads": (slow_heads, FEW_MIB),
    "slow bodies": (slow_bodies, FEW_MIB),
    "wrong signatures": (wrong_signatures, FEW_MIB),
    "malformed": (malformed, FEW_MIB),
    "sent ahead": (sent_ahead, FEW_MIB),
    "more connections than places": (many_connections, 100.0),
}


async def test_a_phone_is_served_through_every_attack_on_the_public_port(place: Besieged) -> None:
    for name, (attack, limit) in ATTACKS.items():
        before, said = place.rss_mib(), len(place.warnings())
        await place.during(attack(place))
        grown, lines = place.rss_mib() - before, place.warnings()[said:]
        assert grown < limit, f"{name}: {grown:.0f} MiB"
        assert len(lines) <= WARNINGS, f"{name}: {lines[:20]}"
        place.healthy.clear()


async def test_a_giant_webhook_that_is_signed_keeps_nobody_waiting_and_is_read_whole(place: Besieged) -> None:
    elements = [{"id": f"wamid.s{n}", "status": "read", "timestamp": "1", "recipient_id": "1"} for n in range(20_000)]
    body = json.dumps(place.graph.change({"statuses": elements})).encode()
    assert len(body) < 3 * 1024 * 1024

    def stored() -> int:
        with closing(sqlite3.connect(place.folder / "gateway" / "gateway.db")) as database:
            [(count,)] = database.execute("SELECT count(*) FROM inbox WHERE element_id LIKE 'status:wamid.s%'")
            return int(count)

    async def giant() -> None:
        assert await place.graph.post(body) == 200
        assert stored() < len(elements), "it is acknowledged before it is read"
        assert await place.graph.post(body) == 200

    await place.during(giant())
    await until(lambda: stored() == len(elements), "every element")


@pytest.mark.parametrize(
    ("kind", "connections", "count"),
    [("reset", 4, 30_000), ("open", 8, 3_000), ("reset", 16, 5_000), ("ping", 8, 5_000)],
)
async def test_calls_that_strangers_reset_cancel_nobody_elses(
    place: Besieged, kind: str, connections: int, count: int
) -> None:
    port, path = place.stack.processes["agent"].port, "/phylactery.agent.v1.ChatService/SendMessage"
    command = ("-m", "tests.support.servers.http2_flood", str(port), str(connections), str(count), path, kind)
    before = resident_mib(place.stack.processes["agent"].process.pid)
    failures: list[str] = []
    answered = 0

    async def others(channel: aio.Channel) -> None:
        nonlocal answered
        while True:
            try:
                await tool_pb2_grpc.ToolServiceStub(channel).ListTools(tool_pb2.ListToolsRequest(), timeout=60)
                answered += 1
            except grpc.RpcError as error:
                failures.append(f"{error.code().name}: {error.details()}")
            await asyncio.sleep(0.05)

    async def flood() -> None:
        process = await asyncio.create_subprocess_exec(sys.executable, *command)
        assert await process.wait() == 0

    options = [("grpc.enable_retries", 0)]  # what a client does about it is tested elsewhere
    async with aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        calling = [asyncio.create_task(others(channel)) for _ in range(3)]
        await place.during(flood())
        for task in calling:
            task.cancel()
        await asyncio.gather(*calling, return_exceptions=True)
    assert failures == []
    assert answered > 0
    assert resident_mib(place.stack.processes["agent"].process.pid) - before < 300
