"""Memory: recall and search, outputs, and the transcript."""

from __future__ import annotations

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc

from benchmarks import outputs, retrieval, search_latency
from benchmarks.measure import emit, sample
from benchmarks.stack import services

_CALLS = 150


async def run() -> None:
    """Print the suite's lines."""
    await retrieval.run()
    await search_latency.run()
    await outputs.run()
    with services() as stack:
        async with aio.insecure_channel(stack.target("memory")) as channel:
            messages = memory_pb2_grpc.MemoryServiceStub(channel)
            appended = await sample(
                lambda i: messages.AppendMessages(
                    memory_pb2.AppendMessagesRequest(
                        thread_id="bench",
                        messages=[
                            memory_pb2.Message(message_id=f"m{i + 1_000}", role=memory_pb2.ROLE_USER, content="hola")
                        ],
                    )
                ),
                calls=_CALLS,
            )
            emit("append_message_p50_ms", appended.percentile_ms(50), "ms")
