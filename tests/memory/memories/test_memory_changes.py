"""Memories updated, retired, forgotten and listed, and their limits, on both databases."""

from __future__ import annotations

import asyncio
import random
import sqlite3

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery_memory.memories import store as memories_store
from phylactery_memory.retrieval import words as words_module

from tests.support.memory_keeper import (
    BY_ASSISTANT,
    EPISODE,
    INDEX_TABLES,
    PREFERENCE,
    Code,
    Keeper,
    at,
    index_of,
    text_of,
)
from tests.support.servers.postgres import brief_database


async def test_an_update_needs_the_etag_it_last_saw(kept, keeper, refused):
    memory = await keeper.keep("Tengo dos perros")
    changed = await keeper.update(memory, "importance", "kind", importance=0.9, kind=PREFERENCE)
    assert (changed.importance, changed.kind, changed.text) == (0.9, PREFERENCE, "Tengo dos perros")
    refusal = await refused(keeper.update(memory, "importance", importance=0.1))
    assert (refusal.code, refusal.reason, refusal.metadata) == (Code.ABORTED, "MEMORY_CHANGED", {"etag": changed.etag})
    assert (await refused(keeper.forget(memory.memory_id, memory.etag))).reason == "MEMORY_CHANGED"
    assert await keeper.find("perros", kind=PREFERENCE) == ["Tengo dos perros"]
    assert await keeper.find("perros", kind=EPISODE) == []


async def test_a_changed_text_is_a_new_memory_and_the_old_one_is_history(kept, keeper, refused):
    memory = (await keeper.tell("Vivo en Lima", "m1")).memory
    kept.clock.advance(10)
    new = await keeper.update(memory, "text", text="Vivo en Cusco")
    assert (new.text, list(new.supersedes), new.trust) == ("Vivo en Cusco", [memory.memory_id], BY_ASSISTANT)
    assert await keeper.find("vivo") == ["Vivo en Cusco"]
    assert sorted(await keeper.find("vivo", include_invalid=True)) == ["Vivo en Cusco", "Vivo en Lima"]
    old = next(m for m in (await keeper.list(include_invalid=True)).memories if m.memory_id == memory.memory_id)
    assert old.superseded_by == new.memory_id
    assert (await refused(keeper.update(old, "text", text="Vivo en Puno"))).reason == "MEMORY_SUPERSEDED"
    assert (await refused(keeper.update(old, "invalid_at"))).reason == "MEMORY_SUPERSEDED"
    refusal = await refused(keeper.update(new, "text", text="mi clave es 4821"))
    assert (refusal.code, refusal.reason, refusal.metadata) == (
        Code.INVALID_ARGUMENT,
        "MEMORY_SECRET",
        {"secret": "SECRET_PASSWORD"},
    )


async def test_a_memory_is_retired_and_holds_again(kept, keeper, refused):
    memory = await keeper.keep("El taller abre los lunes")
    kept.clock.advance(100)
    now = Timestamp()
    now.FromMicroseconds(kept.clock.now_us())
    ended = await keeper.update(memory, "invalid_at", invalid_at=now)
    assert await keeper.find("taller") == []
    again = await keeper.update(ended, "invalid_at")
    assert not again.HasField("invalid_at")
    assert await keeper.find("taller") == ["El taller abre los lunes"]
    refusal = await refused(keeper.update(again, "invalid_at", invalid_at=memory.valid_at))
    assert (refusal.code, refusal.fields) == (Code.INVALID_ARGUMENT, ["invalid_at"])


async def test_forgetting_leaves_the_index_as_if_it_had_never_been(kept, keeper, refused):
    for text in ("el perro azul come pan", "el gato rojo duerme", "perro y gato"):
        await keeper.keep(text, thread_id="t1", sequence=len(text))
    before = index_of(kept)
    scores = [(match.memory.text, match.score) for match in await keeper.search("perro rojo")]
    memory = await keeper.keep("el perro verde come una manzana única", thread_id="t1", sequence=3)
    assert index_of(kept) != before
    await keeper.forget(memory.memory_id, memory.etag)
    assert index_of(kept) == before
    assert [(match.memory.text, match.score) for match in await keeper.search("perro rojo")] == scores
    assert (await refused(keeper.forget(memory.memory_id))).reason == "MEMORY_NOT_FOUND"
    for standing in (await keeper.list()).memories:
        await keeper.forget(standing.memory_id)
    assert index_of(kept) == {table: [] for table in INDEX_TABLES}


async def test_a_memory_taken_back_leaves_what_it_had_superseded_as_it_was(kept, keeper, refused):
    old = (await keeper.tell("vivo en Lima", "m1")).memory
    kept.clock.advance(1)
    new = (await keeper.tell("vivo en Cusco", "m2")).memory
    assert list(new.supersedes) == [old.memory_id]
    profile = [one.text_value for one in (await keeper.user.profile()).fields]
    answer = await keeper.forget(new.memory_id, restore_superseded=True)
    assert list(answer.restored) == [old.memory_id]
    (again,) = (await keeper.list()).memories
    assert (again.text, again.superseded_by, again.HasField("invalid_at")) == ("vivo en Lima", "", False)
    assert await keeper.find("vivo") == ["vivo en Lima"]
    assert [one.text_value for one in (await keeper.user.profile()).fields] == ["Lima"] * len(profile)
    assert (await refused(keeper.forget(new.memory_id, restore_superseded=True))).reason == "MEMORY_NOT_FOUND"


async def test_what_was_said_or_removed_since_is_not_restored(kept, keeper, refused):
    texts = ["vivo en Lima", "vivo en Cusco", "vivo en Puno"]
    first, second, third = [(await keeper.tell(text, f"m{n}")).memory for n, text in enumerate(texts)]
    refusal = await refused(keeper.forget(second.memory_id, restore_superseded=True))
    assert (refusal.reason, refusal.metadata["superseded_by"]) == ("MEMORY_SUPERSEDED", third.memory_id)
    assert await keeper.find("vivo") == ["vivo en Puno"]
    await keeper.forget(second.memory_id)  # by the person's own hand, in between
    answer = await keeper.forget(third.memory_id, restore_superseded=True)
    assert list(answer.restored) == []
    assert await keeper.find("vivo") == []
    assert [one.memory_id for one in (await keeper.list(include_invalid=True)).memories] == [first.memory_id]


async def test_words_of_an_older_index_are_forgotten_too(kept, keeper, monkeypatch):
    await keeper.keep("el perro azul")
    monkeypatch.setattr(words_module, "stems", lambda word: ("e" + word[:3], "s" + word[:3]))
    monkeypatch.setattr(memories_store, "INDEX_VERSION", "other")
    (memory,) = (await keeper.list()).memories
    cat = await keeper.keep("el gato azul")
    assert set(await keeper.find("azulejos")) == {"el gato azul", "el perro azul"}
    await keeper.forget(memory.memory_id)
    await keeper.forget(cat.memory_id)
    assert index_of(kept) == {table: [] for table in INDEX_TABLES}


async def test_pages_hold_every_memory_once(keeper):
    for number in range(7):
        await keeper.keep(f"memoria número {number}")
    seen, token = [], ""
    while True:
        page = await keeper.list(page_size=3, page_token=token)
        seen += [memory.text for memory in page.memories]
        token = page.next_page_token
        if not token:
            break
    assert seen == [f"memoria número {number}" for number in range(6, -1, -1)]


async def test_hostile_text_is_kept_exactly_or_refused(keeper, refused):
    for text in (
        "a\0b\r\n\x1b[31m",
        "e" + "\u0301" * 9_999,
        "🜛" * 10_000,
        "\u202eabc\u2066",
        "' OR 1=1; --",
        "x" * 10_000,
    ):
        memory = await keeper.keep(text)
        assert memory.text == text
        await keeper.find(text[:2_000])
        await keeper.forget(memory.memory_id)
    refusal = await refused(keeper.keep("x" * 1_048_576))
    assert (refusal.code, refusal.fields) == (Code.INVALID_ARGUMENT, ["text"])
    assert (await refused(keeper.find("x" * 2_001))).fields == ["query"]
    assert (await refused(keeper.find(""))).fields == ["query"]


async def test_a_user_has_no_more_memories_than_allowed(make_memory, refused):
    keeper = Keeper((await make_memory(max_memories=2)).user())
    first = await keeper.keep("memoria uno")
    await keeper.keep("memoria dos")
    refusal = await refused(keeper.keep("memoria tres"))
    assert (refusal.code, refusal.reason, refusal.metadata) == (Code.RESOURCE_EXHAUSTED, "MEMORY_LIMIT", {"limit": "2"})
    assert await keeper.keep("memoria uno") == first
    await keeper.forget(first.memory_id)
    await keeper.keep("memoria tres")


async def test_a_forgotten_text_is_in_no_file_once_the_log_is_truncated(make_memory):
    memory = await make_memory()
    keeper = Keeper(memory.user())
    await keeper.keep("nada especial")
    secret = await keeper.keep("zanahorias moradas extraordinarias")
    await keeper.forget(secret.memory_id)
    with sqlite3.connect(memory.path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    for path in memory.path.parent.glob("memory.db*"):
        data = path.read_bytes()
        for trace in (b"zanahorias", b"ezanahoria", b"morada", b"extraordinari", secret.memory_id.encode()):
            assert trace not in data, (path, trace)
    assert await keeper.find("nada especial") == ["nada especial"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
async def test_both_databases_rank_the_same_memories_the_same(make_memory, postgres_url, seed):
    dice = random.Random(seed)
    vocabulary = [
        "casa",
        "perro",
        "gato",
        "azul",
        "rojo",
        "río",
        "canción",
        "comer",
        "comida",
        "house",
        "dogs",
        "cats",
        "running",
        "blue",
        "May",
        "2023",
    ]
    texts = [" ".join(dice.choices(vocabulary, k=dice.randint(1, 9))) + f" n{number}" for number in range(120)]
    places = [(dice.choice(["", "t", "u"]), dice.randint(0, 60), at(dice.randint(0, 5) * 86_400)) for _ in texts]
    url = brief_database(postgres_url, "phylactery_memory")
    rankings = []
    for options in ({}, {"database_url": url}):
        service = await make_memory(**options)
        keeper = Keeper(service.user())
        order = list(range(len(texts)))
        random.Random(seed if options else -seed - 1).shuffle(order)
        for part in (order[at_ : at_ + 40] for at_ in range(0, len(order), 40)):
            await asyncio.gather(
                *(
                    keeper.keep(texts[i], thread_id=places[i][0], sequence=places[i][1], valid_at=places[i][2])
                    for i in part
                )
            )
        gone = [m for m in (await keeper.list(page_size=200)).memories if text_of(m).endswith(("3", "7"))]
        for memory in gone:
            await keeper.forget(memory.memory_id)
        queries = [" ".join(random.Random(seed * 100 + q).choices(vocabulary, k=3)) for q in range(25)]
        rankings.append(
            [[(m.memory.content_hash, m.score) for m in await keeper.search(query, limit=100)] for query in queries]
        )
    assert rankings[0] == rankings[1]
    assert all(rankings[0])
