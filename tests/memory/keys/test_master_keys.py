"""Master keys: created once, readable by their owner only, and rotated while wrapped keys stay readable."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import StartError
from phylactery_memory.app import build
from phylactery_memory.keys.ring import load_master_keys, warn_beside_data
from phylactery_memory.keys.store import KeyStore, UserKey
from phylactery_memory.settings import MemorySettings
from structlog.testing import capture_logs

LONG = "el-texto-que-nadie-debe-leer " * 1_000
ANA = Principal("ana", "acme", frozenset({Role.CALLER}))


async def test_a_master_key_is_made_once_for_its_owner_alone(tmp_path):
    folder = tmp_path / "keys"
    first = load_master_keys(folder, None)
    assert load_master_keys(folder, None).active_id == first.active_id
    assert (folder / "master.key").stat().st_mode & 0o777 == 0o600
    assert [path.name for path in folder.iterdir()] == ["master.key"]


def test_a_master_key_beside_the_data_is_warned_of_and_one_elsewhere_is_not(tmp_path):
    data = tmp_path / "data"
    key = data / "keys" / "master.key"
    for named in (None, key):
        with capture_logs() as lines:
            warn_beside_data(data / "keys", named)
        (line,) = lines
        assert line["log_level"] == "warning"
        assert "next to the data" in line["event"]
        assert "MEMORY_MASTER_KEY_FILE" in line["event"]
        assert line["file"] == str(key)
    with capture_logs() as lines:
        warn_beside_data(data / "keys", tmp_path / "secrets" / "key")
    assert lines == []


async def test_a_service_that_serves_tells_of_a_master_key_beside_its_data(tmp_path):
    with capture_logs() as lines:
        service = await build(MemorySettings(data_dir=tmp_path))
    assert not [line for line in lines if "next to the data" in line["event"]]
    with capture_logs() as lines:
        for tell in service.on_serving:
            tell()
    assert [line["log_level"] for line in lines if "next to the data" in line["event"]] == ["warning"]
    for end in service.on_stop:
        await end()


@pytest.mark.parametrize("content", [b"", b"short", b"%%%", b"A" * 44])
def test_a_damaged_master_key_is_named(tmp_path, content):
    file = tmp_path / "master"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(StartError, match=r"master: is not a master key"):
        load_master_keys(tmp_path, file)


def test_a_master_key_others_may_read_is_refused(tmp_path):
    load_master_keys(tmp_path, None)
    (tmp_path / "master.key").chmod(0o644)
    with pytest.raises(StartError, match="chmod 600"):
        load_master_keys(tmp_path, None)


async def test_a_database_does_not_start_under_another_master_key_and_does_with_both(memory, ana, tmp_path):
    pointer = (await ana.store(LONG)).output.pointer
    mine = (memory.path.parent / "keys" / "master.key").read_text()
    other = load_master_keys(tmp_path / "other", None)
    store = KeyStore(memory.database)
    with pytest.raises(StartError, match="MEMORY_MASTER_KEY_FILE"):
        await store.admit(other.active_id, other.ids, 1)
    both = tmp_path / "both"
    both.write_text((tmp_path / "other" / "master.key").read_text() + mine)
    both.chmod(0o600)
    rotated = load_master_keys(tmp_path, both)
    assert rotated.active_id == other.active_id
    await store.admit(rotated.active_id, rotated.ids, 1)
    outputs = memory.outputs
    outputs._keys._masters = rotated
    record = await outputs.get(ANA, pointer)
    assert record.size_chars == len(LONG)


def key_file(folder, name, *keys):
    """Write a file of master keys, the one in use first."""
    file = folder / name
    file.write_text("".join(keys))
    file.chmod(0o600)
    return file


async def test_a_new_master_key_takes_over_from_the_old_one_which_may_then_go(kept, make_memory, tmp_path):
    users = [kept.user("ana"), kept.user("ben"), kept.user("ana", "globex")]
    pointers = [(await user.store(LONG)).output.pointer for user in users]
    old = (kept.path.parent / "keys" / "master.key").read_text()
    load_master_keys(tmp_path / "new" / "keys", None)
    new = (tmp_path / "new" / "keys" / "master.key").read_text()
    options = {"data_dir": kept.path.parent, "gc_seconds": 1_000}
    if kept.database.dialect.is_server:
        options["database_url"] = kept.database.engine.url.render_as_string(hide_password=False)
    kept.database.write_sync(lambda connection: connection.execute(sa.text("UPDATE master_keys SET create_us = 1")))
    with pytest.raises(StartError, match="MEMORY_MASTER_KEY_FILE"):
        await make_memory(master_key_file=key_file(tmp_path, "too-early", new), **options)
    rotating = await make_memory(master_key_file=key_file(tmp_path, "both", new, old), **options)
    async with asyncio.timeout(30):
        while rotating.count("master_keys") > 1:
            await rotating.user("ana").get(pointers[0])
    for user, pointer in zip(users, pointers, strict=True):
        again = rotating.user(dict(user.metadata)["x-phylactery-subject"], dict(user.metadata)["x-phylactery-tenant"])
        assert await again.read_all(pointer) == LONG
    done = await make_memory(master_key_file=key_file(tmp_path, "new-only", new), **options)
    assert await done.user("ana").read_all(pointers[0]) == LONG
    with pytest.raises(StartError, match="MEMORY_MASTER_KEY_FILE"):
        await make_memory(master_key_file=key_file(tmp_path, "old-only", old), **options)


async def test_a_key_a_replica_wraps_by_a_forgotten_master_key_is_wrapped_again(memory, ana, tmp_path):
    """Its file still has the old key first, when another's has wrapped everything again."""
    await ana.store(LONG)
    store = KeyStore(memory.database)
    old = load_master_keys(memory.path.parent / "keys", None)
    load_master_keys(tmp_path / "keys", None)
    texts = [(folder / "master.key").read_text() for folder in (tmp_path / "keys", memory.path.parent / "keys")]
    rotated = load_master_keys(tmp_path / "elsewhere", key_file(tmp_path, "both", *texts))
    memory.clock.advance(1)
    await store.admit(rotated.active_id, rotated.ids, memory.clock.now_us())
    assert await store.rewrap(rotated.active_id, rotated.rewrap) == 1
    assert memory.count("master_keys") == 1
    ben, key = Principal("ben", "acme", frozenset()), b"k" * 32
    row = UserKey("key_of_ben", old.active_id, old.wrap(ben, "key_of_ben", key), 0)
    await store.add(ben, row, memory.clock.now_us())
    assert await store.rewrap(old.active_id, old.rewrap) == 0, "who is behind wraps nothing back"
    assert await store.rewrap(rotated.active_id, rotated.rewrap) == 1
    kept = await store.get(ben)
    assert (kept.master_id, rotated.unwrap(ben, kept)) == (rotated.active_id, key)


async def test_a_key_nobody_can_open_is_left_as_it_is_and_keeps_its_master_key(memory, ana, tmp_path):
    pointer = (await ana.store(LONG)).output.pointer
    await memory.user("ben").store(LONG)
    store = KeyStore(memory.database)
    old = load_master_keys(memory.path.parent / "keys", None)
    load_master_keys(tmp_path / "keys", None)
    both = key_file(
        tmp_path,
        "both",
        (tmp_path / "keys" / "master.key").read_text(),
        (memory.path.parent / "keys" / "master.key").read_text(),
    )
    rotated = load_master_keys(tmp_path / "elsewhere", both)
    memory.clock.advance(1)
    await store.admit(rotated.active_id, rotated.ids, memory.clock.now_us())
    spoil = sa.text("UPDATE user_keys SET wrapped = :junk WHERE subject = 'ben'")
    memory.database.write_sync(lambda connection: connection.execute(spoil, {"junk": b"x" * 60}))
    assert await store.rewrap(old.active_id, old.rewrap) == 0, "a replica that still uses the old one"
    assert await store.rewrap(rotated.active_id, rotated.rewrap) == 1
    assert await store.rewrap(rotated.active_id, rotated.rewrap) == 0
    assert memory.count("master_keys") == 2
    row = await store.get(ANA)
    assert row.master_id == rotated.active_id
    outputs = memory.outputs
    outputs._keys._masters = rotated
    assert (await outputs.read(ANA, pointer, 0, 0)).text == LONG[:10_000]
