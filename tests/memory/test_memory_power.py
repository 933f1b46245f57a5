"""Power fails at any write and any sync: what was acknowledged is there afterwards, whole."""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3

import pytest
from phylactery_chassis.clock import FakeClock
from phylactery_chassis.database import Database
from phylactery_chassis.errors import Unavailable
from phylactery_chassis.identity import Principal, Role
from phylactery_memory.domain.outputs import OutputRules, OutputSpec
from phylactery_memory.keys import UserKeys, load_master_keys
from phylactery_memory.outputs import Outputs
from phylactery_memory.service import PACKAGE
from phylactery_memory.store import faults
from phylactery_memory.store.keys import KeyStore
from phylactery_memory.store.outputs import OutputStore

from tests.support.power import Disk

ANA = Principal("ana", "acme", frozenset({Role.CALLER}))
CUTS = 50
"""Cuts in one run, which begins with an empty database."""
RUNS = int(os.environ.get("PHYLACTERY_POWER_CUTS", "100")) // CUTS
"""PHYLACTERY_POWER_CUTS=1000 makes a thousand cuts, which takes some minutes."""


def outputs_over(url, folder):
    database = Database(url)
    faults.watch(database)
    clock = FakeClock()
    keys = UserKeys(KeyStore(database), load_master_keys(folder / "keys", None), clock)
    return database, Outputs(OutputStore(database), keys, OutputRules(evict_over_chars=10), clock)


async def store(outputs, number, text):
    async def pieces():
        yield text.encode()

    return (await outputs.store(ANA, OutputSpec("t1", "r1", f"c{number}", "read_file"), pieces())).record.pointer


async def read_all(outputs, pointer):
    parts, offset, total = [], 0, 1
    while offset < total:
        part = await outputs.read(ANA, pointer, offset, 0)
        parts.append(part.text)
        offset, total = part.next_offset, part.total_chars
    return "".join(parts)


class Run:
    """Stores and deletes until enough cuts are taken, each with what was acknowledged at its moment."""

    def __init__(self, folder, seed):
        self.disk, self.dice, self.folder = Disk(f"disk{seed}"), random.Random(seed), folder
        self.acknowledged, self.deleted, self.cuts = {}, set(), []

    def step(self):
        if self.dice.random() < 0.1 and len(self.cuts) < CUTS:
            self.cuts.append((self.disk.cut(self.dice), dict(self.acknowledged), set(self.deleted)))

    async def go(self):
        database, outputs = outputs_over(
            f"sqlite+power:///{self.folder / 'memory.db'}?disk={self.disk.name}", self.folder
        )
        database.migrate(PACKAGE)
        self.disk.on_step = self.step
        number = 0
        while len(self.cuts) < CUTS:
            number += 1
            text = f"{number} 🜛\r\n" + self.dice.randbytes(self.dice.choice([20, 3_000, 70_000])).hex()
            pointer = await store(outputs, number, text)
            self.acknowledged[pointer] = text
            if self.dice.random() < 0.2 and len(self.acknowledged) > 2:
                gone = self.dice.choice(list(self.acknowledged))
                del self.acknowledged[gone]  # from here on it may be there or not
                await outputs.delete(ANA, gone)
                self.deleted.add(gone)
        self.disk.on_step = lambda: None
        outputs.close()
        database.close()


async def check(folder, files, acknowledged, deleted):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    database, outputs = outputs_over(f"sqlite:///{folder / 'memory.db'}", folder.parent)
    try:
        for pointer, text in acknowledged.items():
            assert await read_all(outputs, pointer) == text
        for pointer in deleted:
            with pytest.raises(Exception, match="OUTPUT_NOT_FOUND"):
                await outputs.get(ANA, pointer)
        assert (await store(outputs, "after", "written after the cut")).startswith("out_")
    finally:
        outputs.close()
        database.close()
    with sqlite3.connect(folder / "memory.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        sizes = "SELECT coalesce(sum(chars), 0) FROM output_chunks c WHERE c.pointer = o.pointer"
        assert connection.execute(f"SELECT count(*) FROM outputs o WHERE size_chars <> ({sizes})").fetchone() == (0,)
    connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(RUNS))
async def test_no_acknowledged_output_is_lost_when_power_fails(tmp_path, seed):
    run = Run(tmp_path, seed)
    await run.go()
    assert len(run.cuts) == CUTS
    assert any(acknowledged for _, acknowledged, _ in run.cuts)
    for number, (files, acknowledged, deleted) in enumerate(run.cuts):
        folder = tmp_path / f"cut{number}"
        folder.mkdir()
        await check(folder, files, acknowledged, deleted)
        await asyncio.to_thread(lambda gone: [path.unlink() for path in gone.iterdir()], folder)


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
    database, outputs = outputs_over(url, tmp_path)
    database.migrate(PACKAGE)
    pointer = await store(outputs, 1, "kept before the disk failed")
    disk.fail_syncs = True
    with pytest.raises(Unavailable):
        await store(outputs, 2, "never acknowledged, whatever the disk says later")
    disk.fail_syncs = False
    for number in (3, 4):
        with pytest.raises(Unavailable, match="check the disk"):
            await store(outputs, number, "refused, though the disk seems well again")
    assert not await database.probe()
    assert await read_all(outputs, pointer) == "kept before the disk failed"
    outputs.close()
    database.close()
    database, outputs = outputs_over(url, tmp_path)
    assert await read_all(outputs, pointer) == "kept before the disk failed"
    assert (await store(outputs, 5, "written after the start")).startswith("out_")
    outputs.close()
    database.close()
