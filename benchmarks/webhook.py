"""How long the gateway takes to acknowledge a webhook, at three times its declared load, every message sent twice.

The load is open: a webhook is sent when it is due, however long the earlier ones take, and its time counts from then.
The gateway is a process of its own over SQLite with every commit synced. There is no agent: the acknowledgement must
not depend on one, and the gateway tries to reach it all the while.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import httpx
from phylactery_gateway.loopback.graph_api import GraphServer, Phone

from benchmarks.gateways import gateway
from benchmarks.measure import Sample, emit

DECLARED: Final = 20
"""Messages a second that one gateway process is meant for."""
TIMES: Final = 3
SECONDS: Final = 20
PEOPLE: Final = 100
PROMISED_MS: Final = 250
_SECRETS: Final = {"APP_SECRET": "app-secret", "VERIFY_TOKEN": "verify", "TOKEN": "graph-token"}


async def run() -> None:
    """Print the latencies, and whether each message was stored exactly once."""
    graph = GraphServer(_SECRETS["APP_SECRET"], _SECRETS["TOKEN"])
    await graph.start()
    try:
        with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as name:
            folder = Path(name)
            async with _gateway(folder, graph):
                sample, failed = await _load(graph)
            _report(folder, sample, failed)
    finally:
        await graph.stop()


def _report(folder: Path, sample: Sample, failed: int) -> None:
    with sqlite3.connect(folder / "gateway" / "gateway.db") as database:
        [stored], [distinct] = (
            database.execute(f"SELECT count({what}) FROM messages").fetchone() for what in ("*", "DISTINCT external_id")
        )
    messages = DECLARED * TIMES * SECONDS
    told = {"declared_per_second": DECLARED, "times": TIMES, "copies": 2, "webhooks": len(sample.latencies)}
    for percent in (50, 95, 99):
        promised = {"promised": PROMISED_MS} if percent == 99 else {}
        emit(f"webhook.ack.p{percent}", sample.percentile_ms(percent), "ms", **told, **promised)
    emit("webhook.failed", failed, "webhooks")
    emit("webhook.rows", stored, "messages", sent=messages, distinct=distinct)


async def _load(graph: GraphServer) -> tuple[Sample, int]:
    phones = [Phone(graph, f"ES.{number}", f"34600{number:06d}") for number in range(PEOPLE)]
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    latencies: list[float] = []
    failed = 0
    async with httpx.AsyncClient(timeout=30, limits=limits) as client:

        async def post(body: bytes, due: float) -> None:
            nonlocal failed
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            headers = {"x-hub-signature-256": graph.sign(body)}
            try:
                response = await client.post(graph.webhook, content=body, headers=headers)
            except httpx.HTTPError:
                failed += 1
            else:
                failed += response.status_code != 200
            latencies.append(time.perf_counter() - due)  # of a failed one too, or the slowest would be left out

        for phone in phones[:20]:
            await phone.send({"type": "reaction", "reaction": {"message_id": "wamid.0", "emoji": ""}})
        began = time.perf_counter() + 0.5
        tasks = []
        for number in range(DECLARED * TIMES * SECONDS):
            message = {"type": "text", "text": {"body": f"message {number}"}}
            webhook = phones[number % PEOPLE].webhook(message, wamid=f"wamid.bench{number}")
            body, due = json.dumps(webhook).encode(), began + number / (DECLARED * TIMES)
            tasks += [asyncio.create_task(post(body, due)) for _ in range(2)]
        await asyncio.gather(*tasks)
        return Sample(latencies, time.perf_counter() - began), failed


@asynccontextmanager
async def _gateway(folder: Path, graph: GraphServer) -> AsyncIterator[None]:
    """Run a gateway process for the block."""
    settings = {
        "AGENT_TARGET": "127.0.0.1:1",
        "WHATSAPP_NUMBERS": json.dumps([graph.number]),
        "WHATSAPP_API_URL": graph.url,
    }
    for name, content in _SECRETS.items():
        (folder / name).write_text(content, encoding="utf-8")
        settings[f"WHATSAPP_{name}_FILE"] = str(folder / name)
    async with gateway(folder, settings) as url:
        graph.webhook = f"{url}/webhooks/whatsapp"
        yield
