"""Storage of outputs: sealed, with expiry and quota, and deleted without a trace."""

from __future__ import annotations

import hashlib
import sqlite3

import grpc
import pytest
import sqlalchemy as sa
from google.protobuf.duration_pb2 import Duration
from phylactery.memory.v1 import output_pb2
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_memory.outputs.chunks import Intake
from phylactery_memory.outputs.model import OutputSpec
from phylactery_memory.outputs.sealing import chunk_digest
from phylactery_memory.privacy.store import remove_all

SECRET = "el-texto-que-nadie-debe-leer "
LONG = SECRET * 1_000
CODE = grpc.StatusCode
DAY = 86_400
ANA = Principal("ana", "acme", frozenset({Role.CALLER}))


def files_of(memory):
    return b"".join(path.read_bytes() for path in memory.path.parent.glob("memory.db*"))


async def test_no_text_of_an_output_stands_in_any_file(memory, ana):
    pointer = (await ana.store(LONG)).output.pointer
    assert SECRET.encode() not in files_of(memory)
    assert await ana.read_all(pointer) == LONG


async def test_a_text_takes_less_room_than_it_is_long(memory, ana):
    await ana.store("una línea como tantas otras en un registro\n" * 40_000)
    with sqlite3.connect(memory.path) as connection:
        (stored,) = connection.execute("SELECT sum(length(body)) FROM output_chunks").fetchone()
    connection.close()
    assert stored < 43 * 40_000 / 20


async def test_a_deleted_output_is_gone_from_the_files_and_from_the_quota(kept):
    ana = kept.user()
    gone, stays = (await ana.store(LONG)).output.pointer, (await ana.store(LONG, tool_call_id="c2")).output.pointer
    bodies = kept.database.read_sync(
        lambda c: c.execute(sa.text("SELECT body FROM output_chunks WHERE pointer = :p"), {"p": gone}).scalars().all()
    )
    assert await ana.delete(gone)
    assert not await ana.delete(gone)
    assert (kept.count("outputs"), kept.count("output_chunks")) == (1, 1)
    assert await ana.read_all(stays) == LONG
    used = kept.database.read_sync(lambda c: c.execute(sa.text("SELECT used_bytes FROM user_keys")).scalar_one())
    assert used == len(LONG)
    if not kept.database.dialect.is_server:
        assert not any(bytes(body)[:64] in files_of(kept) for body in bodies)
        assert gone.encode() not in files_of(kept)
    assert (await ana.store(LONG)).output.pointer != gone


@pytest.mark.parametrize(("subject", "tenant"), [("bob", "acme"), ("ana", "globex")])
async def test_nobody_deletes_searches_or_rehydrates_what_is_somebody_elses(memory, ana, refused, subject, tenant):
    pointer = (await ana.store(LONG)).output.pointer
    other = memory.user(subject, tenant)
    assert not await other.delete(pointer)
    for call in (other.grep(pointer, "x"), other.rehydrate(pointer), other.read_lines(pointer)):
        assert (await refused(call)).reason == "OUTPUT_NOT_FOUND"
    assert list((await other.list_outputs()).outputs) == []
    assert await ana.read_all(pointer) == LONG


async def test_an_output_returns_whole_under_the_threshold_alone(ana, refused):
    text = "ñ🜛\r\n\0" * 9_999
    small, large = await ana.store(text), await ana.store("x" * 50_000, tool_call_id="c2")
    answer = await ana.rehydrate(small.output.pointer)
    assert (answer.text, answer.output) == (text, small.output)
    refusal = await refused(ana.rehydrate(large.output.pointer))
    assert (refusal.code, refusal.reason) == (CODE.FAILED_PRECONDITION, "OUTPUT_NOT_REHYDRATABLE")
    assert refusal.metadata == {"size_chars": "50000"}


async def test_do_not_store_keeps_sizes_and_hash_and_never_the_text(memory, ana, refused):
    stored = await ana.store(LONG, do_not_store=True)
    output = stored.output
    assert (output.not_stored, output.evicted, output.rehydration_allowed, stored.placeholder) == (
        True,
        False,
        False,
        "",
    )
    assert (output.size_chars, output.sha256) == (len(LONG), hashlib.sha256(LONG.encode()).hexdigest())
    assert stored.preview_head == LONG[:300]
    assert await ana.get(output.pointer) == output
    assert (memory.count("outputs"), memory.count("output_chunks")) == (1, 0)
    assert SECRET.encode() not in files_of(memory)
    for call in (ana.read, ana.read_lines, ana.rehydrate):
        refusal = await refused(call(output.pointer))
        assert (refusal.code, refusal.reason) == (CODE.FAILED_PRECONDITION, "OUTPUT_NOT_STORED")
    assert (await refused(ana.grep(output.pointer, "x"))).reason == "OUTPUT_NOT_STORED"
    assert (await refused(ana.store(LONG))).reason == "OUTPUT_CONFLICT"
    assert (await ana.store("short", do_not_store=True, tool_call_id="c2")).output.not_stored


async def test_outputs_are_listed_newest_first_page_by_page_and_filtered(kept):
    ana = kept.user()
    pointers = []
    for number in range(7):
        kept.clock.advance(number % 2)  # some share a moment
        stored = await ana.store(LONG, thread_id=f"t{number % 2}", run_id=f"r{number % 3}", tool_call_id=f"c{number}")
        pointers.append((stored.output.create_time.ToMicroseconds(), stored.output.pointer))
    seen, token = [], None
    while token != "":
        page = await ana.list_outputs(page_size=2, page_token=token or "")
        assert len(page.outputs) <= 2
        seen += page.outputs
        token = page.next_page_token
    assert [output.pointer for output in seen] == [pointer for _, pointer in sorted(pointers, reverse=True)]
    assert seen[0] == await ana.get(seen[0].pointer)
    assert {o.tool_call_id for o in (await ana.list_outputs(thread_id="t1")).outputs} == {"c1", "c3", "c5"}
    assert {o.tool_call_id for o in (await ana.list_outputs(thread_id="t0", run_id="r0")).outputs} == {"c0", "c6"}
    assert list((await ana.list_outputs(thread_id="t9")).outputs) == []


async def test_an_output_expires_at_its_time_and_is_removed(kept, refused):
    ana = kept.user()
    short = (await ana.store(LONG, ttl=Duration(seconds=60))).output
    default = (await ana.store(LONG, tool_call_id="c2")).output
    assert short.expire_time.ToMicroseconds() == kept.clock.now_us() + 60_000_000
    assert default.expire_time.ToMicroseconds() == kept.clock.now_us() + 30 * DAY * 1_000_000
    kept.clock.advance(59)
    assert await ana.read_all(short.pointer) == LONG
    kept.clock.advance(1)
    for call in (ana.get(short.pointer), ana.read(short.pointer), ana.grep(short.pointer, "x")):
        assert (await refused(call)).reason == "OUTPUT_NOT_FOUND"
    assert [o.pointer for o in (await ana.list_outputs()).outputs] == [default.pointer]
    assert await kept.tidy() == 1
    assert (kept.count("outputs"), kept.count("output_chunks")) == (1, 1)
    assert await kept.tidy() == 0


async def test_the_same_call_may_store_again_once_its_output_expired(memory, ana):
    first = await ana.store(LONG, ttl=Duration(seconds=60))
    memory.clock.advance(61)
    again = await ana.store(LONG + "another text")
    assert again.output.pointer != first.output.pointer
    assert memory.count("outputs") == 1


async def test_outputs_are_kept_for_ever_where_told_to(make_memory):
    memory = await make_memory(output_ttl_days=0)
    stored = await memory.user().store(LONG)
    assert not stored.output.HasField("expire_time")
    memory.clock.advance(10_000 * DAY)
    assert await memory.user().read_all(stored.output.pointer) == LONG


async def test_a_quota_is_per_user_and_deleting_makes_room(make_memory, refused):
    memory = await make_memory(output_quota_bytes=250_000)
    ana = memory.user()
    first = (await ana.store("x" * 100_000)).output.pointer
    await ana.store("y" * 150_000, tool_call_id="c2")
    for size in (10_001, 200_000):
        refusal = await refused(ana.store("z" * size, tool_call_id="c3"))
        assert (refusal.code, refusal.reason) == (CODE.RESOURCE_EXHAUSTED, "OUTPUT_QUOTA")
        assert refusal.metadata == {"quota_bytes": "250000"}
    assert (await ana.store("x" * 100_000)).output.pointer == first
    assert (await memory.user("bob").store("z" * 200_000)).output.evicted
    assert await ana.delete(first)
    assert (await ana.store("z" * 100_000, tool_call_id="c3")).output.evicted


async def test_chunks_without_an_output_are_removed(memory, ana):
    pointer = (await ana.store(LONG)).output.pointer
    with sqlite3.connect(memory.path) as connection:  # foreign keys are off in a connection of its own
        connection.execute("UPDATE output_chunks SET pointer = 'out_lost'")
    connection.close()
    await ana.delete(pointer)
    assert memory.count("output_chunks") == 1
    await memory.tidy()
    assert memory.count("output_chunks") == 0


async def test_erasing_a_user_leaves_neither_key_nor_output_and_a_later_one_gets_a_new_key(kept, refused):
    ana, bob = kept.user(), kept.user("bob")
    pointer, other = (await ana.store(LONG)).output.pointer, (await bob.store(LONG)).output.pointer
    assert kept.database.write_sync(lambda connection: remove_all(connection, ANA, "era_1").outputs) == 1
    assert kept.database.write_sync(lambda connection: remove_all(connection, ANA, "era_1").outputs) == 0
    assert (await refused(ana.read(pointer))).reason == "OUTPUT_NOT_FOUND"
    assert (kept.count("user_keys"), kept.count("outputs")) == (1, 1)
    assert await bob.read_all(other) == LONG
    assert await ana.read_all((await ana.store(LONG)).output.pointer) == LONG


async def test_an_erasure_while_an_output_comes_in_leaves_nothing_of_it(memory, ana):
    await ana.store(LONG, tool_call_id="c0")

    outputs = memory.outputs
    held = outputs._keys.hold

    async def hold_then_erase(who):
        key = await held(who)
        await memory.database.write(lambda connection: remove_all(connection, ANA, "era_1"))
        return key

    outputs._keys.hold = hold_then_erase

    async def pieces():
        yield b"x" * 200_000

    with pytest.raises(Exception, match="OUTPUT_KEY_CHANGED"):
        await outputs.store(ANA, OutputSpec("t1", "r1", "c1", "read_file"), pieces())
    assert memory.count("outputs") == memory.count("output_chunks") == 0


async def test_under_a_damaged_key_nothing_is_answered_and_nothing_stored(memory, ana, refused):
    """What is sealed under a key nobody holds is lost, so it must not be acknowledged."""
    pointer = (await ana.store(LONG)).output.pointer
    with sqlite3.connect(memory.path) as connection:
        connection.execute("UPDATE user_keys SET wrapped = zeroblob(length(wrapped))")
    connection.close()
    refusal = await refused(ana.store(LONG, tool_call_id="c2"))
    assert (refusal.code, refusal.reason) == (CODE.UNAVAILABLE, "OUTPUT_KEY_UNAVAILABLE")
    assert (await refused(ana.read(pointer))).reason == "OUTPUT_CORRUPT"
    assert memory.count("outputs") == 1


async def test_an_output_from_before_sealing_is_read_searched_and_checked(memory, ana, refused):
    text = "línea antigua 🜛\r\n" * 10_000
    intake = Intake(10**9)
    chunks = [*intake.feed(text.encode()), *intake.finish()]
    with sqlite3.connect(memory.path) as connection:
        connection.execute(
            "INSERT INTO outputs (pointer, tenant, subject, thread_id, run_id, tool_call_id, tool_name, size_chars, "
            "size_bytes, size_lines, sha256, create_us) VALUES "
            "('out_old', 'acme', 'ana', 't1', 'r0', 'c1', 'read_file', ?, ?, ?, ?, 1)",
            (len(text), len(text.encode()), 10_000, hashlib.sha256(text.encode()).hexdigest()),
        )
        for chunk in chunks:
            place = chunk.place
            connection.execute(
                "INSERT INTO output_chunks VALUES ('out_old', ?, ?, ?, ?, ?, ?, ?, 0, 0)",
                (
                    place.first_char,
                    place.chars,
                    chunk_digest("out_old", place.first_char, chunk.body),
                    chunk.body,
                    place.first_break,
                    place.breaks,
                    place.line_start,
                ),
            )
    connection.close()
    assert await ana.read_all("out_old") == text
    assert (await ana.read_lines("out_old", 9_000, 1)).text == "línea antigua 🜛\r\n"
    assert len((await ana.grep("out_old", "antigua", max_matches=5)).matches) == 5
    with sqlite3.connect(memory.path) as connection:
        connection.execute("UPDATE output_chunks SET body = ? WHERE first_char = 0", (b"x" + chunks[0].body[1:],))
    connection.close()
    assert (await refused(ana.read("out_old"))).reason == "OUTPUT_CORRUPT"


@pytest.mark.parametrize("text", ["", "ñ", LONG, "línea\n" * 300_000])
async def test_a_kept_output_of_any_length_is_fetched_whole(ana, text):
    kept = await ana.store(text, keep=True)
    assert kept.output.pointer
    assert await fetched(ana, kept.output.pointer) == text
    assert (await ana.store(text, keep=True)).output.pointer == kept.output.pointer


async def test_fetching_refuses_strangers_unstored_texts_and_contradicting_wishes(memory, ana, refused):
    pointer = (await ana.store(LONG)).output.pointer
    assert (await refused(fetched(memory.user("bob"), pointer))).reason == "OUTPUT_NOT_FOUND"
    nowhere = (await ana.store(LONG, tool_call_id="c2", do_not_store=True)).output.pointer
    assert (await refused(fetched(ana, nowhere))).reason == "OUTPUT_NOT_STORED"
    assert (await refused(ana.store(LONG, tool_call_id="c3", do_not_store=True, keep=True))).reason == "INVALID_REQUEST"


async def test_an_altered_output_is_not_fetched(kept, refused):
    pointer = (await kept.user().store(LONG * 20)).output.pointer

    def swap(connection):
        bodies = "SELECT first_char, body FROM output_chunks WHERE pointer = :p ORDER BY first_char"
        rows = connection.execute(sa.text(bodies), {"p": pointer}).all()
        update = sa.text("UPDATE output_chunks SET body = :b WHERE pointer = :p AND first_char = :f")
        connection.execute(update, {"b": rows[0].body, "p": pointer, "f": rows[1].first_char})

    await kept.database.write(swap)
    assert (await refused(fetched(kept.user(), pointer))).reason == "OUTPUT_CORRUPT"


async def fetched(user, pointer):
    call = user.outputs.FetchOutput(output_pb2.FetchOutputRequest(pointer=pointer), metadata=user.metadata)
    parts = [answer async for answer in call]
    assert parts[0].WhichOneof("part") == "output"
    return "".join(part.text for part in parts[1:])
