"""Power fails at any write and any sync, a thousand times: acknowledged data survives, complete."""

from __future__ import annotations

import asyncio
import itertools
import random
import shutil
import sqlite3
from dataclasses import dataclass, field

import pytest
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import Unavailable
from phylactery_memory.app import PACKAGE
from phylactery_memory.keys.ring import UserKeys, load_master_keys
from phylactery_memory.keys.store import KeyStore
from phylactery_memory.memories.embeddings import NoEmbeddings
from phylactery_memory.memories.model import Source
from phylactery_memory.memories.service import Draft, Memories
from phylactery_memory.memories.store import MemoryStore
from phylactery_memory.outputs.model import OutputRules, OutputSpec
from phylactery_memory.outputs.service import Outputs
from phylactery_memory.outputs.store import OutputStore
from phylactery_memory.retrieval.words import terms
from phylactery_memory.transcript.model import Message
from phylactery_memory.transcript.store import MessageStore

from tests.memory.faults.test_kill_faults import assert_nothing_is_torn
from tests.memory.memories.test_memory_faults import index_of
from tests.support.clock import FakeClock
from tests.support.databases.power import Disk

ANA = Principal("ana", "acme", frozenset({Role.CALLER}))
LONG, SHORT = [(seed, 1, 50) for seed in range(4)], [(seed, 10, 10) for seed in range(4, 12)]
"""Runs as seed, how many, and cuts in each: long ones outgrow SQLite's log, short ones are many beginnings."""


class Store:
    """The service's stores over one database file."""

    def __init__(self, url, folder):
        self.database, clock = Database(url), FakeClock()
        keys = UserKeys(KeyStore(self.database), load_master_keys(folder / "keys", None), clock)
        self.outputs = Outputs(OutputStore(self.database), keys, OutputRules(evict_over_chars=10), clock)
        self.messages = MessageStore(self.database)
        self.memories = Memories(MemoryStore(self.database), NoEmbeddings(), clock, limit=1_000)

    async def store(self, number, text):
        async def pieces():
            yield text.encode()

        spec = OutputSpec("t1", "r1", f"c{number}", "read_file")
        return (await self.outputs.store(ANA, spec, pieces())).record.pointer

    async def read_all(self, pointer):
        parts, offset, total = [], 0, 1
        while offset < total:
            part = await self.outputs.read(ANA, pointer, offset, 0)
            parts.append(part.text)
            offset, total = part.next_offset, part.total_chars
        return "".join(parts)

    def close(self):
        self.outputs.close()
        self.database.close()


@dataclass
class Kept:
    """What was acknowledged: outputs by pointer, messages and memories by their text; and what was deleted."""

    outputs: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    memories: set[str] = field(default_factory=set)

    def copy(self):
        return Kept(dict(self.outputs), set(self.deleted), set(self.messages), set(self.memories))


class Run:
    """Writes until enough cuts are taken, each with what was acknowledged at its moment."""

    def __init__(self, folder, seed, cuts):
        self.disk, self.dice, self.folder, self.wanted = Disk(f"disk{folder}"), random.Random(seed), folder, cuts
        self.kept, self.cuts = Kept(), []

    def step(self):
        if self.dice.random() < 0.1 and len(self.cuts) < self.wanted:
            kept = self.kept.copy()  # before the cut: another thread may note more meanwhile
            self.cuts.append((self.disk.cut(self.dice), kept))

    async def go(self):
        self.store = Store(f"sqlite+power:///{self.folder / 'memory.db'}?disk={self.disk.name}", self.folder.parent)
        self.disk.on_step = self.step
        try:
            await asyncio.gather(*(self.repeat(write) for write in (self.output, self.message, self.memory)))
        finally:
            self.disk.on_step = lambda: None
            self.store.close()

    async def repeat(self, write):
        for number in itertools.count():
            if len(self.cuts) >= self.wanted:
                return
            await write(number)

    async def output(self, number):
        text = f"{number} 🜛\r\n" + self.dice.randbytes(self.dice.choice([20, 3_000, 70_000])).hex()
        self.kept.outputs[await self.store.store(number, text)] = text
        if self.dice.random() < 0.2 and len(self.kept.outputs) > 2:
            gone = self.dice.choice(list(self.kept.outputs))
            del self.kept.outputs[gone]  # from here on it may be there or not
            await self.store.outputs.delete(ANA, gone)
            self.kept.deleted.add(gone)

    async def message(self, number):
        texts = [f"mensaje {number} {side}" for side in "ab"]
        both = [Message(f"m{number}{text[-1]}", "user", text, "", 0, 0) for text in texts]
        await self.store.messages.append(ANA, "t1", both, 1)
        self.kept.messages.update(texts)

    async def memory(self, number):
        text = f"memoria {number} del perro azul"
        await self.store.memories.write(ANA, Draft(text, Source.USER, keep=True))
        self.kept.memories.add(text)


async def check(folder, files, kept):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    store = Store(f"sqlite:///{folder / 'memory.db'}", folder.parent.parent)
    try:
        for pointer, text in kept.outputs.items():
            assert await store.read_all(pointer) == text
        for pointer in kept.deleted:
            with pytest.raises(Exception, match="OUTPUT_NOT_FOUND"):
                await store.outputs.get(ANA, pointer)
        page = await store.messages.page(ANA, "t1", before=None, page_size=500, max_characters=10**6)
        texts = [message.content for message in reversed(page.messages)]
        assert set(texts) >= kept.messages
        assert all(one[:-1] == other[:-1] for one, other in zip(texts[::2], texts[1::2], strict=True))
        assert await found(store) >= kept.memories
        assert (await store.store("after", "written after the cut")).startswith("out_")
    finally:
        store.close()
    assert_nothing_is_torn(folder / "memory.db")


async def found(store):
    """Return the texts of all memories, each of which stands in the index, and nothing else does."""

    def work(shelf):
        lengths, words = index_of(shelf.connection, shelf.owner_id)
        assert all(text in words[term] for text in lengths for term in terms(text).counts)
        assert set(lengths) == set().union(*words.values())
        return set(lengths)

    return await MemoryStore(store.database).read(ANA, work) or set()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """A database file that is brought up to date, to begin from."""
    path = tmp_path_factory.mktemp("fresh") / "memory.db"
    database = Database(f"sqlite:///{path}")
    database.migrate(PACKAGE)
    database.close()
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "runs", "cuts"), LONG + SHORT)
async def test_nothing_acknowledged_is_lost_when_power_fails(tmp_path, fresh, seed, runs, cuts):
    for number in range(runs):
        folder = tmp_path / f"run{number}"
        folder.mkdir()
        shutil.copyfile(fresh, folder / "memory.db")
        run = Run(folder, seed * 1_000 + number, cuts)
        await run.go()
        assert len(run.cuts) == cuts
        for at, (files, kept) in enumerate(run.cuts):
            (folder / f"cut{at}").mkdir()
            await check(folder / f"cut{at}", files, kept)
            shutil.rmtree(folder / f"cut{at}")
        assert min(map(len, (run.kept.outputs, run.kept.messages, run.kept.memories))) > 0


def test_the_cuts_are_a_thousand():
    assert sum(runs * cuts for _, runs, cuts in LONG + SHORT) == 1_000


async def test_this_disk_loses_what_was_not_synced(tmp_path):
    """The simulation itself can fail: without syncs, acknowledged writes are lost on it."""
    disk = Disk("careless")
    database = Database(f"sqlite+power:///{tmp_path / 'memory.db'}?disk=careless")
    database.migrate(PACKAGE)
    database.write_sync(lambda connection: connection.exec_driver_sql("CREATE TABLE kept (number INTEGER)"))
    raw = database.engine.raw_connection()
    for setting, rows in (("FULL", 1), ("OFF", 1)):
        raw.cursor().execute(f"PRAGMA synchronous={setting}")
        raw.cursor().execute("INSERT INTO kept VALUES (1)")
        for name, content in disk.cut(random.Random(1), keeps=[0.0]).items():
            (tmp_path / f"{setting}-{name}").write_bytes(content)
        with sqlite3.connect(tmp_path / f"{setting}-memory.db") as connection:
            assert connection.execute("SELECT count(*) FROM kept").fetchone() == (rows,)
        connection.close()
    raw.close()
    database.close()


async def test_after_a_failed_sync_nothing_is_written_until_the_next_start(tmp_path):
    disk = Disk("failing")
    url = f"sqlite+power:///{tmp_path / 'memory.db'}?disk=failing"
    store = Store(url, tmp_path)
    store.database.migrate(PACKAGE)
    pointer = await store.store(1, "kept before the disk failed")
    disk.fail_syncs = True
    with pytest.raises(Unavailable):
        await store.store(2, "never acknowledged, whatever the disk says later")
    disk.fail_syncs = False
    for number in (3, 4):
        with pytest.raises(Unavailable, match="check the disk"):
            await store.store(number, "refused, though the disk seems well again")
    assert not await store.database.probe()
    assert await store.read_all(pointer) == "kept before the disk failed"
    store.close()
    store = Store(url, tmp_path)
    assert await store.read_all(pointer) == "kept before the disk failed"
    assert (await store.store(5, "written after the start")).startswith("out_")
    store.close()
