"""The agent's runtime: savers compared with LangGraph's own, and turns through the three services.

Whatever is measured alone is measured once the three services have come to rest: what earlier turns left to be
delivered, above all the many at once, would be measured beside it.
"""

from __future__ import annotations

import time
from pathlib import Path

from grpc import aio
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc
from phylactery.riskgate.v1 import key_pb2, key_pb2_grpc
from phylactery_cli.supervisor import Stack

from benchmarks import savers
from benchmarks.measure import Sample, emit, sample
from benchmarks.stack import at_rest, cpu_seconds, services

_TURNS = 60
_AT_ONCE = (16, 64)
_MANY_TURNS = 320
_HISTORY = (10, 100, 1_000)
_MEASURED_TURNS = 20


async def run() -> None:
    """Print the suite's lines."""
    await savers.run()
    with services() as stack:
        stack.sandbox.mkdir(parents=True, exist_ok=True)
        (stack.sandbox / "note.txt").write_text("a short note")
        async with (
            aio.insecure_channel(stack.target("agent")) as agent,
            aio.insecure_channel(stack.target("riskgate")) as riskgate,
        ):
            keys = key_pb2_grpc.KeyServiceStub(riskgate)
            floor = await sample(lambda _: keys.ListKeys(key_pb2.ListKeysRequest()), calls=300)
            chats = _Chats(chat_pb2_grpc.ChatServiceStub(agent), stack)
            await chats.turns("text_simple", "hello", floor)
            await chats.turns("secured_turn", "read note.txt", floor)
            await chats.pick_up()
            await chats.written()


class _Chats:
    """Conversations with a running agent."""

    def __init__(self, stub: chat_pb2_grpc.ChatServiceAsyncStub, stack: Stack) -> None:
        self._stub, self._stack, self._agent = stub, stack, stack.processes["agent"].process.pid
        self._sent = 0

    async def turns(self, name: str, text: str, floor: Sample) -> None:
        """Print the latency of a single turn, the throughput of concurrent turns, and the agent's cost per turn."""
        beside = {"floor_rpc_ms": floor.percentile_ms(50)}
        await at_rest(self._stack)
        before = cpu_seconds(self._agent)
        alone = await sample(lambda i: self._say(text, f"{name}-{i % 7}"), calls=_TURNS, warmup=0)
        cpu_ms = (cpu_seconds(self._agent) - before) * 1_000 / _TURNS
        emit(f"{name}_p50_ms", alone.percentile_ms(50), "ms", **beside)
        emit(f"{name}_p95_ms", alone.percentile_ms(95), "ms", **beside)
        if name == "text_simple":
            emit("run_cpu_ms", cpu_ms, "ms")
        for at_once in _AT_ONCE:
            many = await sample(
                lambda i: self._say(text, f"{name}-many-{i}"), calls=_MANY_TURNS, concurrency=at_once, warmup=0
            )
            emit(f"{name}_c{at_once}_rps", many.per_second, "turns/s", p95_ms=many.percentile_ms(95))

    async def pick_up(self) -> None:
        """Print the time from a message to the first event of its run, as the client receives it."""
        await at_rest(self._stack)
        latencies: list[float] = []
        for number in range(_TURNS):
            self._sent += 1
            request = chat_pb2.StreamMessageRequest(
                request_id=f"bench-{self._sent:06}", thread_id=f"pick-{number % 7}", text="hello"
            )
            began = time.perf_counter()
            async for _ in self._stub.StreamMessage(request):
                if len(latencies) <= number:
                    latencies.append(time.perf_counter() - began)
        picked = Sample(latencies, sum(latencies))
        emit("pickup_p95_ms", picked.percentile_ms(95), "ms", p50_ms=picked.percentile_ms(50))

    async def written(self) -> None:
        """Print how much one turn writes as its thread grows."""
        found: dict[int, float] = {}
        for messages in _HISTORY:
            thread = f"history-{messages}"
            for _ in range(messages // 2):
                await self._say("hello", thread)
            await at_rest(self._stack)
            before = self._written_bytes()
            for _ in range(_MEASURED_TURNS):
                await self._say("hello", thread)
            found[messages] = (self._written_bytes() - before) / _MEASURED_TURNS
            emit(f"written_per_turn_{messages}", found[messages], "bytes")
        emit("written_1000_over_10", found[_HISTORY[-1]] / found[_HISTORY[0]], "times")

    async def _say(self, text: str, thread: str) -> object:
        self._sent += 1
        return await self._stub.SendMessage(
            chat_pb2.SendMessageRequest(request_id=f"bench-{self._sent:06}", thread_id=thread, text=text)
        )

    def _written_bytes(self) -> int:
        """Return the bytes the agent has written so far, log and spans included."""
        lines = Path(f"/proc/{self._agent}/io").read_text().splitlines()
        return next(int(line.partition(":")[2]) for line in lines if line.startswith("wchar"))
