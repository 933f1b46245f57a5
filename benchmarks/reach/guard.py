"""A guarded call over the bare tool: everything from evaluate to observe, against a RiskGate with durable audit."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from phylactery_client import Guard, GuardedTask, GuardThread, Ran, RiskGateClient

from benchmarks.measure import Call, Sample, sample
from benchmarks.pinned import apart, riskgate

_CALLS, _WARMUP, _CALLS_OF_TASK = 300, 30, 5
_GOAL_MS = 6.0
_WORDS = "Read minutes.txt"


async def _bare(arguments: dict[str, Any]) -> str:
    return f"the content of {arguments['path']}"


def _called(calls: Sequence[Callable[..., Awaitable[object]]], run: str) -> Call:
    """Return a guarded read; every task has a few of them, as a request of a user has."""

    async def one(number: int) -> object:
        call = calls[number // _CALLS_OF_TASK % len(calls)]
        outcome = await call("read_file", {"path": f"{number}.txt"}, tool_call_id=f"{run}.{number}", execute=_bare)
        if not isinstance(outcome, Ran):
            raise TypeError(f"the call did not run: {outcome}")
        return outcome

    return one


async def _begun(guard: Guard, thread_id: str) -> list[GuardedTask]:
    number = (_CALLS + _WARMUP) // _CALLS_OF_TASK
    return [await guard.begin(_WORDS, thread_id=f"{thread_id}-{one}") for one in range(number)]


async def rows() -> AsyncIterator[Mapping[str, Any]]:
    """Yield what a guarded call costs in the host's loop, and from another loop."""
    with apart() as cores, riskgate(cores=cores) as server:
        bare = await sample(lambda number: _bare({"path": f"{number}.txt"}), calls=_CALLS)
        async with RiskGateClient(server.target) as gate:
            empty = await sample(lambda _: gate.list_keys(etag="-"), calls=_CALLS)
            yield {"name": "reach_rpc_p50_ms", "value": empty.percentile_ms(50), "unit": "ms"}
            calls = [task.call for task in await _begun(Guard(gate), "alone")]
            await sample(_called(calls, "w"), calls=0, warmup=_WARMUP)
            own, server_s = time.process_time(), server.cpu_seconds()
            measured = await sample(_called(calls, "a"), calls=_CALLS, warmup=0)
            own_us = (time.process_time() - own) / _CALLS * 1e6
            server_us = (server.cpu_seconds() - server_s) / _CALLS * 1e6
            yield {**_row("guard", measured, bare), "cpu_us": own_us, "riskgate_cpu_us": server_us}
        with GuardThread(server.target) as thread:
            tasks = await thread.arun(lambda guard: _begun(guard, "thread"))
            elsewhere = [partial(thread.acall, partial(_given, task)) for task in tasks]
            yield _row("guard_thread", await sample(_called(elsewhere, "c"), calls=_CALLS, warmup=_WARMUP), bare)


def _given(task: GuardedTask, _guard: Guard) -> GuardedTask:
    return task


def _row(name: str, measured: Sample, bare: Sample) -> Mapping[str, Any]:
    over = {percent: measured.percentile_ms(percent) - bare.percentile_ms(percent) for percent in (50, 95)}
    beside = {"p95_ms": over[95], "bare_p50_ms": bare.percentile_ms(50), "goal_ms": _GOAL_MS}
    return {"name": f"reach_{name}_over_bare_p50_ms", "value": over[50], "unit": "ms", **beside}
