"""The process is killed sixty times while outputs, messages and memories are written: nothing acknowledged is lost.

The seed, shown in the test's name and set by PHYLACTERY_TEST_SEED, determines the writes; the machine's timing
determines which write a kill hits.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import os
import random
import signal
import sqlite3
from dataclasses import dataclass, field

import grpc
import pytest
from grpc import aio
from grpc_status import rpc_status
from phylactery.memory.v1 import memory_pb2, output_pb2, user_memory_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_memory.memories.store import MemoryStore

from tests.memory.memories.test_memory_faults import index_of
from tests.support.processes.forks import Forked

KILLS = 60
OPTIONS = [("grpc.enable_retries", 0)]
WRITERS = 2
"""Of each kind, on one channel."""


@dataclass
class Kept:
    """What the service acknowledged: pointers with the digest of their text, messages and memories by name."""

    outputs: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    pairs: set[str] = field(default_factory=set)
    memories: set[str] = field(default_factory=set)
    forgotten: set[str] = field(default_factory=set)

    def __len__(self) -> int:
        return sum(map(len, vars(self).values()))

    def add(self, other: Kept) -> None:
        for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True):
            mine.update(theirs)


class Life:
    """One life of the process: written to by many at once until it is killed."""

    def __init__(self, user, name: str, dice: random.Random) -> None:
        self.user, self.name, self.dice = user, name, dice
        self.kept, self.enough = Kept(), asyncio.Event()
        self.until = dice.randrange(40)
        if not self.until:
            self.enough.set()

    async def store(self, name: str) -> None:
        text = f"{name} 🜛\r\n" * self.dice.choice([3_000, 3_000, 30_000])
        pointer = (await self.user.store(text, cut=65_537, run_id=name)).output.pointer
        self.kept.outputs[pointer] = hashlib.sha256(text.encode()).hexdigest()
        if self.dice.random() < 0.2:
            del self.kept.outputs[pointer]  # from here on it may be there or not
            await self.user.delete(pointer)
            self.kept.deleted.add(pointer)

    async def append(self, name: str) -> None:
        both = [memory_pb2.Message(message_id=f"{side}{name}", role="ROLE_USER", content=name) for side in "ab"]
        await self.user.append("t1", *both)
        self.kept.pairs.add(name)

    async def remember(self, name: str) -> None:
        text = f"memoria {name} perro azul"
        written = await self.user.write(text, keep=True)
        self.kept.memories.add(text)
        if self.dice.random() < 0.3:
            self.kept.memories.discard(text)
            request = user_memory_pb2.ForgetMemoryRequest(memory_id=written.memory.memory_id)
            await self.user.memory.ForgetMemory(request, metadata=self.user.metadata)
            self.kept.forgotten.add(text)

    async def run(self) -> list[grpc.StatusCode]:
        """Write until the process is gone and return how each writer learnt of it."""
        kinds = [self.store, self.append, self.remember] * WRITERS
        return await asyncio.gather(*(self._repeat(kind, f"{self.name}x{n}") for n, kind in enumerate(kinds)))

    async def _repeat(self, write, name: str) -> grpc.StatusCode:
        for number in itertools.count():
            try:
                await write(f"{name}x{number}")
            except aio.AioRpcError as error:
                # A stream cut within a frame is the transport's own INTERNAL; a service's carries an ErrorInfo.
                cut = error.code() is grpc.StatusCode.INTERNAL and rpc_status.from_call(error) is None
                return grpc.StatusCode.UNAVAILABLE if cut else error.code()
            if len(self.kept) >= self.until:
                self.enough.set()
        raise AssertionError("there is always another number")


class Server:
    """The real service over one folder, in one process after another."""

    def __init__(self, folder) -> None:
        self.folder, self.said = folder, folder / "said"

    async def start(self) -> str:
        ready = self.folder / "ready.json"
        ready.unlink(missing_ok=True)
        environment = os.environ | {
            "MEMORY_PORT": "0",
            "MEMORY_DATA_DIR": str(self.folder),
            "MEMORY_READY_FILE": str(ready),
            "MEMORY_LOG_LEVEL": "ERROR",
        }
        self.process = Forked("phylactery_memory", environment=environment, err=self.said)
        while not ready.exists():
            assert self.process.poll() is None, self.said.read_text()
            await asyncio.sleep(0.005)
        return f"127.0.0.1:{json.loads(ready.read_text())['port']}"

    async def end(self, number: int) -> int:
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, 60)


async def everything(rpc, request, user, field_name: str) -> list:
    """Return all a list holds, page by page."""
    found, more = [], True
    while more:
        page = await rpc(request, metadata=user.metadata)
        found += getattr(page, field_name)
        request.page_token = page.next_page_token
        more = bool(page.next_page_token)
    return found


async def check(user, kept: Kept) -> None:
    """Everything acknowledged is there, whole, once and in its order; what was deleted or forgotten is not."""
    for pointer, sha256 in kept.outputs.items():
        assert hashlib.sha256((await user.read_all(pointer)).encode()).hexdigest() == sha256
    listed = await everything(user.outputs.ListOutputs, output_pb2.ListOutputsRequest(page_size=200), user, "outputs")
    pointers = {output.pointer for output in listed}
    assert pointers >= kept.outputs.keys()
    assert not pointers & kept.deleted
    listed = await everything(
        user.memory.ListMemories, user_memory_pb2.ListMemoriesRequest(page_size=200), user, "memories"
    )
    texts = [memory.text for memory in listed]
    assert len(texts) == len(set(texts))
    assert set(texts) >= kept.memories
    assert not set(texts) & kept.forgotten
    request = memory_pb2.ListMessagesRequest(thread_id="t1", page_size=500)
    listed = await everything(user.memory.ListMessages, request, user, "messages")
    assert [message.sequence for message in listed] == list(range(len(listed), 0, -1))
    ids = [message.message_id for message in reversed(listed)]
    pairs = list(zip(ids[::2], ids[1::2], strict=True))
    assert all((first[0], second[0], first[1:]) == ("a", "b", second[1:]) for first, second in pairs)
    assert {first[1:] for first, _ in pairs} >= kept.pairs


FAULTS = {
    "torn outputs": """outputs o WHERE size_chars <>
        (SELECT coalesce(sum(chars), 0) FROM output_chunks c WHERE c.pointer = o.pointer)""",
    "orphaned chunks": "output_chunks WHERE pointer NOT IN (SELECT pointer FROM outputs)",
    "wrong quotas": """user_keys k WHERE used_bytes <>
        (SELECT coalesce(sum(size_bytes), 0) FROM outputs o WHERE (o.tenant, o.subject) = (k.tenant, k.subject))""",
    "wrong threads": """threads t WHERE last_sequence <> (SELECT coalesce(max(sequence), 0) FROM messages_v2 m
        WHERE (m.tenant, m.subject, m.thread_id) = (t.tenant, t.subject, t.thread_id))""",
    "wrong owners": """memory_owners o WHERE memories <>
        (SELECT count(*) FROM user_memory m WHERE m.owner_id = o.owner_id)""",
    "rows that hang on nothing": "pragma_foreign_key_check",
    "damage": "pragma_integrity_check WHERE integrity_check <> 'ok'",
}


def assert_nothing_is_torn(path) -> None:
    with sqlite3.connect(path) as connection:
        found = {
            name: connection.execute(f"SELECT count(*) FROM {rows}").fetchone()[0] for name, rows in FAULTS.items()
        }
    connection.close()
    assert not any(found.values()), found


async def assert_the_index_is_that_of_the_texts(path) -> None:
    def check(shelf) -> None:
        standing = index_of(shelf.connection, shelf.owner_id)
        shelf.rebuild()
        assert standing == index_of(shelf.connection, shelf.owner_id)

    database = Database(f"sqlite:///{path}")
    try:
        await MemoryStore(database).write(Principal("ana", "acme", frozenset()), check)
    finally:
        database.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [int(os.environ.get("PHYLACTERY_TEST_SEED", "7"))])
async def test_sixty_kills_lose_tear_and_orphan_nothing_that_was_acknowledged(tmp_path, user_of, seed):
    kept, dice = Kept(), random.Random(seed)
    server, last = Server(tmp_path), Kept()
    for number in range(KILLS + 1):
        target = await server.start()
        async with aio.insecure_channel(target, options=OPTIONS) as channel:
            user = user_of(channel)
            await check(user, last if number < KILLS else kept)
            if number == KILLS:
                assert await server.end(signal.SIGTERM) == 0
                break
            life = Life(user, f"{number}", dice)
            writing = asyncio.create_task(life.run())
            await life.enough.wait()
            assert await server.end(signal.SIGKILL) == -signal.SIGKILL
            assert set(await writing) == {grpc.StatusCode.UNAVAILABLE}
            last = life.kept
            kept.add(last)
    assert min(map(len, vars(kept).values())) > 10, "each kind of write was acknowledged"
    assert_nothing_is_torn(tmp_path / "memory.db")
    await assert_the_index_is_that_of_the_texts(tmp_path / "memory.db")
