"""A call over HTTP through the gateway, compared with the same call over gRPC to the same RiskGate.

RiskGate and the gateway are processes of their own. Each measurement alternates: a block over gRPC, a block over HTTP.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx
from grpc import aio
from phylactery.riskgate.v1 import riskgate_pb2, riskgate_pb2_grpc, types_pb2

from benchmarks.gateways import gateway
from benchmarks.measure import Sample, sample
from benchmarks.pinned import riskgate

_SERVICES: Final = ("RiskGateService", "InspectionService")
_BLOCKS, _CALLS = 4, 250
_LARGE, _LARGE_CALLS = 100_000, 10
_EVALUATE: Final = "/phylactery.riskgate.v1.RiskGateService/Evaluate"
_INSPECT: Final = "/phylactery.riskgate.v1.InspectionService/Inspect"


async def rows() -> AsyncIterator[Mapping[str, Any]]:
    """Yield the latencies of Evaluate over both, alone and at 16, and of a large request."""
    limits = httpx.Limits(max_connections=32, max_keepalive_connections=32)
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder, riskgate() as server:
        services = {f"phylactery.riskgate.v1.{name}": server.target for name in _SERVICES}
        async with (
            gateway(Path(folder), {"RPC_SERVICES": json.dumps(services)}) as url,
            aio.insecure_channel(server.target) as channel,
            httpx.AsyncClient(base_url=url, timeout=60, limits=limits, trust_env=False) as client,
        ):
            for concurrency in (1, 16):
                one, other = await _both(channel, client, concurrency)
                name = f"http.evaluate_c{concurrency}"
                for percent in (50, 95):
                    beside = one.percentile_ms(percent)
                    value = other.percentile_ms(percent)
                    yield {"name": f"{name}_p{percent}_ms", "value": value, "unit": "ms", "grpc_ms": beside}
                yield {"name": f"{name}_rps", "value": other.per_second, "unit": "calls/s", "grpc": one.per_second}
            large = await sample(lambda _: _inspect(client), calls=_LARGE_CALLS, warmup=2)
            name, value = "http.inspect_large_p50_ms", large.percentile_ms(50)
            yield {"name": name, "value": value, "unit": "ms", "characters": _LARGE}


async def _both(channel: aio.Channel, client: httpx.AsyncClient, concurrency: int) -> tuple[Sample, Sample]:
    stub = riskgate_pb2_grpc.RiskGateServiceStub(channel)

    async def over_grpc(number: int) -> None:
        await stub.Evaluate(_question("grpc", concurrency, number))

    async def over_http(number: int) -> None:
        asked = _question("http", concurrency, number)
        call = {"tool": "read_file", "toolCallId": asked.call.tool_call_id, "argumentsJson": asked.call.arguments_json}
        await _post(client, _EVALUATE, {"call": call, "threadId": asked.thread_id, "runId": asked.run_id})

    found: tuple[list[Sample], list[Sample]] = [], []
    for block in range(_BLOCKS):
        for calls, samples in zip((over_grpc, over_http), found, strict=True):
            first = block * _CALLS
            samples.append(
                await sample(
                    lambda number, calls=calls, first=first: calls(first + number),  # type: ignore[misc]
                    calls=_CALLS,
                    concurrency=concurrency,
                    warmup=0 if block else 20,
                )
            )
    one, other = (
        Sample([each for part in samples for each in part.latencies], sum(part.seconds for part in samples))
        for samples in found
    )
    return one, other


def _question(over: str, concurrency: int, number: int) -> riskgate_pb2.EvaluateRequest:
    """Return a unique request, so that no cached answer helps."""
    return riskgate_pb2.EvaluateRequest(
        call=types_pb2.ToolCall(
            tool="read_file", tool_call_id=f"call-{number}", arguments_json=json.dumps({"path": f"{over}-{number}.txt"})
        ),
        thread_id="bench",
        run_id=f"{over}-{concurrency}",
    )


async def _inspect(client: httpx.AsyncClient) -> None:
    await _post(client, _INSPECT, {"text": ("una frase cualquiera de un texto largo. " * _LARGE)[:_LARGE]})


async def _post(client: httpx.AsyncClient, path: str, request: Mapping[str, Any]) -> None:
    response = await client.post(path, json=request)
    if response.status_code != 200:
        raise RuntimeError(f"{path} answered {response.status_code}: {response.text}")
