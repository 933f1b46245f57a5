"""Outputs: storing, reading and searching over gRPC, compared with a plain file with fsync; and their disk space."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

from grpc import aio
from phylactery.memory.v1 import output_pb2, output_pb2_grpc

from benchmarks.measure import emit, sample
from benchmarks.stack import services

_MESSAGE = 1_000_000
_SIZES = {"10k": (10_500, 100), "100k": (100_000, 100), "1m": (1_000_000, 30), "10m": (10_000_000, 6)}
"""The number of characters, and how often each is stored. 10,000 would not be evicted."""


def _log_text(size: int) -> str:
    """Return lines like a service's log: recurring words, and unique ids and numbers."""
    dice = random.Random(5)
    words = ["".join(dice.choices("aeiounrstlcdmpé", k=dice.randrange(3, 11))) for _ in range(3_000)]
    lines, length = [], 0
    while length < size:
        said = " ".join(dice.choices(words, k=dice.randrange(4, 14)))
        lines.append(
            f"2026-11-21T10:{dice.randrange(60):02d} {dice.randbytes(8).hex()} {said} {dice.randrange(10**6)}\n"
        )
        length += len(lines[-1])
    return "".join(lines)[:size]


class _Bench:
    """Stores numbered outputs through one stub."""

    def __init__(self, stub: output_pb2_grpc.OutputServiceAsyncStub) -> None:
        self.stub, self.stored_bytes, self._number = stub, 0, 0

    async def store(self, text: bytes) -> str:
        self._number += 1
        data, name = b"%08d" % self._number + text, f"c{self._number}"

        async def parts() -> AsyncIterator[output_pb2.StoreOutputRequest]:
            spec = output_pb2.OutputSpec(thread_id="bench", run_id="r", tool_call_id=name, tool_name="read_file")
            yield output_pb2.StoreOutputRequest(spec=spec)
            for start in range(0, len(data), _MESSAGE):
                yield output_pb2.StoreOutputRequest(chunk=data[start : start + _MESSAGE])

        self.stored_bytes += len(data)
        return (await self.stub.StoreOutput(parts())).output.pointer

    async def read(self, pointer: str, offset: int) -> str:
        request = output_pb2.ReadOutputRequest(pointer=pointer, offset=offset)
        return (await self.stub.ReadOutput(request)).text


async def run() -> None:
    """Print the lines."""
    with services() as stack, tempfile.TemporaryDirectory() as folder:
        async with aio.insecure_channel(stack.target("memory")) as channel:
            bench = _Bench(output_pb2_grpc.OutputServiceStub(channel))
            for name, (size, calls) in _SIZES.items():
                await _one_size(bench, name, _log_text(size).encode(), calls, Path(folder))
            files = (stack.data_dir / "memory").glob("memory.db*")
            taken = sum(file.stat().st_size for file in files)
            emit("disk_bytes_per_byte", taken / bench.stored_bytes, "bytes", stored_bytes=bench.stored_bytes)


async def _one_size(bench: _Bench, name: str, text: bytes, calls: int, folder: Path) -> None:
    async def plain_file(number: int) -> None:
        with (folder / f"{name}{number}").open("wb") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())

    warmup = min(10, calls)
    files = await sample(plain_file, calls=calls, warmup=warmup)
    stored = await sample(lambda _: bench.store(text), calls=calls, warmup=warmup)
    emit(f"file_{name}_p50_ms", files.percentile_ms(50), "ms")
    emit(f"store_{name}_p50_ms", stored.percentile_ms(50), "ms", floor_file_ms=files.percentile_ms(50))
    pointer = await bench.store(text)
    ranges = max(1, len(text) // 20_000)
    read = await sample(lambda i: bench.read(pointer, abs(i) % ranges * 10_000), calls=calls, warmup=warmup)
    emit(f"read_10k_of_{name}_p50_ms", read.percentile_ms(50), "ms")

    async def search(_number: int) -> None:
        await bench.stub.SearchOutput(output_pb2.SearchOutputRequest(pointer=pointer, pattern="no such [w]ord"))

    searched = await sample(search, calls=min(20, calls), warmup=1)
    emit(f"grep_{name}_p50_ms", searched.percentile_ms(50), "ms")

    async def round_trip(_number: int) -> None:
        await bench.read(await bench.store(text), 0)

    both = await sample(round_trip, calls=min(30, calls), warmup=1)
    emit(f"store_and_read_{name}_p50_ms", both.percentile_ms(50), "ms")
