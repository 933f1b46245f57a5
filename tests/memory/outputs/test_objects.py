"""Outputs in an S3-compatible store: sealed, read back, permanently removed, and never wrong through failures."""

from __future__ import annotations

import asyncio
import sys
import time

import grpc
import pytest
import sqlalchemy as sa
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_memory.outputs.bucket import Bucket, BucketTarget
from phylactery_memory.settings import MemorySettings

from tests.support.servers import s3
from tests.support.servers.postgres import brief_database

Code = grpc.StatusCode
SECRET = "el-texto-que-nadie-debe-leer "
LONG = SECRET * 1_000
LARGE = "".join(f"línea {n} 🜛 {n * n}\r\n" for n in range(20_000))
"""Several chunks."""
LATER = 10**9
"""Seconds after which every object is old, whatever the machine's clock says."""


@pytest.fixture
def memory(in_bucket):
    return in_bucket


@pytest.fixture
def kept(kept_in_bucket):
    return kept_in_bucket


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    kept.clock.advance(time.time() - kept.clock.now_us() / MICROSECONDS)  # what the store dates its objects by
    pointer = (await ana.store(LONG)).output.pointer
    [name] = store.names()
    orphan, elsewhere = name.replace(pointer, "out_orphan"), "pre/fix/mem_another/out_theirs"
    for left in (orphan, elsewhere):
        store.put(left, b"x")
    for minutes in (0, 59):
        kept.clock.advance(minutes * 60)
        await kept.tidy()
        assert set(store.names()) == {name, orphan, elsewhere}, "the grace is an hour"
    kept.clock.advance(30 * 60)
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


async def test_outputs_from_before_the_bucket_are_read_where_they_are(make_memory, store, tmp_path):
    memory = await make_memory()
    before = (await memory.user().store(LARGE)).output.pointer
    again = await make_memory(data_dir=memory.path.parent, **store.settings(tmp_path))
    ana = again.user()
    after = (await ana.store(LARGE, tool_call_id="c2")).output.pointer
    assert [name.rpartition("/")[2] for name in store.names()] == [after]
    assert await ana.read_all(before) == await ana.read_all(after) == LARGE


async def test_the_standard_variables_say_who_asks_where_no_setting_does(make_memory, store, tmp_path, monkeypatch):
    options = store.settings(tmp_path, object_store_key_id="", object_store_secret_file=None, object_store_region="")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    ana = (await make_memory(**options)).user()
    assert await ana.read_all((await ana.store(LARGE)).output.pointer) == LARGE
    assert len(store.names()) == 1


@pytest.mark.slow
async def test_two_replicas_that_start_at_once_share_one_folder(make_memory, store, tmp_path, postgres_url):
    url = brief_database(postgres_url, "phylactery_memory")
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
