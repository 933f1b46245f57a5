"""Service levels under an open-loop load: messages begin by a schedule, whether or not earlier ones are answered.

Latency counts from the moment a message was due, so that a stalled service is not measured less often. Set
BENCH_SOAK_SECONDS for a longer run (600 is the promised one), which also reports the memory of each service at its
beginning and end. The acknowledgement of webhooks, the suite of that name, is measured last.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from grpc import aio
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2
from phylactery_cli.supervisor import Stack

from benchmarks import webhook
from benchmarks.measure import Sample, emit
from benchmarks.stack import at_rest, services

_SECONDS: Final = 30.0
_PER_SECOND: Final = 10.0
_EFFECTS: Final = 40
_EFFECTS_PER_SECOND: Final = 2.0
_WARM_UP: Final = 20
_TIMEOUT: Final = 60.0
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MIB: Final = 1024 * 1024


@dataclass
class _Load:
    """What a load came to."""

    latencies: list[float] = field(default_factory=list)
    lateness: list[float] = field(default_factory=list)
    """How much later than due each message was sent: the generator's own share."""
    errors: int = 0


async def run() -> None:
    """Print the suite's lines."""
    soak = float(os.environ.get("BENCH_SOAK_SECONDS", "0"))
    with services() as stack:
        async with aio.insecure_channel(stack.target("agent")) as channel:
            users = _Users(chat_pb2_grpc.ChatServiceStub(channel))
            for number in range(_WARM_UP):
                await users.greet(-1 - number)
            await at_rest(stack)
            before = _resident(stack)
            load = await _open_loop(users.greet, seconds=soak or _SECONDS, per_second=_PER_SECOND)
            _tell("text_simple", load, per_second=_PER_SECOND)
            if soak:
                await at_rest(stack)
                for name, size in _resident(stack).items():
                    emit(f"sla_soak_{name}_rss_mib", size / _MIB, "MiB", before=before[name] / _MIB, seconds=soak)
            effects = _EFFECTS / _EFFECTS_PER_SECOND
            load = await _open_loop(users.remind_twice, seconds=effects, per_second=_EFFECTS_PER_SECOND)
            _tell("effect_sent_twice", load, per_second=_EFFECTS_PER_SECOND)
            emit("sla_duplicated_effects", users.duplicated, "effects", done=users.done, sent=_EFFECTS)
    await webhook.run()


async def _open_loop(call: Callable[[int], Awaitable[None]], *, seconds: float, per_second: float) -> _Load:
    """Call at equal intervals, and return the latencies from the moments at which the calls were due."""
    load, begun = _Load(), time.perf_counter()

    async def one(number: int, due: float) -> None:
        load.lateness.append(time.perf_counter() - due)
        try:
            await call(number)
        except (aio.AioRpcError, TimeoutError):
            load.errors += 1
        else:
            load.latencies.append(time.perf_counter() - due)

    async with asyncio.TaskGroup() as group:
        for number in range(round(seconds * per_second)):
            due = begun + number / per_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            group.create_task(one(number, due))
    return load


def _tell(name: str, load: _Load, *, per_second: float) -> None:
    sent = len(load.latencies) + load.errors
    latencies = Sample(load.latencies, 1.0)
    late = Sample(load.lateness, 1.0).percentile_ms(99)
    for percent in (50, 95, 99):
        emit(
            f"sla_{name}_p{percent}_ms", latencies.percentile_ms(percent), "ms", per_second=per_second, late_p99_ms=late
        )
    emit(f"sla_{name}_error_rate", load.errors / sent, "1", sent=sent)


def _resident(stack: Stack) -> dict[str, int]:
    """Return the resident memory of each service, in bytes."""
    found = {}
    for name, service in stack.processes.items():
        pages = Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]
        found[name] = int(pages) * _PAGE_BYTES
    return found


class _Users:
    """Messages of people: each in one of a few threads, so that a thread has a past."""

    def __init__(self, stub: chat_pb2_grpc.ChatServiceAsyncStub) -> None:
        self._stub = stub
        self.done = self.duplicated = 0

    async def greet(self, number: int) -> None:
        """Send small talk and wait for the answer."""
        await self._say(f"sla-hello-{number:06}", f"sla-{number % 50}", "hello")

    async def remind_twice(self, number: int) -> None:
        """Ask for an effect in two requests with one request_id at once, and count what was done."""
        text = f"remind me tomorrow at 9 am to check number {number}"
        ask = [self._say(f"sla-remind-{number:06}", f"sla-remind-{number}", text) for _ in range(2)]
        answers = await asyncio.gather(*ask)
        runs = {answer.run.id: answer.run for answer in answers}
        done = sum(
            call.state == "finished" and call.tool == "create_reminder"
            for run in runs.values()
            for call in run.tool_calls
        )
        self.done += min(done, 1)
        self.duplicated += max(done - 1, 0)

    async def _say(self, request_id: str, thread_id: str, text: str) -> chat_pb2.SendMessageResponse:
        request = chat_pb2.SendMessageRequest(request_id=request_id, thread_id=thread_id, text=text)
        answer = await self._stub.SendMessage(request, timeout=_TIMEOUT)
        if answer.run.status == event_pb2.RUN_STATUS_FAILED:
            raise TimeoutError
        return answer
