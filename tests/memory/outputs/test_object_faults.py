"""An object store that is unavailable, refuses, or is the wrong one; and kills between an object and its row."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Self

import grpc
import pytest
from grpc import aio
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_memory.outputs.bucket import Bucket

from tests.support.processes.forks import Forked
from tests.support.servers import s3

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


def impatient(store, tmp_path, **changes):
    """The settings of a service that waits two seconds for the store."""
    return store.settings(tmp_path, object_store_timeout_seconds=2, **changes)


async def once_it_is_back(call):
    """Return what a call does once the store answers again, which may take a busy machine longer than two seconds."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await call()
            except aio.AioRpcError as error:
                if error.code() is not Code.UNAVAILABLE:
                    raise
            except Unavailable:
                pass


@pytest.mark.slow
@pytest.mark.parametrize("over", [False, True], ids=["the sweep is at it", "the sweep is over"])
async def test_an_output_given_up_for_lost_is_not_made_after_all(kept, store, refused, monkeypatch, over):
    """A replica sweeps an object, long on its way, between its put and its row."""
    real = type(kept.objects).put

    async def slow(self, pointer, chunks):
        placed = await real(self, pointer, chunks)
        await kept.objects.doom_orphans(-LATER * 1_000_000)
        if over:
            await kept.objects.remove_doomed()
            kept.clock.advance(LATER)
        return placed

    monkeypatch.setattr(type(kept.objects), "put", slow)
    refusal = await refused(kept.user().store(LONG))
    assert (refusal.code, refusal.reason) == (Code.UNAVAILABLE, "STORE_UNAVAILABLE")
    monkeypatch.undo()
    assert kept.count("outputs") == 0
    await kept.tidy()
    assert store.names() == []
    assert await kept.user().read_all((await kept.user().store(LONG)).output.pointer) == LONG


@pytest.mark.slow
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


@pytest.mark.slow
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
        memory.clock.advance(LATER)  # what came late to the store, as a second try did, is an orphan
        await once_it_is_back(memory.tidy)
        assert [name.rpartition("/")[2] for name in store.names()] == [theirs]


@pytest.mark.slow
async def test_an_erasure_and_a_removal_leave_what_others_removed_to_the_housekeeping(kept, store, monkeypatch):
    """What was removed while the store was away piles up: nobody waits for another user's pile."""

    async def away(_self, _names):
        raise Unavailable("STORE_UNAVAILABLE", "the object store is unavailable")

    def left():
        return {name.rpartition("/")[2] for name in store.names()}

    ana, ben = kept.user("ana"), kept.user("ben")
    hers = [(await ana.store(LONG, tool_call_id=f"c{number}")).output.pointer for number in range(4)]
    his = [(await ben.store(LONG, tool_call_id=f"c{number}")).output.pointer for number in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(Bucket, "delete", away)
        for pointer in hers[:3]:
            assert await ana.delete(pointer)
        assert await ben.delete(his[0])
    assert left() == {*hers, *his}
    assert (await ben.erase()).counts.outputs == 1
    assert left() == set(hers), "what he removed before is his, too"
    assert await ana.delete(hers[3])
    assert left() == set(hers[:3])
    await kept.tidy()
    assert left() == set()
    assert kept.count("output_objects") == 0


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        self.child = Forked("tests.support.processes.crashing", environment=environment)

    async def port(self) -> int:
        async with asyncio.timeout(60):
            while not self.ready.exists():
                assert self.child.poll() is None
                await asyncio.sleep(0.05)
        return int(json.loads(self.ready.read_text())["port"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.child.kill()  # where an assertion failed; of one that ended it is nothing
        self.child.wait()

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(30) == 0


@pytest.mark.slow
async def test_a_process_killed_between_object_and_row_leaves_an_orphan_and_no_output(
    tmp_path, store, user_of, make_memory
):
    folder = tmp_path / "killed"
    folder.mkdir()
    with Process(folder, store, "memory.output.object#2") as server:
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


@pytest.mark.slow
async def test_a_process_killed_between_an_erasure_and_its_objects_removes_them_at_the_next_start(
    tmp_path, store, user_of
):
    with Process(tmp_path, store, "memory.erase.removed") as server:
        async with aio.insecure_channel(f"127.0.0.1:{await server.port()}", [("grpc.enable_retries", 0)]) as channel:
            await user_of(channel).store(LARGE)
            with pytest.raises(aio.AioRpcError):
                await user_of(channel).erase()
        assert server.child.wait(30) == -signal.SIGKILL
    assert len(store.names()) == 1
    with Process(tmp_path, store) as server:
        await server.port()
        async with asyncio.timeout(30):
            while store.names():
                await asyncio.to_thread(server.child.poll)
        server.end()
