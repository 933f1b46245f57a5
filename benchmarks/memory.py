"""Memory: recall and search, and storing and reading an output of 100,000 characters beside a plain file with fsync."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, output_pb2, output_pb2_grpc

from benchmarks import retrieval, search_latency
from benchmarks.measure import emit, sample
from benchmarks.stack import services

_TEXT = ("línea con acentos y números 0123456789\n" * 2_565)[:100_000]
_CALLS = 150


async def _store(stub: output_pb2_grpc.OutputServiceAsyncStub, number: int) -> output_pb2.StoreOutputResponse:
    async def parts() -> AsyncIterator[output_pb2.StoreOutputRequest]:
        spec = output_pb2.OutputSpec(thread_id="bench", run_id="r", tool_call_id=f"c{number}", tool_name="read_file")
        yield output_pb2.StoreOutputRequest(spec=spec)
        yield output_pb2.StoreOutputRequest(chunk=f"{number:08d}{_TEXT}".encode())

    return await stub.StoreOutput(parts())


async def run() -> None:
    """Prints the suite's lines."""
    await retrieval.run()
    await search_latency.run()
    with services() as stack, tempfile.TemporaryDirectory() as folder:
        async with aio.insecure_channel(stack.target("memory")) as channel:
            outputs = output_pb2_grpc.OutputServiceStub(channel)

            async def plain_file(number: int) -> None:
                with (Path(folder) / str(number)).open("wb") as out:
                    out.write(_TEXT.encode())
                    out.flush()
                    os.fsync(out.fileno())

            files = await sample(plain_file, calls=_CALLS)
            stored = await sample(lambda i: _store(outputs, i), calls=_CALLS)
            emit("file_100k_p50_ms", files.percentile_ms(50), "ms")
            emit("store_100k_p50_ms", stored.percentile_ms(50), "ms", floor_file_ms=files.percentile_ms(50))

            pointer = (await _store(outputs, _CALLS + 1)).output.pointer
            read = await sample(
                lambda i: outputs.ReadOutput(
                    output_pb2.ReadOutputRequest(pointer=pointer, offset=abs(i) % 9 * 10_000, limit=10_000)
                ),
                calls=_CALLS,
            )
            emit("read_10k_p50_ms", read.percentile_ms(50), "ms")

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
