"""Memories under faults: a full disk, concurrent writers, any sequence of writes and forgets."""

from __future__ import annotations

import itertools

import grpc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery.memory.v1 import user_memory_pb2
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.db.database import Database
from phylactery_memory.app import PACKAGE
from phylactery_memory.memories.model import Kind, Layer, Memory, Source, Trust
from phylactery_memory.memories.store import MemoryStore
from phylactery_memory.retrieval.index import POSTING, RECORD, unpack_postings, unpack_records
from phylactery_memory.tables import memory_postings, memory_records, user_memory


def memory_of(text: str, number: int = 0, whose: str = "") -> Memory:
    return Memory(
        memory_id=f"mem_{whose}_{number}",
        text=text,
        layer=Layer.SEMANTIC,
        kind=Kind.FACT,
        source=Source.USER,
        trust=Trust.USER,
        lineage=(),
        importance=0.0,
        thread_id="t",
        sequence=number,
        about="",
        attribute="",
        valid_us=number,
        create_us=0,
        update_us=0,
    )


def index_of(connection, owner_id):
    """Return what the index holds of a user, with documents named by their texts."""
    names = {
        row.number: bytes(row.text).decode()
        for row in connection.execute(user_memory.select().where(user_memory.c.owner_id == owner_id))
    }
    records = unpack_records(
        bytes(row.body)
        for row in connection.execute(memory_records.select().where(memory_records.c.owner_id == owner_id))
    )
    words: dict[str, dict[str, int]] = {}
    for row in connection.execute(memory_postings.select().where(memory_postings.c.owner_id == owner_id)):
        assert len(row.body) > 0
        found = {names[int(n)]: int(c) for n, c in unpack_postings([bytes(row.body)])}
        assert not words.get(row.term, {}).keys() & found.keys()
        words.setdefault(row.term, {}).update(found)
    assert sorted(records["number"].tolist()) == sorted(names)
    return {names[int(n)]: int(length) for n, length in zip(records["number"], records["length"], strict=True)}, words


def index_wanted(texts):
    """Return what the index of just these memories must be."""
    words: dict[str, dict[str, int]] = {}
    lengths = {}
    for text, number in texts.items():
        found = memory_of(text, number).terms()
        lengths[text] = found.length
        for term, count in found.counts.items():
            words.setdefault(term, {})[text] = count
    return lengths, words


RUNS = itertools.count()
TEXT = st.lists(st.sampled_from(["casa", "casas", "perro", "azul", "dog", "running"]), max_size=5).map(" ".join)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "add", "forget", "together"]), st.lists(TEXT, max_size=4)), max_size=12
)


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    opened = Database(f"sqlite:///{tmp_path_factory.mktemp('memories')}/memory.db")
    opened.migrate(PACKAGE)
    yield opened
    opened.close()


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
async def test_any_writing_and_forgetting_leaves_the_index_of_what_is_left(database, monkeypatch, steps):
    """Block of two documents, so that every sequence crosses blocks."""
    from phylactery_memory.memories import index

    monkeypatch.setattr(index, "RECORD_BLOCK", 2)
    monkeypatch.setattr(index, "POSTING_BLOCK", 2)
    store, counter, left = MemoryStore(database), itertools.count(1), {}
    owner = Principal(f"u{next(RUNS)}", "acme", frozenset({Role.CALLER}))

    def add(shelf, texts):
        new = {f"{text} #{number}": number for text in texts for number in [next(counter)]}
        shelf.add([memory_of(text, number, owner.subject) for text, number in new.items()])
        left.update(new)

    for what, texts in steps:
        if what == "forget":
            for text in list(left)[: len(texts)]:
                memory_id = memory_of(text, left.pop(text), owner.subject).memory_id
                await store.write(owner, lambda shelf, memory_id=memory_id: shelf.remove(shelf.get(memory_id)))
        elif texts and what == "together":
            await store.write(owner, lambda shelf, texts=texts: add(shelf, texts))
        else:
            for text in texts:
                await store.write(owner, lambda shelf, text=text: add(shelf, [text]))

    def check(shelf):
        assert shelf.count == len(left)
        assert index_of(shelf.connection, shelf.owner_id) == index_wanted(left)
        shelf.rebuild()
        assert index_of(shelf.connection, shelf.owner_id) == index_wanted(left)

    await store.write(owner, check)


def test_a_record_and_a_posting_are_as_large_as_they_are_stored():
    assert (RECORD.itemsize, POSTING.itemsize) == (51, 6)


async def test_a_full_disk_changes_nothing_and_passes(memory, refused):
    user = memory.user()

    async def write(text):
        request = user_memory_pb2.WriteMemoryRequest(text=text, source=1, keep=True)
        return await user.memory.WriteMemory(request, metadata=user.metadata)

    await write("el perro azul")

    make_room = memory.fill_disk()
    long = " ".join(f"palabra{number}" for number in range(800))
    refusal = await refused(write(long))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")
    assert memory.count("user_memory") == 1
    make_room()
    assert (await write(long)).created
    found = await user.memory.SearchMemories(
        user_memory_pb2.SearchMemoriesRequest(query="palabra799"), metadata=user.metadata
    )
    assert [match.memory.text for match in found.matches] == [long]
