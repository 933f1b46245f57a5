"""RiskGate over the wire with durable audit, compared with a no-op RPC of the same server."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial

from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from phylactery.riskgate.v1 import (
    approval_pb2,
    approval_pb2_grpc,
    riskgate_pb2,
    riskgate_pb2_grpc,
    task_pb2_grpc,
    types_pb2,
)

from benchmarks.measure import Call, Sample, emit, sample
from benchmarks.pinned import Server, apart, riskgate

_ALONE, _CALLS, _APPROVALS, _BATCHES, _BATCH = 400, 2_500, 800, 40, 100
_CHANNELS = 8
"""A connection stays with one worker, so several are needed to reach all workers."""


def _ask(run: str, number: int, tool: str = "read_file") -> riskgate_pb2.EvaluateRequest:
    """Return a unique request, so that no cached answer helps."""
    more = ',"content":"x"' if tool == "write_file" else ""
    arguments = f'{{"path":"{run}-{number}.txt"{more}}}'
    return riskgate_pb2.EvaluateRequest(
        call=types_pb2.ToolCall(tool=tool, tool_call_id=f"call-{number}", arguments_json=arguments),
        thread_id=f"bench-{number}",
        run_id=run,
    )


class Wire:
    """A server, its stubs, and the processor time of its processes."""

    def __init__(self, server: Server, channel: aio.Channel) -> None:
        self.server = server
        self.gate = riskgate_pb2_grpc.RiskGateServiceStub(channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(channel)
        self.tasks = task_pb2_grpc.TaskServiceStub(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    async def measure(self, call: Call, calls: int, concurrency: int) -> tuple[Sample, float]:
        """Return the sample, and the server's processor time per call in microseconds."""
        await sample(call, calls=0, warmup=20)
        before = self.server.cpu_seconds()
        measured = await sample(call, calls=calls, concurrency=concurrency, warmup=0)
        return measured, (self.server.cpu_seconds() - before) / calls * 1e6

    async def echo(self, _number: int) -> object:
        """Call a no-op of the same server: the lower bound of every call."""
        return await self.health.Check(health_pb2.HealthCheckRequest())

    async def evaluate(self, run: str, number: int) -> riskgate_pb2.EvaluateResponse:
        """Evaluate a read."""
        return await self.gate.Evaluate(_ask(run, number))


@contextlib.asynccontextmanager
async def wired(server: Server) -> AsyncIterator[Wire]:
    """Connect to a server during the block."""
    async with aio.insecure_channel(server.target) as channel:
        yield Wire(server, channel)


async def _evaluate(wire: Wire) -> None:
    alone, _ = await wire.measure(wire.echo, _ALONE, 1)
    floor, floor_cpu = await wire.measure(wire.echo, _CALLS, 16)
    emit("echo_c16_rps", floor.per_second, "calls/s", p50_ms=floor.percentile_ms(50), cpu_us=floor_cpu)
    one, cpu = await wire.measure(partial(wire.evaluate, "run-1"), _ALONE, 1)
    emit("evaluate_c1_p50_ms", one.percentile_ms(50), "ms", cpu_us=cpu, floor_echo_ms=alone.percentile_ms(50))
    for concurrency in (16, 64):
        many, cpu = await wire.measure(partial(wire.evaluate, f"run-{concurrency}"), _CALLS, concurrency)
        emit(
            f"evaluate_c{concurrency}_rps",
            many.per_second,
            "calls/s",
            p50_ms=many.percentile_ms(50),
            cpu_us=cpu,
            floor_echo_rps=floor.per_second,
            floor_echo_cpu_us=floor_cpu,
        )


async def _batch(wire: Wire) -> None:
    async def hundred(number: int) -> object:
        asked = [_ask(f"batch-{number}", at) for at in range(_BATCH)]
        return await wire.gate.EvaluateBatch(riskgate_pb2.EvaluateBatchRequest(requests=asked))

    await hundred(-1)
    before = wire.server.cpu_seconds()
    measured = await sample(hundred, calls=_BATCHES, concurrency=2, warmup=0)
    cpu = (wire.server.cpu_seconds() - before) / _BATCHES / _BATCH * 1e6
    emit(
        "evaluate_batch100_dps",
        measured.per_second * _BATCH,
        "decisions/s",
        p50_ms=measured.percentile_ms(50),
        cpu_us=cpu,
        at_once=2,
    )


async def _redeem(wire: Wire) -> None:
    permits = {number: (await wire.evaluate("redeem", number)).permit for number in range(-20, _CALLS)}

    async def redeem(number: int) -> object:
        asked = _ask("redeem", number)
        return await wire.gate.Redeem(
            riskgate_pb2.RedeemRequest(
                permit=permits[number],
                call=asked.call,
                execution_id=f"execution-{number}",
                thread_id=asked.thread_id,
                run_id=asked.run_id,
            )
        )

    floor, _ = await wire.measure(wire.echo, _CALLS, 16)
    measured, cpu = await wire.measure(redeem, _CALLS, 16)
    emit(
        "redeem_c16_rps",
        measured.per_second,
        "calls/s",
        p50_ms=measured.percentile_ms(50),
        cpu_us=cpu,
        floor_echo_rps=floor.per_second,
    )


async def _approve(wire: Wire) -> None:
    """Measure approvals, each of another user, because a user may only have a few open."""
    waiting: dict[int, types_pb2.Approval] = {}

    def whose(number: int) -> tuple[tuple[str, str], ...]:
        return (("x-phylactery-subject", f"user-{number}"),)

    for number in range(-20, _APPROVALS):
        answer = await wire.gate.Evaluate(_ask("approve", number, "write_file"), metadata=whose(number))
        waiting[number] = answer.approval

    async def approve(number: int) -> object:
        one = waiting[number]
        request = approval_pb2.ApproveRequest(
            approval_id=one.id, args_hash=one.args_hash, code=one.code, thread_id=one.thread_id
        )
        return await wire.approvals.Approve(request, metadata=whose(number))

    floor, _ = await wire.measure(wire.echo, _APPROVALS, 16)
    measured, cpu = await wire.measure(approve, _APPROVALS, 16)
    emit(
        "approve_c16_rps",
        measured.per_second,
        "calls/s",
        p50_ms=measured.percentile_ms(50),
        cpu_us=cpu,
        floor_echo_rps=floor.per_second,
    )


async def _through_many_channels(server: Server, run: str) -> Sample:
    async with contextlib.AsyncExitStack() as stack:
        own = [("grpc.use_local_subchannel_pool", 1)]
        channels = [
            await stack.enter_async_context(aio.insecure_channel(server.target, options=own)) for _ in range(_CHANNELS)
        ]
        wires = [Wire(server, channel) for channel in channels]

        async def evaluate(number: int) -> object:
            return await wires[number % _CHANNELS].evaluate(run, number)

        return await sample(evaluate, calls=_CALLS, concurrency=32)


async def _workers() -> None:
    """Measure with several workers; the client shares their cores, so both numbers are of one crowded machine."""
    rates, cpus = {}, {}
    for workers in (1, 2):
        with riskgate(workers=workers) as server:
            before = server.cpu_seconds()
            rates[workers] = (await _through_many_channels(server, "workers")).per_second
            cpus[workers] = (server.cpu_seconds() - before) / _CALLS * 1e6
    emit(
        "evaluate_workers2_rps", rates[2], "calls/s", cpu_us=cpus[2], one_worker_rps=rates[1], one_worker_cpu_us=cpus[1]
    )


async def run() -> None:
    """Print the lines."""
    with apart() as cores, riskgate(cores=cores) as server:
        async with wired(server) as wire:
            await _evaluate(wire)
            await _batch(wire)
            await _redeem(wire)
            await _approve(wire)
    await _workers()
