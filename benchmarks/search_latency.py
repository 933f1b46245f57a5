"""SearchMemories and BuildContext over gRPC, with 1,000 to 100,000 memories of one user next to 1,000 other users."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from pathlib import Path

from grpc import aio
from phylactery.memory.v1 import memory_pb2, memory_pb2_grpc, user_memory_pb2
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.ids import new_id
from phylactery_memory.app import PACKAGE
from phylactery_memory.memories.model import Kind, Layer, Memory, Source, Trust
from phylactery_memory.memories.store import MemoryRepository, MemoryStore

from benchmarks.measure import emit, sample

_SIZES = {"1k": 1_000, "10k": 10_000, "100k": 100_000}
_USERS_BESIDE, _THEIR_MEMORIES = 1_000, 10
_AT_ONCE = 2_000
_CALLS = 200
_VOCABULARY = 30_000
_ALPHABET = "abcdefghijklmnopqrstuvwxyz"


class _Words:
    """Texts with Zipf-distributed words: the n-th occurs with frequency 1/n."""

    def __init__(self) -> None:
        self._dice = random.Random(7)
        self._words = ["".join(self._dice.choices(_ALPHABET, k=self._dice.randint(3, 9))) for _ in range(_VOCABULARY)]
        self._weights = list(accumulate(1 / (place + 10) for place in range(_VOCABULARY)))

    def text(self, least: int, most: int) -> str:
        return " ".join(self._dice.choices(self._words, cum_weights=self._weights, k=self._dice.randint(least, most)))


def _memory(words: _Words, number: int) -> Memory:
    return Memory(
        memory_id=new_id("mem"),
        text=f"{words.text(8, 40)} {number}",
        layer=Layer.SEMANTIC,
        kind=Kind.EPISODE,
        source=Source.USER,
        trust=Trust.USER,
        lineage=(),
        importance=0.0,
        thread_id=f"t{number // 40}",
        sequence=number % 40 + 1,
        about="",
        attribute="",
        valid_us=1_700_000_000_000_000 + number * 60_000_000,
        create_us=0,
        update_us=0,
    )


async def _fill(path: Path, words: _Words) -> None:
    """Write every user's memories as the store does, many per transaction."""
    database = Database(f"sqlite:///{path}")
    database.migrate(PACKAGE)
    store = MemoryStore(database)
    owners = _SIZES | {f"beside{number}": _THEIR_MEMORIES for number in range(_USERS_BESIDE)}
    for name, count in owners.items():
        owner = Principal(name, "bench", frozenset({Role.CALLER}))
        for start in range(0, count, _AT_ONCE):
            new = [_memory(words, number) for number in range(start, min(start + _AT_ONCE, count))]
            await store.write(owner, partial(MemoryRepository.add, new=new))
    database.close()


@contextmanager
def _serving(folder: Path) -> Iterator[str]:
    """Run a memory service over the folder during the block and yield its address."""
    ready = folder / "ready.json"
    environment = {
        **os.environ,
        "MEMORY_PORT": "0",
        "MEMORY_DATA_DIR": str(folder),
        "MEMORY_READY_FILE": str(ready),
        "MEMORY_LOG_LEVEL": "ERROR",
    }
    child = subprocess.Popen([sys.executable, "-m", "phylactery_memory"], env=environment)
    try:
        while not ready.exists():
            if child.poll() is not None:
                raise RuntimeError(f"the memory service ended with {child.returncode} before it served")
            time.sleep(0.05)
        yield f"127.0.0.1:{json.loads(ready.read_text())['port']}"
    finally:
        child.terminate()
        child.wait()


async def run() -> None:
    """Print the latencies and the disk space of the memories."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as temporary:
        folder, words = Path(temporary), _Words()
        path = folder / "memory.db"
        began = time.perf_counter()
        await _fill(path, words)
        held = sum(_SIZES.values()) + _USERS_BESIDE * _THEIR_MEMORIES
        emit("index_memory_us", (time.perf_counter() - began) / held * 1e6, "us", memories=held)
        emit("memory_disk_bytes", path.stat().st_size / held, "bytes", memories=held)
        queries = [words.text(4, 10) for _ in range(_CALLS)]
        with _serving(folder) as target:
            async with aio.insecure_channel(target) as channel:
                stub = memory_pb2_grpc.MemoryServiceStub(channel)
                for name, count in _SIZES.items():
                    found = await sample(partial(_search, stub, name, queries), calls=_CALLS)
                    beside = {"memories": count, "users_beside": _USERS_BESIDE}
                    emit(f"search_{name}_p50_ms", found.percentile_ms(50), "ms", **beside)
                    emit(f"search_{name}_p95_ms", found.percentile_ms(95), "ms", **beside)
                    await _contexts(stub, name, queries, beside)


async def _search(stub: memory_pb2_grpc.MemoryServiceAsyncStub, owner: str, queries: list[str], number: int) -> None:
    metadata = (("x-phylactery-subject", owner), ("x-phylactery-tenant", "bench"))
    await stub.SearchMemories(
        user_memory_pb2.SearchMemoriesRequest(query=queries[number % len(queries)]), metadata=metadata
    )


async def _contexts(
    stub: memory_pb2_grpc.MemoryServiceAsyncStub, owner: str, queries: list[str], beside: dict[str, int]
) -> None:
    """Print the latency of a context with a window of 40 messages, next to a call that reads nothing."""
    metadata = (("x-phylactery-subject", owner), ("x-phylactery-tenant", "bench"))
    told = [
        memory_pb2.Message(message_id=f"m{number}", role=memory_pb2.ROLE_USER, content=queries[number] * 4)
        for number in range(60)
    ]
    await stub.AppendMessages(memory_pb2.AppendMessagesRequest(thread_id="bench", messages=told), metadata=metadata)

    async def build(pathway: memory_pb2.Pathway.ValueType, number: int) -> None:
        request = memory_pb2.BuildContextRequest(
            thread_id="bench", pathway=pathway, query=queries[number % len(queries)]
        )
        await stub.BuildContext(request, metadata=metadata)

    nothing = await sample(partial(build, memory_pb2.PATHWAY_STANDBY), calls=_CALLS)
    built = await sample(partial(build, memory_pb2.PATHWAY_TOOL_INTENT), calls=_CALLS)
    floor = {"floor_empty_call_ms": nothing.percentile_ms(95)}
    emit(f"build_context_{owner}_p50_ms", built.percentile_ms(50), "ms", **beside)
    emit(f"build_context_{owner}_p95_ms", built.percentile_ms(95), "ms", **beside, **floor)
