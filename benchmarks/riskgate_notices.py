"""From a decision to its notice at a webhook on loopback, beside a post to the same webhook alone."""

from __future__ import annotations

import asyncio
import http.client
import json
import statistics
import tempfile
import time
from pathlib import Path

from grpc import aio
from phylactery.riskgate.v1 import riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_riskgate.notices.signing import written

from benchmarks.measure import emit
from benchmarks.pinned import riskgate

_DECISIONS, _POSTS = 200, 100
_SECONDS = 60


class Webhook:
    """A server that notes when the notice of an approval arrives."""

    def __init__(self) -> None:
        self.arrived: dict[str, asyncio.Future[float]] = {}

    def of(self, approval_id: str) -> asyncio.Future[float]:
        """Return the time at which the notice of an approval arrives."""
        return self.arrived.setdefault(approval_id, asyncio.get_running_loop().create_future())

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one post."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = next(int(line.partition(":")[2]) for line in head.split("\r\n") if line.startswith("content-length:"))
        told = json.loads(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()
        waiting = self.of(told["data"]["approval_id"])
        if not waiting.done():
            waiting.set_result(time.perf_counter())


def _ask(number: int) -> riskgate_pb2.EvaluateRequest:
    arguments = f'{{"path":"notice-{number}.txt","content":"x"}}'
    call = types_pb2.ToolCall(tool="write_file", tool_call_id=f"call-{number}", arguments_json=arguments)
    return riskgate_pb2.EvaluateRequest(call=call, thread_id=f"notices-{number}", run_id="notices")


def _post(port: int) -> float:
    body = json.dumps({"type": "test", "data": {"approval_id": "floor"}})
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
    connection.request("POST", "/", body)
    connection.getresponse().read()
    connection.close()
    return time.perf_counter() - began


async def run() -> None:
    """Print the line."""
    webhook = Webhook()
    server = await asyncio.start_server(webhook.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        secret, file = Path(folder) / "secret", Path(folder) / "notices.yaml"
        secret.touch(0o600)
        secret.write_text(written(bytes(32)))
        sink: dict[str, object] = {"name": "bench", "kind": "webhook", "url": f"http://127.0.0.1:{port}/"}
        sink |= {"secret_file": "secret", "allow_private": True, "classes": ["self"], "events": ["approval.waiting"]}
        file.write_text(json.dumps({"sinks": [sink]}))
        floor = [await asyncio.to_thread(_post, port) for _ in range(_POSTS)]
        with riskgate(notices=file) as gate:
            async with server, aio.insecure_channel(gate.target) as channel:
                stub = riskgate_pb2_grpc.RiskGateServiceStub(channel)
                delays = [await _told(stub, webhook, number) for number in range(_DECISIONS)]
    emit(
        "notice_p95_ms",
        _percentile_ms(delays, 95),
        "ms",
        p50_ms=_percentile_ms(delays, 50),
        floor_post_p95_ms=_percentile_ms(floor, 95),
        notices=_DECISIONS,
    )


async def _told(stub: riskgate_pb2_grpc.RiskGateServiceAsyncStub, webhook: Webhook, number: int) -> float:
    """Return the seconds from the answer of a decision to the arrival of its notice, which may come first."""
    answer = await stub.Evaluate(_ask(number), metadata=(("x-phylactery-subject", f"user-{number}"),))
    answered = time.perf_counter()
    return max(0.0, await asyncio.wait_for(webhook.of(answer.approval.id), _SECONDS) - answered)


def _percentile_ms(seconds: list[float], percent: int) -> float:
    return statistics.quantiles(seconds, n=100, method="inclusive")[percent - 1] * 1_000
