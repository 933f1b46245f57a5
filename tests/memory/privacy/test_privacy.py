"""Erasure and export: no trace in any file, no return from a backup, and no other user's data."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
import sqlite3
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from google.protobuf.json_format import MessageToDict
from grpc import aio
from phylactery.memory.v1 import memory_pb2, privacy_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import Unavailable
from phylactery_memory.privacy.store import PrivacyStore, users_tables
from phylactery_memory.tables import metadata
from structlog.testing import capture_logs

from tests.support.databases.erasures import erasure_of, files_with
from tests.support.processes.forks import Forked
from tests.support.servers.postgres import brief_database

Code = grpc.StatusCode
MARK = "zarzuela"
"""A word nobody else says, in everything that is kept about ana."""
LONG = f"{MARK} línea larga 🜛\r\n" * 1_500


GREYS = tuple(f"Gris{first}{second}" for first in "aeiou" for second in "lmnrst")


async def fill(user, times=3, mark=MARK):
    """Keep something in every layer and return the output's pointer."""
    for number in range(times):
        origin = await user.say(f"m{number}", f"Me llamo {mark.title()} {GREYS[number]}", thread=f"{mark}-{number}")
        await user.write(f"Me llamo {mark.title()} {GREYS[number]}", lineage=[origin])
        await user.write(f"Mi {mark}{number} vive en {mark}landia", keep=True)
        await user.set(favorite__thing=f"{mark.title()} {GREYS[number]}", lineage=[origin])
    return (await user.store(LONG.replace(MARK, mark), thread_id=f"{mark}-0")).output.pointer


async def test_everything_of_a_user_goes_and_everything_of_others_stays(kept, refused):
    ana, others = kept.user("ana", "acme"), [kept.user("ben", "acme"), kept.user("ana", "other")]
    pointer = await fill(ana)
    kept_of_others = [await fill(other, mark="organillo") for other in others]
    before = [await other.export() for other in others]
    erasure = await ana.erase()
    counts = MessageToDict(erasure.counts, preserving_proto_field_name=True)
    assert int(counts.pop("postings")) > 10
    assert counts == {
        "threads": "3", "messages": "3", "memories": "6", "profile_fields": "6", "outputs": "1", "keys": "1",
    }  # fmt: skip
    assert [record["type"] for record in await ana.export()] == ["header", "end"]
    assert (await refused(ana.read(pointer))).code is Code.NOT_FOUND
    for other, was, theirs in zip(others, before, kept_of_others, strict=True):
        assert (await other.export())[1:] == was[1:]
        assert (await other.read_all(theirs)).startswith("organillo")


async def test_the_receipt_proves_itself_and_names_nobody(kept):
    ana = kept.user("ana-maria", "acme")
    await fill(ana, 1)
    erasure = await ana.erase()
    assert erasure.receipt_hash == "sha256:" + hashlib.sha256(erasure.receipt.encode()).hexdigest()
    told = f"{erasure.salt}\0acme\0ana-maria".encode()
    assert erasure.subject_hash == "sha256:" + hashlib.sha256(told).hexdigest()
    receipt = json.loads(erasure.receipt)
    assert receipt["erasure_id"] == erasure.erasure_id
    assert receipt["counts"]["messages"] == erasure.counts.messages == 1
    assert "ana-maria" not in erasure.receipt
    assert await ana.erasure(erasure.erasure_id) == erasure


async def test_the_same_request_is_the_same_erasure_and_what_comes_later_is_kept(kept):
    ana = kept.user()
    await fill(ana, 1)
    first = await ana.erase()
    await ana.say("m9", "hola otra vez")
    assert await ana.erase() == first
    assert len((await ana.list("t1")).messages) == 1
    other = await ana.erase("erase-me-2")
    assert (other.counts.messages, other.counts.memories) == (1, 0)
    at_once = await asyncio.gather(*(ana.erase("erase-me-3") for _ in range(5)))
    assert len({erasure.erasure_id for erasure in at_once}) == 1


async def test_only_the_user_or_an_operator_of_the_tenant_erases_and_sees_it(memory, refused):
    ana, ben, twin = memory.user("ana", "local"), memory.user("ben", "local"), memory.user("ana", "other")
    operator = memory.user()
    operator.metadata = ()  # in mode none: 'local' of 'local', with every role
    await fill(ana, 1)
    refusal = await refused(ben.erase(subject="ana"))
    assert (refusal.code, refusal.metadata) == (Code.PERMISSION_DENIED, {"role": "operator"})
    assert (await twin.erase()).counts == privacy_pb2.ErasureCounts()
    erasure = await operator.erase(subject="ana")
    assert (erasure.requested_by_operator, erasure.counts.messages) == (True, 1)
    assert await operator.erasure(erasure.erasure_id) == await ana.erasure(erasure.erasure_id) == erasure
    for stranger in (ben, twin):
        refusal = await refused(stranger.erasure(erasure.erasure_id))
        assert (refusal.code, refusal.reason) == (Code.NOT_FOUND, "ERASURE_NOT_FOUND")


async def test_after_an_erasure_no_file_holds_a_word_of_it(memory):
    """Rows of two users share pages, were rewritten, moved and grew over many pages: nothing is left of one of them."""
    ana, ben = memory.user("ana-zarzuela", "acme"), memory.user("ben", "acme")
    for round_ in range(12):
        for user, mark in ((ana, MARK), (ben, "organillo")):
            words = [f"{mark}{round_ * 20 + number} canta " * 30 for number in range(20)]
            await user.append("t1", *(
                memory_pb2.Message(message_id=f"{mark}{round_}-{n}", role="ROLE_USER", content=text)
                for n, text in enumerate(words)
            ))  # fmt: skip
            await user.write(words[0], keep=True)
    await fill(ana, 8)
    await fill(ben, 8, "organillo")
    folder = memory.path.parent
    assert "memory.db-wal" in files_with(folder, MARK)
    await ana.erase()
    assert files_with(folder, MARK) == []
    assert files_with(folder, "organillo")
    assert (await ben.export())[-1]["records"]["message"] == 12 * 20 + 8


def test_every_table_is_a_users_or_hangs_below_one_or_names_nobody():
    """Whoever adds a table decides here what an erasure does with it."""
    own = {table.name for table in users_tables()}
    below: set[str] = set()
    for table in metadata.sorted_tables:  # what is referred to comes first
        above = {key.column.table.name for key in table.foreign_keys if key.ondelete == "CASCADE"}
        if above & (own | below):
            below.add(table.name)
    of_nobody = {"erasures", "master_keys", "object_stores", "output_objects"}  # an erasure dooms the last one's rows
    assert metadata.tables.keys() - own - below == of_nobody


async def test_an_export_holds_everything_in_typed_lines(kept):
    ana = kept.user()
    pointer = await fill(ana, 2)
    records = await ana.export()
    assert records[0] == {"type": "header", "tenant": "acme", "subject": "ana", "time": records[0]["time"]}
    by_type = {kind: [r for r in records if r["type"] == kind] for kind in {r["type"] for r in records}}
    assert {message["content"] for message in by_type["message"]} == {
        f"Me llamo {MARK.title()} {one}" for one in GREYS[:2]
    }
    assert {message["thread_id"] for message in by_type["message"]} == {f"{MARK}-0", f"{MARK}-1"}
    assert len(by_type["memory"]) == 4
    assert all(record["text"] and record["etag"] for record in by_type["memory"])
    assert sum("invalid_at" in record for record in by_type["profile_field"]) == 2
    (output,) = by_type["output"]
    assert (output["pointer"], output["size_chars"]) == (pointer, str(len(LONG)))
    assert "".join(record["text"] for record in by_type["output_text"]) == LONG
    counts = {kind: len(found) for kind, found in by_type.items() if kind not in ("header", "end")}
    assert records[-1] == {"type": "end", "records": counts}


async def test_an_export_pages_through_more_than_it_fetches_at_once(memory, ana):
    for start in range(0, 700, 100):
        await ana.append("t1", *(
            memory_pb2.Message(message_id=f"m{n}", role="ROLE_USER", content=f"turno {n}")
            for n in range(start, start + 100)
        ))  # fmt: skip
    records = await ana.export()
    assert {record["content"] for record in records[1:-1]} == {f"turno {n}" for n in range(700)}
    assert records[-1]["records"] == {"message": 700}


async def test_reading_and_writing_while_a_user_is_erased_is_safe(kept):
    """Whoever reads sees all or nothing of a thread; whoever writes is refused or kept; nothing is torn."""
    ana = kept.user()
    await fill(ana, 2)
    await ana.append("t1", *(
        memory_pb2.Message(message_id=f"m{n}", role="ROLE_USER", content="hola") for n in range(40)
    ))  # fmt: skip
    sizes: list[int] = []

    async def read():
        for _ in range(12):
            context = await ana.context(query=MARK)
            sizes.append(len(context.messages))
            await ana.export()

    async def write(name):
        for number in range(8):
            await ana.write(f"La {name} número {number}", keep=True)

    await asyncio.gather(read(), write("guitarra"), ana.erase(), write("flauta"), ana.erase("erase-me-2"))
    assert set(sizes) <= {0, 40}
    last = await ana.erase("erase-me-3")
    assert last.counts.threads == 0
    assert [record["type"] for record in await ana.export()] == ["header", "end"]


async def test_a_full_disk_under_the_log_erases_nothing_and_passes(memory, ana, refused, monkeypatch):
    await fill(ana, 1)
    real, left = os.write, [30]

    def write(descriptor, data):
        if not data.startswith(b"{") and left[0] == 30:
            return real(descriptor, data)
        taken = data[: left[0]]
        if not taken:
            raise OSError(28, "No space left on device")
        left[0] -= len(taken)
        return real(descriptor, taken)

    log = memory.path.parent / "erasures.jsonl"
    before = log.read_bytes()
    monkeypatch.setattr("phylactery_chassis.erasure.log.os.write", write)
    refusal = await refused(ana.erase())
    assert (refusal.code, refusal.reason) == (Code.RESOURCE_EXHAUSTED, "STORE_FULL")
    monkeypatch.undo()
    assert log.read_bytes() == before
    assert len(await ana.export()) > 5
    assert (await ana.erase()).counts.memories == 2


@pytest.mark.slow
async def test_a_reader_of_old_pages_makes_the_answer_wait_for_it(memory, ana, refused, monkeypatch):
    await fill(ana, 1)
    reader = sqlite3.connect(memory.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages_v2").fetchone()
    refusal = await refused(ana.erase())
    assert refusal.reason == "STORE_UNAVAILABLE"
    reader.execute("COMMIT")
    reader.close()
    erasure = await ana.erase()
    assert erasure.counts.memories == 2
    assert files_with(memory.path.parent, MARK) == []


@pytest.mark.slow
async def test_a_start_serves_though_a_reader_keeps_removed_words_in_the_files(make_memory):
    first = await make_memory()
    await fill(first.user("ana", "acme"), 1)
    await first.channel.close()
    await first.server.stop()
    reader = sqlite3.connect(first.path, isolation_level=None)
    reader.execute("PRAGMA user_version = 7")  # as a process leaves it that was killed after it removed something
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM messages_v2").fetchone()
    with capture_logs() as logs:
        again = await make_memory(data_dir=first.path.parent)
    assert [entry["reason"] for entry in logs if "still be in the files" in entry["event"]] == ["STORE_UNAVAILABLE"]
    reader.execute("COMMIT")
    reader.close()
    assert (await again.user("ana", "acme").erase()).counts.memories == 2
    assert files_with(first.path.parent, MARK) == []


class Process:
    """A real memory process over a folder, which may die at a crash point."""

    def __init__(self, folder: Path, point: str = "none") -> None:
        self.ready = folder / "ready.json"
        self.ready.unlink(missing_ok=True)
        environment = {
            **os.environ, "MEMORY_PORT": "0", "MEMORY_DATA_DIR": str(folder),
            "MEMORY_READY_FILE": str(self.ready), "MEMORY_LOG_LEVEL": "ERROR",
            "CRASH_SERVICE": "memory", "CRASH_AT": point,
        }  # fmt: skip
        self.child = Forked("tests.support.processes.crashing", environment=environment)

    async def port(self) -> int:
        while not self.ready.exists():
            assert self.child.poll() is None
            await asyncio.sleep(0.05)
        return int(json.loads(self.ready.read_text())["port"])

    def end(self) -> None:
        self.child.send_signal(signal.SIGTERM)
        assert self.child.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("point", ["memory.erase.logged", "memory.erase.removed"])
async def test_a_process_killed_in_the_middle_of_an_erasure_finishes_it_at_the_next_start(tmp_path, user_of, point):
    server = Process(tmp_path, point)
    async with aio.insecure_channel(f"127.0.0.1:{await server.port()}", [("grpc.enable_retries", 0)]) as channel:
        user = user_of(channel)
        await fill(user, 2)
        with pytest.raises(aio.AioRpcError) as caught:
            await user.erase()
        assert caught.value.code() is Code.UNAVAILABLE
    assert server.child.wait(60) == -signal.SIGKILL
    assert files_with(tmp_path, MARK)
    server = Process(tmp_path)
    async with aio.insecure_channel(f"127.0.0.1:{await server.port()}") as channel:
        assert files_with(tmp_path, MARK) == []
        user = user_of(channel)
        erasure = await user.erase()
        assert (erasure.counts.memories, erasure.replayed) == (4, point == "memory.erase.logged")
        assert [record["type"] for record in await user.export()] == ["header", "end"]
    server.end()


async def test_a_restored_backup_is_erased_again_and_the_living_are_kept(make_memory, tmp_path):
    first = await make_memory()
    ana, ben = first.user("ana", "acme"), first.user("ben", "acme")
    await fill(ana, 2)
    await fill(ben, 2, "organillo")
    with sqlite3.connect(first.path) as source, sqlite3.connect(tmp_path / "backup.db") as target:
        source.backup(target)
    erasure = await ana.erase()
    await ana.say("m1", "he vuelto", thread="t9")
    await first.channel.close()
    await first.server.stop()
    assert files_with(first.path.parent, MARK) == []

    again = await make_memory(data_dir=first.path.parent)
    assert len((await again.user("ana", "acme").list("t9")).messages) == 1  # a start alone takes nothing that is new
    await again.channel.close()
    await again.server.stop()

    for leftover in first.path.parent.glob("memory.db*"):
        leftover.unlink()
    shutil.copyfile(tmp_path / "backup.db", first.path)
    assert files_with(first.path.parent, MARK) == ["memory.db"]
    restored = await make_memory(data_dir=first.path.parent)
    ana, ben = restored.user("ana", "acme"), restored.user("ben", "acme")
    assert [record["type"] for record in await ana.export()] == ["header", "end"]
    assert files_with(first.path.parent, MARK) == []
    assert len(await ben.export()) > 5
    replayed = await ana.erasure(erasure.erasure_id)
    assert (replayed.replayed, replayed.counts) == (True, erasure.counts)


async def test_an_erasure_that_failed_takes_nothing_that_came_after_the_one_that_did_not(
    make_memory, refused, monkeypatch
):
    first = await make_memory()
    ana = first.user()
    await fill(ana, 1)
    with monkeypatch.context() as failing:
        failing.setattr(PrivacyStore, "erase", unavailable)
        assert (await refused(ana.erase())).reason == "STORE_UNAVAILABLE"
    assert (await ana.erase()).counts.memories == 2
    await ana.say("m1", "he vuelto", thread="t9")
    await first.channel.close()
    await first.server.stop()
    again = await make_memory(data_dir=first.path.parent)
    assert len((await again.user().list("t9")).messages) == 1


async def unavailable(*_arguments):
    raise Unavailable("STORE_UNAVAILABLE", "the disk does not answer")


async def test_what_another_replica_is_writing_is_waited_for_removed_and_counted(make_memory, postgres_url):
    memory = await make_memory(database_url=brief_database(postgres_url, "phylactery_memory"))
    await memory.user().say("m1", "hola")
    waiting = sa.text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    engine = memory.database.engine
    with engine.connect() as replica:
        replica.execute(sa.text("SELECT last_sequence FROM threads FOR UPDATE"))
        replica.execute(sa.text(
            "INSERT INTO messages_v2 SELECT tenant, subject, thread_id, 2, 'm2', role, run_id, create_us, chars, "
            "content FROM messages_v2"
        ))  # fmt: skip
        erasing = asyncio.create_task(memory.user().erase())
        async with asyncio.timeout(20):
            while not await memory.database.read(lambda connection: connection.execute(waiting).scalar_one()):  # noqa: ASYNC110 - it wakes nobody
                await asyncio.sleep(0.02)
        replica.commit()
    assert (await erasing).counts.messages == 2
    assert memory.count("messages_v2") == 0


async def test_two_replicas_that_carry_out_one_erasure_both_answer_it(kept):
    await fill(kept.user(), 1)
    store, ana = PrivacyStore(kept.database), Principal("ana", "acme", frozenset())

    def done(counts):
        return replace(erasure_of(1), counts=counts)

    both = await asyncio.gather(*(store.erase(ana, "era_1", done) for _ in range(4)))
    assert [erasure.counts.memories for erasure in both] == [2, 2, 2, 2]
    assert kept.count("erasures") == 1


async def test_the_hash_of_the_receipt_stands_in_the_log_of_the_service(memory, ana):
    with capture_logs() as lines:
        erasure = await ana.erase()
    assert erasure.receipt_hash in [line.get("receipt_hash") for line in lines]
