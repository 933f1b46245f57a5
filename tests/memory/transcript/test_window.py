"""The conversation window over the wire."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.memory.v1 import memory_pb2

USER, ASSISTANT, TOOL = memory_pb2.ROLE_USER, memory_pb2.ROLE_ASSISTANT, memory_pb2.ROLE_TOOL


def say(message_id: str, content: str = "hola", role: int = USER, **more) -> memory_pb2.Message:
    return memory_pb2.Message(message_id=message_id, role=role, content=content, **more)


async def test_what_was_said_comes_back_newest_first_with_every_field(memory, ana):
    said = Timestamp(seconds=1_700_000_000, nanos=123_456_789)
    await ana.append("t1", say("m1", "¿qué?\r\n\0 🜛", create_time=said), say("m2", "", ASSISTANT, run_id="r1"))
    await ana.append("t1", say("m3", "salida", TOOL))
    page = await ana.list("t1")
    assert [(m.message_id, m.role, m.content, m.run_id, m.sequence) for m in page.messages] == [
        ("m3", TOOL, "salida", "", 3),
        ("m2", ASSISTANT, "", "r1", 2),
        ("m1", USER, "¿qué?\r\n\0 🜛", "", 1),
    ]
    assert page.messages[2].create_time == Timestamp(seconds=1_700_000_000, nanos=123_456_000)
    assert page.messages[0].create_time.ToMicroseconds() == memory.clock.now_us()
    assert page.next_page_token == ""


async def test_the_answer_says_where_the_thread_stands(ana):
    first = await ana.append("t1", say("m1"), say("m2"))
    assert (first.last_sequence, first.appended) == (2, 2)
    again = await ana.append("t1", say("m2"), say("m3"), say("m1"))
    assert (again.last_sequence, again.appended) == (3, 1)
    nothing = await ana.append("t1", say("m1"), say("m3"))
    assert (nothing.last_sequence, nothing.appended) == (3, 0)


async def test_a_thread_takes_as_many_messages_as_are_set_and_what_stands_may_be_sent_again(make_memory, refused):
    memory = await make_memory(max_thread_messages=3)
    ana = memory.user()
    await ana.append("t1", say("m1"), say("m2"))
    refusal = await refused(ana.append("t1", say("m3"), say("m4")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_LIMIT")
    assert refusal.metadata == {"limit": "3", "per": "thread"}
    assert "go on in another thread" in refusal.message
    assert (await ana.append("t1", say("m2"), say("m3"))).last_sequence == 3
    assert (await ana.append("t1", say("m1"), say("m3"))).appended == 0
    assert (await refused(ana.append("t1", say("m4")))).reason == "MESSAGE_LIMIT"
    assert (await ana.append("t2", say("m4"))).appended == 1
    assert (await memory.user("ben").append("t1", say("m4"))).appended == 1


async def test_a_user_opens_as_many_threads_as_are_set_and_goes_on_in_those_they_have(make_memory, refused):
    memory = await make_memory(max_threads=2)
    ana = memory.user()
    for thread in ("t1", "t2"):
        await ana.append(thread, say("m1"))
    refusal = await refused(ana.append("t3", say("m1")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "MESSAGE_LIMIT")
    assert refusal.metadata == {"limit": "2", "per": "user"}
    assert (await ana.append("t2", say("m2"))).last_sequence == 2
    for other in (memory.user("ben"), memory.user("ana", "globex")):
        assert (await other.append("t3", say("m1"))).appended == 1
    assert memory.count("threads") == 4


async def test_a_message_sent_again_later_is_the_same_message(memory, ana):
    await ana.append("t1", say("m1"))
    memory.clock.advance(60)
    assert (await ana.append("t1", say("m1"))).appended == 0
    assert len((await ana.list("t1")).messages) == 1


@pytest.mark.parametrize(
    "changed",
    [say("m2", "otra cosa"), say("m2", role=ASSISTANT), say("m2", run_id="r9")],
    ids=["content", "role", "run"],
)
async def test_an_id_that_stands_with_other_content_adds_nothing_at_all(ana, refused, changed):
    await ana.append("t1", say("m1"), say("m2"))
    refusal = await refused(ana.append("t1", say("m3"), changed, say("m4")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "MESSAGE_CONFLICT")
    assert refusal.metadata == {"message_id": "m2"}
    assert [m.message_id for m in (await ana.list("t1")).messages] == ["m2", "m1"]
    assert (await ana.append("t1", say("m5"))).last_sequence == 3


async def test_an_id_twice_in_one_call_is_one_message_or_a_conflict(ana, refused):
    assert (await ana.append("t1", say("m1"), say("m1"))).appended == 1
    refusal = await refused(ana.append("t2", say("m1"), say("m1", "otra cosa")))
    assert refusal.reason == "MESSAGE_CONFLICT"
    assert (await ana.list("t2")).messages == []


async def test_many_writers_at_once_leave_no_gap_and_no_double(ana):
    writers = [[say(f"w{w}-{i}") for i in range(7)] for w in range(20)]
    await asyncio.gather(*(ana.append("t1", *messages) for messages in writers))
    page = (await ana.list("t1", page_size=500)).messages
    assert [m.sequence for m in page] == list(range(140, 0, -1))
    order = [m.message_id for m in reversed(page)]
    for messages in writers:
        at = order.index(messages[0].message_id)
        assert order[at : at + 7] == [m.message_id for m in messages]


@pytest.mark.parametrize(("subject", "tenant"), [("bob", "acme"), ("ana", "globex")])
async def test_the_same_thread_id_of_somebody_else_is_another_thread(memory, ana, subject, tenant):
    other = memory.user(subject, tenant)
    await ana.append("t1", say("m1", "secreto"))
    assert (await other.list("t1")).messages == []
    answer = await other.append("t1", say("m1", "mío"))
    assert (answer.last_sequence, answer.appended) == (1, 1)
    assert [m.content for m in (await ana.list("t1")).messages] == ["secreto"]
    assert [m.content for m in (await other.list("t1")).messages] == ["mío"]


async def test_a_page_token_of_somebody_elses_thread_shows_nothing_of_it(memory, ana):
    await ana.append("t1", *(say(f"m{i}") for i in range(10)))
    token = (await ana.list("t1", page_size=3)).next_page_token
    assert (await memory.user("bob").list("t1", page_token=token)).messages == []


@pytest.mark.parametrize("page_size", [1, 3, 7, 100])
async def test_pages_hold_every_message_once_while_others_are_added(ana, page_size):
    await ana.append("t1", *(say(f"m{i}") for i in range(1, 21)))
    seen, token, added = [], "", 0
    while True:
        page = await ana.list("t1", page_size=page_size, page_token=token)
        seen += [m.sequence for m in page.messages]
        token = page.next_page_token
        if not token:
            break
        added += 1
        await ana.append("t1", say(f"late{added}"))
    assert seen == list(range(20, 0, -1))


async def test_a_page_of_exactly_the_whole_thread_is_the_last(ana):
    await ana.append("t1", *(say(f"m{i}") for i in range(5)))
    assert (await ana.list("t1", page_size=5)).next_page_token == ""
    assert (await ana.list("t1", page_size=4)).next_page_token != ""


async def test_without_a_size_a_page_holds_fifty(ana):
    await ana.append("t1", *(say(f"m{i}") for i in range(60)))
    page = await ana.list("t1")
    assert (len(page.messages), bool(page.next_page_token)) == (50, True)


async def test_a_page_ends_before_its_characters_pass_the_bound(ana):
    await ana.append("t1", *(say(f"m{i}", "🜛" * 10) for i in range(1, 6)))
    assert [m.sequence for m in (await ana.list("t1", max_characters=30)).messages] == [5, 4, 3]
    page = await ana.list("t1", max_characters=29)
    assert [m.sequence for m in page.messages] == [5, 4]
    rest = await ana.list("t1", max_characters=29, page_token=page.next_page_token)
    assert [m.sequence for m in rest.messages] == [3, 2]


async def test_a_message_larger_than_the_bound_is_still_answered_alone(ana):
    await ana.append("t1", say("m1", "x" * 100), say("m2", "y" * 100))
    page = await ana.list("t1", max_characters=1)
    assert [m.message_id for m in page.messages] == ["m2"]
    assert [
        m.message_id for m in (await ana.list("t1", max_characters=1, page_token=page.next_page_token)).messages
    ] == ["m1"]


async def test_the_largest_page_fits_a_default_message(memory, ana):
    long_id = "i" * 124
    for batch in range(5):
        await ana.append(
            "t1", *(say(f"{long_id}{batch}{i:03}", "🜛" * 2_000, ASSISTANT, run_id="r" * 128) for i in range(100))
        )
    page = await ana.list("t1", page_size=500, max_characters=1_000_000)
    assert len(page.messages) == 500
    assert 4_000_000 < page.ByteSize() < 4 * 1024 * 1024


async def test_a_thread_nobody_wrote_to_reads_as_empty(ana):
    page = await ana.list("nowhere")
    assert (list(page.messages), page.next_page_token) == ([], "")
