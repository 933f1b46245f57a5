"""A full disk fails only the writes it must, whatever shares their transaction, and all work again with space."""

from __future__ import annotations

import asyncio
import itertools
import random

import grpc
import pytest
from grpc import aio
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log
from phylactery_chassis.errors import ResourceExhausted
from phylactery_memory.app import PACKAGE
from phylactery_memory.transcript.model import Message
from phylactery_memory.transcript.store import MessageStore

from tests.support.databases.erasures import files_with
from tests.support.databases.power import Disk

NUMBERS = itertools.count()


def said(count, size):
    return [Message(f"m{next(NUMBERS)}", "user", "x" * size, "", 0, 0) for _ in range(count)]


class Pages:
    """SQLite's own limit, met in the middle of a statement."""

    def __init__(self, folder) -> None:
        self.database = Database(f"sqlite:///{folder / 'memory.db'}")

    def limit(self, room) -> None:
        def work(connection) -> None:
            now = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            limit = 1_000_000 if room is None else now + room // 4_096
            connection.exec_driver_sql(f"PRAGMA max_page_count={limit}").close()

        self.database.write_sync(work)


class Room:
    """A disk's limit, met where pages go to the log: in a statement that outgrows the cache, or in the commit."""

    def __init__(self, folder) -> None:
        self.disk = Disk(f"full{next(NUMBERS)}")
        self.database = Database(f"sqlite+power:///{folder / 'memory.db'}?disk={self.disk.name}")

    def limit(self, room) -> None:
        self.disk.room = room


@pytest.fixture(params=[Pages, Room])
def full(request, tmp_path):
    one = request.param(tmp_path)
    one.database.migrate(PACKAGE)
    yield one
    one.database.close()


def length(database):
    return database.read_sync(lambda c: c.exec_driver_sql("SELECT count(*) FROM messages_v2").scalar_one())


@pytest.mark.parametrize("at", [0, 3, 7])
@pytest.mark.parametrize("size", [3_000, 60_000], ids=["within the cache", "beyond the cache"])
async def test_who_shares_a_transaction_with_what_fits_nowhere_is_kept(full, at, size):
    store = MessageStore(full.database)
    full.limit(200_000)
    parts = [said(100, size) if number == at else said(1, 10) for number in range(8)]
    answers = await asyncio.gather(
        *(store.append(Principal(f"u{n}", "acme", frozenset()), "t1", part, 1) for n, part in enumerate(parts)),
        return_exceptions=True,
    )
    refusal = answers.pop(at)
    assert isinstance(refusal, ResourceExhausted)
    assert refusal.reason == "STORE_FULL"
    assert [last for last, _ in answers] == [1] * 7
    assert length(full.database) == 7
    full.limit(None)
    last, added = await store.append(Principal(f"u{at}", "acme", frozenset()), "t1", parts[at], 1)
    assert (last, len(added)) == (100, 100)
    assert await full.database.probe()


async def test_a_full_disk_under_the_service_refuses_every_write_as_full_and_reads_go_on(make_memory, tmp_path):
    disk = Disk(f"full{next(NUMBERS)}")
    memory = await make_memory(database_url=f"sqlite+power:///{tmp_path / 'memory.db'}?disk={disk.name}")
    ana, dice = memory.user(), random.Random(1)
    pointer = (await ana.store("línea\n" * 5_000)).output.pointer
    origin = await ana.say("m1", "dark")
    await ana.write("Mi perro se llama Coco", keep=True)
    disk.room = 0

    def calls(name):
        noise = dice.randbytes(20_000).hex()
        return {
            "output": ana.store(noise, run_id=name),
            "message": ana.say(f"m{name}", noise),
            "memory": ana.write(f"Mi gato número {name} es azul", keep=True),
            "profile": ana.set(**{f"ui__{name}": "dark"}, lineage=[origin]),
        }

    async def tried(kind, answer):
        try:
            await answer
        except aio.AioRpcError as error:
            return kind, error.code(), "full" in error.details()
        return kind, grpc.StatusCode.OK, False

    # the log is written over from its beginning where it was emptied, so its old room goes first
    outcomes = [("message", grpc.StatusCode.OK, False)]
    while len(refused := {kind for kind, code, _ in outcomes if code is not grpc.StatusCode.OK}) < 4:
        assert len(outcomes) < 1_000, refused
        outcomes += [await tried(*call) for call in calls(f"a{len(outcomes)}").items()]
    at_once = [tried(*call) for number in range(4) for call in calls(f"b{number}").items()]
    outcomes += await asyncio.gather(*at_once)
    assert {(code, full) for _, code, full in outcomes} <= {
        (grpc.StatusCode.OK, False),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, True),
    }
    kept = sum(kind == "message" and code is grpc.StatusCode.OK for kind, code, _ in outcomes)
    assert len((await ana.list("t1", page_size=500)).messages) == memory.count("messages_v2") == kept
    assert await ana.read_all(pointer) == "línea\n" * 5_000
    assert "Coco" in str(await ana.context(query="perro"))
    disk.room = None
    assert {code for _, code, _ in [await tried(*call) for call in calls("after").items()]} == {grpc.StatusCode.OK}
    assert await memory.database.probe()


async def test_an_erasure_that_finds_the_disk_full_removes_nothing_and_is_finished_by_the_same_request(
    make_memory, refused, tmp_path
):
    disk = Disk(f"full{next(NUMBERS)}")
    memory = await make_memory(database_url=f"sqlite+power:///{tmp_path / 'memory.db'}?disk={disk.name}")
    ana = memory.user()
    pointer = (await ana.store("línea\n" * 5_000)).output.pointer
    await ana.say("m1", "una zarzuela")
    await ana.write("Mi zarzuela es azul", keep=True)
    before = await ana.export()
    assert await forget_log(memory.database)  # so that every page it writes takes room
    disk.room = 0
    for _ in range(2):
        refusal = await refused(ana.erase("erase-while-full"))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    assert (await ana.export())[1:] == before[1:]
    assert await ana.read_all(pointer) == "línea\n" * 5_000
    disk.room = None
    erasure = await ana.erase("erase-while-full")
    assert (erasure.counts.messages, erasure.counts.memories, erasure.counts.outputs) == (1, 1, 1)
    assert [record["type"] for record in await ana.export()] == ["header", "end"]
    assert files_with(tmp_path, "zarzuela") == []
