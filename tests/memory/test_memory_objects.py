"""Outputs in an S3-speaking store: sealed there, read back, removed for good, never wrong whatever fails between."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_memory.settings import MemorySettings
from phylactery_memory.store.bucket import Bucket, BucketTarget

from tests.support import s3
from tests.support.postgres import create_database

Code = grpc.StatusCode
SECRET = "el-texto-que-nadie-debe-leer "
LONG = SECRET * 1_000
LARGE = "".join(f"línea {n} 🜛 {n * n}\r\n" for n in range(20_000))
"""Several chunks."""
LATER = 10**9
"""Seconds after which every object is old, whatever the machine's clock says."""


@pytest.fixture(scope="module")
def running():
    with s3.server() as server:
        yield server


@pytest.fixture
def store(running):
    """The server without an object in it."""
    for name in running.names():
        running.delete(name)
    return running


@pytest.fixture
async def memory(make_memory, store, tmp_path):
    return await make_memory(output_ttl_days=0, **store.settings(tmp_path))


@pytest.fixture(params=["sqlite", "postgresql"])
async def kept(request, make_memory, store, tmp_path):
    """A memory service over either database."""
    options = {"output_ttl_days": 0, **store.settings(tmp_path)}
    if request.param == "postgresql":
        url = create_database(request.getfixturevalue("postgres_url"), f"o{random.getrandbits(64):x}")
        options["database_url"] = url
    return await make_memory(**options)


def impatient(store, tmp_path, **changes):
    """The settings of a service that waits two seconds for the store."""
    return store.settings(tmp_path, object_store_timeout_seconds=2, **changes)


async def once_it_is_back(call):
    """Answers what a call does once the store answers again, which may take a busy machine longer than two seconds."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except aio.AioRpcError as error:
                if error.code() is not Code.UNAVAILABLE:
                    raise
            except Unavailable:
                pass


async def test_an_output_lies_sealed_in_the_bucket_and_is_read_in_every_way(kept, store):
    ana = kept.user()
    stored = await ana.store(LARGE)
    pointer = stored.output.pointer
    assert stored.placeholder == f"[EVICTED size={len(LARGE)}] See {pointer}"
    [name] = store.names()
    assert name.startswith("pre/fix/mem_")
    assert name.endswith(f"/{pointer}")
    assert b"nea 1" not in store.get(name)
    empty = kept.database.read_sync(
        lambda c: c.execute(sa.text("SELECT count(*), sum(length(body)) FROM output_chunks")).one()
    )
    assert empty[0] > 5
    assert empty[1] == 0
    assert await ana.read_all(pointer) == LARGE
    assert (await ana.read(pointer, len(LARGE) - 7, 100)).text == LARGE[-7:]
    assert (await ana.read_lines(pointer, 15_001, 2)).text == "".join(LARGE.splitlines(keepends=True)[15_000:15_002])
    found = await ana.grep(pointer, r"^línea 19999 ")
    assert [match.line.number for match in found.matches] == [20_000]
    small = (await ana.store(LONG, tool_call_id="c2")).output.pointer
    assert (await ana.rehydrate(small)).text == LONG
    exported = "".join(record["text"] for record in await ana.export() if record["type"] == "output_text")
    assert exported in {LARGE + LONG, LONG + LARGE}


async def test_a_range_fetches_the_chunks_that_hold_it_and_no_more(memory, store, monkeypatch):
    pointer = (await memory.user().store(LARGE)).output.pointer
    [name] = store.names()
    bucket, sizes = type(memory.objects._bucket), []
    real = bucket.range

    async def note(self, name, start, size):
        sizes.append(size)
        return await real(self, name, start, size)

    monkeypatch.setattr(bucket, "range", note)
    assert (await memory.user().read(pointer, 300_000, 5)).text == LARGE[300_000:300_005]
    assert len(sizes) == 1
    assert sizes[0] < len(store.get(name)) / 5


async def test_the_same_call_again_is_the_same_output_and_leaves_one_object(kept, store, refused):
    ana = kept.user()
    pointers = {stored.output.pointer for stored in await asyncio.gather(*(ana.store(LONG) for _ in range(4)))}
    assert len(pointers) == 1
    assert [name.rpartition("/")[2] for name in store.names()] == list(pointers)
    assert (await refused(ana.store(LONG + "!"))).reason == "OUTPUT_CONFLICT"
    assert len(store.names()) == 1


async def test_two_tenants_share_a_bucket_and_nothing_else(kept, store, refused):
    ana, twin = kept.user("ana", "acme"), kept.user("ana", "globex")
    mine, theirs = (await ana.store(LARGE)).output.pointer, (await twin.store(LARGE)).output.pointer
    for call in (twin.read(mine), twin.grep(mine, "x"), twin.rehydrate(mine), twin.read_lines(mine)):
        assert (await refused(call)).reason == "OUTPUT_NOT_FOUND"
    assert not await twin.delete(mine)
    bodies = {name: store.get(name) for name in store.names()}
    [of_mine], [of_theirs] = ([n for n in bodies if n.endswith(p)] for p in (mine, theirs))
    assert bodies[of_mine] != bodies[of_theirs]
    store.put(of_mine, bodies[of_theirs])
    assert (await refused(ana.read(mine))).reason == "OUTPUT_CORRUPT"
    assert (await twin.erase()).counts.outputs == 1
    store.put(of_mine, bodies[of_mine])
    assert store.names() == [of_mine]
    assert await ana.read_all(mine) == LARGE


async def test_an_output_over_the_quota_leaves_no_object(make_memory, store, tmp_path, refused):
    memory = await make_memory(output_quota_bytes=len(LONG) + 10, **store.settings(tmp_path))
    await memory.user().store(LONG)
    assert (await refused(memory.user().store(LONG, tool_call_id="c2"))).reason == "OUTPUT_QUOTA"
    assert len(store.names()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body[:100] + bytes([body[100] ^ 1]) + body[101:],
        lambda body: body[:-1],
        lambda body: body[: len(body) // 2],
        lambda body: b"",
        lambda body: b"\0" * len(body),
        lambda body: b"\0" + body,
        lambda _body: None,
    ],
    ids=["a flipped bit", "a byte short", "half", "empty", "zeros", "moved", "missing"],
)
async def test_an_altered_or_missing_object_is_data_loss_and_no_text(memory, store, refused, change):
    ana = memory.user()
    pointer = (await ana.store(LARGE)).output.pointer
    [name] = store.names()
    body = store.get(name)
    changed = change(body)
    if changed is None:
        store.delete(name)
    else:
        store.put(name, changed)
    for call in (ana.read_all(pointer), ana.grep(pointer, "no such word")):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (Code.DATA_LOSS, "OUTPUT_CORRUPT")
    assert (await ana.get(pointer)).pointer == pointer
    store.put(name, body)
    assert await ana.read_all(pointer) == LARGE


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE output_chunks SET object_start = object_start + 1",
        "UPDATE output_chunks SET object_bytes = object_bytes - 1",
        "UPDATE output_chunks SET object_bytes = 9000000000000000000",
        "UPDATE output_chunks SET object_bytes = -5",
        "UPDATE output_chunks SET object_start = -5",
        "UPDATE output_chunks SET object_start = 5000000000000000000",
        "UPDATE output_chunks SET object_bytes = 0",
        "UPDATE output_chunks SET object_bytes = 0 WHERE first_char = 0",
    ],
)
async def test_a_row_that_points_elsewhere_in_its_object_is_data_loss(memory, refused, statement):
    pointer = (await memory.user().store(LARGE)).output.pointer
    memory.database.write_sync(lambda connection: connection.exec_driver_sql(statement))
    for call in (memory.user().read_all(pointer), memory.user().grep(pointer, "no such word")):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (Code.DATA_LOSS, "OUTPUT_CORRUPT")


async def test_a_deleted_output_takes_its_object_along(kept, store):
    ana = kept.user()
    gone, stays = (await ana.store(LONG)).output.pointer, (await ana.store(LONG, tool_call_id="c2")).output.pointer
    assert await ana.delete(gone)
    assert [name.rpartition("/")[2] for name in store.names()] == [stays]
    assert kept.count("output_objects") == 1
    assert await ana.read_all(stays) == LONG


async def test_an_expired_output_takes_its_object_along(make_memory, store, tmp_path):
    memory = await make_memory(output_ttl_days=1, **store.settings(tmp_path))
    await memory.user().store(LONG)
    memory.clock.advance(86_400)
    assert await memory.tidy() == 1
    assert store.names() == []
    assert memory.count("output_objects") == 0


async def test_an_erased_user_has_no_object_left_and_no_key_to_a_copy_of_one(kept, store, refused):
    ana, ben = kept.user("ana"), kept.user("ben")
    for number in range(3):
        await ana.store(LARGE, tool_call_id=f"c{number}")
    others = (await ben.store(LARGE)).output.pointer
    copies = {name: store.get(name) for name in store.names()}
    erasure = await ana.erase()
    assert (erasure.counts.outputs, erasure.counts.keys) == (3, 1)
    assert [name.rpartition("/")[2] for name in store.names()] == [others]
    assert kept.count("user_keys") == 1
    for name, body in copies.items():  # a backup of the bucket
        store.put(name, body)
    for name in copies.keys() - {n for n in copies if n.endswith(others)}:
        assert (await refused(ana.read(name.rpartition("/")[2]))).reason == "OUTPUT_NOT_FOUND"
    assert await ben.read_all(others) == LARGE


async def test_an_object_without_an_output_is_removed_after_the_grace_and_never_before(kept, store):
    ana = kept.user()
    pointer = (await ana.store(LONG)).output.pointer
    [name] = store.names()
    orphan, elsewhere = name.replace(pointer, "out_orphan"), "pre/fix/mem_another/out_theirs"
    for left in (orphan, elsewhere):
        store.put(left, b"x")
    await kept.tidy()
    assert set(store.names()) == {name, orphan, elsewhere}
    kept.clock.advance(LATER)
    await kept.tidy()
    assert set(store.names()) == {name, elsewhere}
    assert kept.count("output_objects") == 1
    assert await ana.read_all(pointer) == LONG


async def test_an_output_removed_behind_the_services_back_takes_its_object_along(kept, store):
    ana = kept.user()
    await ana.store(LONG)
    stays = (await ana.store(LONG, tool_call_id="c2")).output.pointer
    gone = sa.text("DELETE FROM outputs WHERE pointer <> :stays")
    kept.database.write_sync(lambda connection: connection.execute(gone, {"stays": stays}))
    await kept.tidy()
    assert [name.rpartition("/")[2] for name in store.names()] == [stays]
    assert kept.count("output_objects") == 1


async def test_an_output_given_up_for_lost_is_not_made_after_all(kept, store, refused, monkeypatch):
    """A replica sweeps an object, long on its way, between its put and its row."""
    real = type(kept.objects).put

    async def slow(self, pointer, chunks):
        placed = await real(self, pointer, chunks)
        await kept.objects.doom_orphans(-LATER * 1_000_000)
        return placed

    monkeypatch.setattr(type(kept.objects), "put", slow)
    refusal = await refused(kept.user().store(LONG))
    assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
    monkeypatch.undo()
    assert kept.count("outputs") == 0
    await kept.tidy()
    assert store.names() == []
    assert await kept.user().read_all((await kept.user().store(LONG)).output.pointer) == LONG


async def test_a_store_that_does_not_answer_is_unavailable_and_everything_else_goes_on(
    make_memory, tmp_path, refused, capfd
):
    with s3.server() as store:
        memory = await make_memory(output_ttl_days=0, **impatient(store, tmp_path))
        ana = memory.user()
        pointers = [
            (await once_it_is_back(partial(ana.store, LARGE, tool_call_id=f"c{n}"))).output.pointer for n in range(3)
        ]
        store.pause()
        for call in (ana.read(pointers[0]), ana.grep(pointers[0], "x"), ana.store(LONG, tool_call_id="late")):
            refusal = await refused(call)
            assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
            assert s3.SECRET not in refusal.message
        assert (await ana.get(pointers[0])).size_chars == len(LARGE)
        await ana.say("m1", "hola")
        assert (await ana.store("corto")).output.pointer == ""
        assert await ana.delete(pointers[1])
        assert (await refused(ana.read(pointers[1]))).code is Code.NOT_FOUND
        assert memory.count("output_objects") == 3
        store.resume()
        assert await once_it_is_back(lambda: ana.read_all(pointers[0])) == LARGE
        await once_it_is_back(memory.tidy)
        assert memory.count("output_objects") == 2
        # what was sent to the paused store may have arrived after all: an orphan, which the sweep finds
        memory.clock.advance(LATER)

        def swept():
            return {name.rpartition("/")[2] for name in store.names()} == {pointers[0], pointers[2]}

        async with asyncio.timeout(30):
            while not swept():
                await once_it_is_back(memory.tidy)
        store.kill()
        for call in (ana.read(pointers[0]), ana.store(LONG, tool_call_id="later")):
            assert (await refused(call)).code is Code.UNAVAILABLE
        assert memory.count("outputs") == 2
    assert s3.SECRET not in "".join(capfd.readouterr())


async def test_an_erasure_waits_for_a_store_that_does_not_answer_and_ends_with_the_same_request(
    make_memory, tmp_path, refused
):
    with s3.server() as store:
        memory = await make_memory(output_ttl_days=0, **impatient(store, tmp_path))
        ana, ben = memory.user("ana"), memory.user("ben")
        await once_it_is_back(lambda: ana.store(LARGE))
        theirs = (await once_it_is_back(lambda: ben.store(LARGE))).output.pointer
        store.pause()
        refusal = await refused(ana.erase())
        assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
        assert "same request_id" in refusal.message
        assert memory.count("user_keys") == 1
        store.resume()
        erasure = await once_it_is_back(ana.erase)
        assert (erasure.counts.outputs, erasure.counts.keys) == (1, 1)
        assert [name.rpartition("/")[2] for name in store.names()] == [theirs]


async def test_wrong_credentials_are_said_once_without_the_secret_and_right_ones_go_on(
    make_memory, tmp_path, refused, capfd
):
    with s3.server() as store:
        memory = await make_memory(output_ttl_days=0, **store.settings(tmp_path))
        ana = memory.user()
        pointer = (await ana.store(LARGE)).output.pointer
        store.check_credentials(on=True)
        for call in (ana.read(pointer), ana.store(LONG, tool_call_id="c2")):
            refusal = await refused(call)
            assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
            assert "credentials" in refusal.message
            assert s3.SECRET not in refusal.message
        with pytest.raises(StartError, match="refuses this service's credentials"):
            await make_memory(**store.settings(tmp_path))
        store.check_credentials(on=False)
        assert await ana.read_all(pointer) == LARGE
        assert memory.count("outputs") == 1
    assert s3.SECRET not in "".join(capfd.readouterr())


async def test_a_bucket_that_is_not_there_or_another_keeps_the_service_from_starting(make_memory, store, tmp_path):
    with pytest.raises(StartError, match="no such bucket"):
        await make_memory(**store.settings(tmp_path, object_store_url="s3://nobody-made-it"))
    memory = await make_memory(**store.settings(tmp_path))
    pointer = (await memory.user().store(LONG)).output.pointer
    folder = memory.path.parent
    store.make_bucket("another")
    with pytest.raises(StartError, match="another bucket or prefix"):
        await make_memory(data_dir=folder, **store.settings(tmp_path, object_store_url="s3://another"))
    with pytest.raises(StartError, match="MEMORY_OBJECT_STORE_URL"):
        await make_memory(data_dir=folder)
    again = await make_memory(data_dir=folder, **store.settings(tmp_path))
    assert await again.user().read_all(pointer) == LONG


async def test_a_store_that_is_away_at_the_start_is_found_when_it_is_back(make_memory, tmp_path, refused):
    with s3.server() as store:
        store.pause()
        memory = await make_memory(**impatient(store, tmp_path))
        ana = memory.user()
        await ana.say("m1", "hola")
        assert (await refused(ana.store(LONG))).code is Code.UNAVAILABLE
        store.resume()
        stored = await once_it_is_back(lambda: ana.store(LONG))
        assert await once_it_is_back(lambda: ana.read_all(stored.output.pointer)) == LONG


async def test_outputs_from_before_the_bucket_are_read_where_they_are(make_memory, store, tmp_path):
    memory = await make_memory()
    before = (await memory.user().store(LARGE)).output.pointer
    again = await make_memory(data_dir=memory.path.parent, **store.settings(tmp_path))
    ana = again.user()
    after = (await ana.store(LARGE, tool_call_id="c2")).output.pointer
    assert [name.rpartition("/")[2] for name in store.names()] == [after]
    assert await ana.read_all(before) == await ana.read_all(after) == LARGE


async def test_an_output_erased_while_it_is_read_is_gone_and_not_damaged(memory, refused, monkeypatch):
    ana = memory.user()
    pointer = (await ana.store(LARGE)).output.pointer
    bucket = type(memory.objects._bucket)
    real, erased = bucket.range, []

    async def erase_first(self, *span):
        if not erased:
            erased.append(True)
            await memory.user().erase()
        return await real(self, *span)

    monkeypatch.setattr(bucket, "range", erase_first)
    assert (await refused(ana.read(pointer))).code is Code.NOT_FOUND
    assert erased


async def test_the_standard_variables_say_who_asks_where_no_setting_does(make_memory, store, tmp_path, monkeypatch):
    options = store.settings(tmp_path, object_store_key_id="", object_store_secret_file=None, object_store_region="")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    ana = (await make_memory(**options)).user()
    assert await ana.read_all((await ana.store(LARGE)).output.pointer) == LARGE
    assert len(store.names()) == 1


async def test_two_replicas_that_start_at_once_share_one_folder(make_memory, store, tmp_path, postgres_url):
    url = create_database(postgres_url, f"o{random.getrandbits(64):x}")
    key = (await make_memory()).path.parent / "keys" / "master.key"
    options = {**store.settings(tmp_path), "database_url": url, "master_key_file": key}
    await make_memory(database_url=url, master_key_file=key)
    folders = tmp_path / "first", tmp_path / "second"
    first, second = await asyncio.gather(*(make_memory(data_dir=folder, **options) for folder in folders))
    pointers = [
        (await who.user().store(LARGE, tool_call_id=f"c{i}")).output.pointer for i, who in enumerate((first, second))
    ]
    assert len({name.rpartition("/")[0] for name in store.names()}) == 1
    for who in (first, second):
        for pointer in pointers:
            assert await who.user().read_all(pointer) == LARGE
    assert first.count("object_stores") == 1


class Process:
    """A real memory process over a folder and a store, which may die at a crash point."""

    def __init__(self, folder: Path, store: s3.S3, point: str = "none") -> None:
        self.ready = folder / "ready.json"
        self.ready.unlink(missing_ok=True)
        environment = {
            **os.environ, **store.environment(folder), "MEMORY_PORT": "0", "MEMORY_DATA_DIR": str(folder),
            "MEMORY_READY_FILE": str(self.ready), "MEMORY_LOG_LEVEL": "ERROR", "MEMORY_GC_SECONDS": "0.2",
            "MEMORY_OUTPUT_TTL_DAYS": "0", "CRASH_SERVICE": "memory", "CRASH_AT": point,
        }  # fmt: skip
        self.child = subprocess.Popen([sys.executable, "-m", "tests.support.crashing"], env=environment)

    async def port(self) -> int:
        async with asyncio.timeout(60):
            while not self.ready.exists():
                assert self.child.poll() is None
                await asyncio.sleep(0.05)
        return int(json.loads(self.ready.read_text())["port"])

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(30) == 0


async def test_a_process_killed_between_object_and_row_leaves_an_orphan_and_no_output(
    tmp_path, store, user_of, make_memory
):
    folder = tmp_path / "killed"
    folder.mkdir()
    server = Process(folder, store, "memory.output.object#2")
    async with aio.insecure_channel(f"127.0.0.1:{await server.port()}", [("grpc.enable_retries", 0)]) as channel:
        kept = (await user_of(channel).store(LARGE)).output.pointer
        with pytest.raises(aio.AioRpcError) as caught:
            await user_of(channel).store(LARGE, tool_call_id="c2")
        assert caught.value.code() is Code.UNAVAILABLE
    assert server.child.wait(30) == -signal.SIGKILL
    assert len(store.names()) == 2
    memory = await make_memory(data_dir=folder, output_ttl_days=0, **store.settings(tmp_path))
    assert memory.count("outputs") == 1
    assert await memory.user().read_all(kept) == LARGE
    again = (await memory.user().store(LARGE, tool_call_id="c2")).output.pointer
    memory.clock.advance(LATER)
    await memory.tidy()
    assert {name.rpartition("/")[2] for name in store.names()} == {kept, again}
    assert await memory.user().read_all(again) == LARGE


async def test_a_process_killed_between_an_erasure_and_its_objects_removes_them_at_the_next_start(
    tmp_path, store, user_of
):
    server = Process(tmp_path, store, "memory.erase.removed")
    async with aio.insecure_channel(f"127.0.0.1:{await server.port()}", [("grpc.enable_retries", 0)]) as channel:
        await user_of(channel).store(LARGE)
        with pytest.raises(aio.AioRpcError):
            await user_of(channel).erase()
    assert server.child.wait(30) == -signal.SIGKILL
    assert len(store.names()) == 1
    server = Process(tmp_path, store)
    await server.port()
    async with asyncio.timeout(30):
        while store.names():
            await asyncio.to_thread(server.child.poll)
    server.end()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"object_store_url": "https://bucket"}, "object_store_url"),
        ({"object_store_url": "s3://UPPER"}, "object_store_url"),
        ({"object_store_url": "s3://bucket/../up"}, None),
        ({"object_store_endpoint": "http://user:password@host"}, "object_store_endpoint"),
        ({"object_store_key_id": "k"}, "set together"),
        (
            {"object_store_url": "s3://bucket", "object_store_key_id": "k", "object_store_secret_file": "/no/file"},
            "cannot be read",
        ),
    ],
)
def test_settings_that_make_no_store_are_refused_by_name(options, said):
    if said is None:
        assert MemorySettings(**options).bucket is not None
        return
    with pytest.raises(ValueError, match=said):
        MemorySettings(**options)


def test_an_installation_without_the_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    with pytest.raises(StartError, match=r"phylactery-memory\[s3\]"):
        Bucket(BucketTarget("bucket"))


def test_a_secret_is_in_no_description_of_the_settings(tmp_path, store):
    target = MemorySettings(**store.settings(tmp_path)).bucket
    assert target.secret == s3.SECRET
    assert s3.SECRET not in repr(target)


async def test_a_name_is_never_written_over(memory):
    bucket = memory.objects._bucket
    await bucket.put("folder/name", [b"first"])
    with pytest.raises(Unavailable):
        await bucket.put("folder/name", [b"second"])
    assert await bucket.range("folder/name", 0, 10) == b"first"
