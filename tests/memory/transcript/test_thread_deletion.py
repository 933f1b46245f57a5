"""Thread deletion removes its messages and outputs, once, and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import grpc
import pytest
from phylactery.memory.v1 import memory_pb2

SECRET = "el perro se llama Xolotl"


def say(message_id: str, content: str = SECRET) -> memory_pb2.Message:
    return memory_pb2.Message(message_id=message_id, role=memory_pb2.ROLE_USER, content=content)


async def test_a_deleted_thread_takes_its_messages_and_outputs_along_and_nothing_else(kept, refused):
    ana, ben, other = kept.user("ana"), kept.user("ben"), kept.user("ana", "globex")
    for user in (ana, ben, other):
        await user.append("t1", say("m1"), say("m2"))
        await user.append("t2", say("m1"))
    gone = (await ana.store("x" * 50_000, tool_call_id="c1")).output.pointer
    stays = (await ana.store("x" * 50_000, tool_call_id="c2", thread_id="t2")).output.pointer
    bens = (await ben.store("x" * 50_000, tool_call_id="c1")).output.pointer
    deleted = await ana.delete_thread("t1")
    assert (deleted.messages, deleted.outputs) == (2, 1)
    assert not (await ana.list("t1")).messages
    assert (await refused(ana.get(gone))).reason == "OUTPUT_NOT_FOUND"
    assert len((await ana.list("t2")).messages) == 1
    assert (await ana.get(stays)).size_chars == 50_000
    assert len((await ben.list("t1")).messages) == len((await other.list("t1")).messages) == 2
    assert (await ben.get(bens)).size_chars == 50_000


async def test_the_same_request_again_deletes_nothing_that_was_said_since(kept):
    ana = kept.user()
    await ana.append("t1", say("m1"))
    first = await ana.delete_thread("t1", "request-1")
    assert (await ana.append("t1", say("m1"))).last_sequence == 1
    assert await ana.delete_thread("t1", "request-1") == first
    assert len((await ana.list("t1")).messages) == 1
    assert (await kept.user("ben").delete_thread("t1", "request-1")).messages == 0
    assert (await ana.delete_thread("t1", "request-2")).messages == 1


async def test_a_request_that_named_another_thread_before_is_refused_and_deletes_nothing(kept, refused):
    ana = kept.user()
    await ana.append("t1", say("m1"))
    await ana.append("t2", say("m1"))
    await ana.delete_thread("t1", "request-1")
    refusal = await refused(ana.delete_thread("t2", "request-1"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_CONFLICT")
    assert refusal.metadata == {"request_id": "request-1"}
    assert len((await ana.list("t2")).messages) == 1
    assert (await kept.user("ben").delete_thread("t2", "request-1")).messages == 0


async def test_a_deletion_that_was_kept_before_threads_were_told_apart_is_answered_as_it_was(memory, ana):
    await ana.append("t1", say("m1"))
    first = await ana.delete_thread("t1", "request-1")
    with contextlib.closing(sqlite3.connect(memory.path)) as database, database:
        database.execute("UPDATE thread_deletions SET thread_hash = ''")
    assert await ana.delete_thread("t1", "request-1") == first


async def test_what_is_kept_of_a_deletion_does_not_name_the_thread(memory, ana):
    await ana.append("a-thread-of-its-own", say("m1"))
    await ana.delete_thread("a-thread-of-its-own")
    assert b"a-thread-of-its-own" not in stored(memory)


async def test_a_thread_nobody_wrote_to_is_deleted_without_a_word_and_somebody_elses_is_untouched(kept):
    ana, ben = kept.user("ana"), kept.user("ben")
    await ben.append("theirs", say("m1"))
    assert (await ana.delete_thread("theirs")).messages == 0
    assert (await ana.delete_thread("never", "request-2")).messages == 0
    assert len((await ben.list("theirs")).messages) == 1


async def test_eight_at_once_delete_once(kept):
    ana = kept.user()
    await ana.append("t1", say("m1"), say("m2"))
    answers = await asyncio.gather(*(ana.delete_thread("t1") for _ in range(8)))
    assert {(answer.messages, answer.outputs) for answer in answers} == {(2, 0)}


async def test_a_thread_that_is_written_while_it_is_deleted_stays_whole(kept):
    """Whatever comes first, the sequences of what is there afterwards have no gap."""
    ana = kept.user()
    await ana.append("t1", say("m0"))
    writes = [ana.append("t1", say(f"m{number}")) for number in range(1, 20)]
    await asyncio.gather(*writes[:10], ana.delete_thread("t1"), *writes[10:])
    left = [message.sequence for message in (await ana.list("t1")).messages]
    assert left == list(range(len(left), 0, -1))


async def test_no_word_of_it_is_in_the_file_or_its_log_afterwards(memory, ana):
    await ana.append("t1", say("m1"))
    assert SECRET.encode() in stored(memory)
    await ana.delete_thread("t1")
    assert SECRET.encode() not in stored(memory)


def stored(memory) -> bytes:
    return b"".join(path.read_bytes() for path in memory.path.parent.glob("memory.db*"))


@pytest.mark.slow
async def test_a_text_in_the_bucket_goes_with_its_thread(in_bucket, store):
    ana = in_bucket.user()
    await ana.store("x" * 50_000)
    assert store.names()
    before = len(store.names())
    assert (await ana.delete_thread("t1")).outputs == 1
    assert len(store.names()) == before - 1


@pytest.mark.parametrize(
    ("thread_id", "request_id", "field"), [("", "request-1", "thread_id"), ("t1", "r", "request_id")]
)
async def test_a_request_without_its_names_is_refused(ana, refused, thread_id, request_id, field):
    refusal = await refused(ana.delete_thread(thread_id, request_id))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
