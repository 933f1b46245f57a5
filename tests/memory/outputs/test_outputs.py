"""Outputs over the wire: stored, refused, and read back."""

from __future__ import annotations

import asyncio
import hashlib
import sys

import grpc
import pytest
from phylactery.memory.v1 import output_pb2

LONG = "á" * 10_001


@pytest.mark.parametrize(
    ("size", "evicted", "rehydratable"),
    [
        (0, False, True),
        (9_999, False, True),
        (10_000, False, True),
        (10_001, True, True),
        (49_999, True, True),
        (50_000, True, False),
        (50_001, True, False),
    ],
)
async def test_the_original_size_in_code_points_decides(memory, ana, size, evicted, rehydratable):
    text = "🜛" * size  # four bytes each, so a rule on bytes or UTF-16 units would differ
    stored = await ana.store(text)
    assert (stored.output.evicted, stored.output.rehydration_allowed) == (evicted, rehydratable)
    assert (stored.output.size_chars, stored.output.size_bytes) == (size, 4 * size)
    assert stored.output.sha256 == hashlib.sha256(text.encode()).hexdigest()
    assert bool(stored.output.pointer) == bool(stored.placeholder) == evicted
    assert stored.output.HasField("create_time") == evicted
    assert memory.count("outputs") == int(evicted)
    assert (memory.count("output_chunks") > 0) == evicted


async def test_the_answer_describes_the_output_and_get_says_the_same(memory, ana):
    text = "head " + "x" * 20_000 + " tail"
    stored = await ana.store(text)
    output = stored.output
    assert stored.placeholder == f"[EVICTED size=20010] See {output.pointer}"
    assert (stored.preview_head, stored.preview_tail) == (text[:300], text[-300:])
    assert output.pointer.startswith("out_")
    assert len(output.pointer) == 4 + 26
    assert (output.thread_id, output.run_id, output.tool_call_id, output.tool_name) == ("t1", "r1", "c1", "read_file")
    assert output.create_time.ToMicroseconds() == memory.clock.now_us()
    assert await ana.get(output.pointer) == output


async def test_previews_of_a_short_output_hold_all_of_it(ana):
    stored = await ana.store("hola")
    assert (stored.preview_head, stored.preview_tail) == ("hola", "hola")


async def test_the_preview_tail_crosses_the_border_between_two_chunks(ana):
    text = "a" * 65_536 + "é" * 10
    stored = await ana.store(text)
    assert stored.preview_tail == text[-300:]


@pytest.mark.parametrize("cut", [1, 3, 7, 65_537])
async def test_a_character_cut_between_two_stream_messages_is_whole_again(make_memory, cut):
    memory = await make_memory(evict_over_chars=10)
    text = "ñ🜛é\u0301👩‍👩‍👧\r\n\0" * 30
    stored = await memory.user().store(text, cut=cut)
    assert await memory.user().read_all(stored.output.pointer) == text


@pytest.mark.slow
async def test_one_line_of_ten_megabytes_comes_back_byte_exact(ana):
    text = ("0123456789abcdef¿🜛" * 600_000)[:10_000_000]
    stored = await ana.store(text)
    middle = await ana.read(stored.output.pointer, 5_000_000, 10_000)
    assert middle.text == text[5_000_000:5_010_000]
    assert hashlib.sha256((await ana.read_all(stored.output.pointer)).encode()).hexdigest() == stored.output.sha256


async def test_a_range_says_where_it_starts_ends_and_how_much_there_is(ana):
    pointer = (await ana.store("abcde" * 3_000)).output.pointer
    part = await ana.read(pointer, 12, 4)
    assert (part.text, part.offset, part.next_offset, part.total_chars) == ("cdea", 12, 16, 15_000)


async def test_a_range_without_limit_holds_ten_thousand_characters(ana):
    part = await ana.read((await ana.store("x" * 15_000)).output.pointer)
    assert (len(part.text), part.next_offset) == (10_000, 10_000)


async def test_a_range_ends_with_the_output(ana):
    part = await ana.read((await ana.store(LONG)).output.pointer, 10_000, 500)
    assert (part.text, part.next_offset, part.total_chars) == ("á", 10_001, 10_001)


async def test_the_end_itself_reads_as_empty_and_past_it_is_out_of_range(ana, refused):
    pointer = (await ana.store(LONG)).output.pointer
    end = await ana.read(pointer, 10_001)
    assert (end.text, end.offset, end.next_offset, end.total_chars) == ("", 10_001, 10_001, 10_001)
    for offset in (10_002, 2**63 - 1):
        refusal = await refused(ana.read(pointer, offset))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")
        assert refusal.metadata == {"total_chars": "10001"}


async def test_the_same_output_again_is_the_same_pointer(memory, ana):
    first, again = await ana.store(LONG), await ana.store(LONG, cut=777)
    assert again.output == first.output
    assert memory.count("outputs") == 1


async def test_the_same_output_twice_at_once_is_one_row(memory, ana):
    answers = await asyncio.gather(*(ana.store(LONG) for _ in range(10)))
    assert len({answer.output.pointer for answer in answers}) == 1
    assert memory.count("outputs") == 1


async def test_another_text_under_the_same_call_is_refused(memory, ana, refused):
    first = await ana.store(LONG)
    refusal = await refused(ana.store(LONG + "!"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "OUTPUT_CONFLICT")
    assert refusal.metadata == {"tool_call_id": "c1"}
    assert await ana.read_all(first.output.pointer) == LONG


async def test_the_same_call_id_in_another_run_is_another_output(memory, ana):
    one, other = await ana.store(LONG), await ana.store(LONG, run_id="r2")
    assert one.output.pointer != other.output.pointer


@pytest.mark.parametrize(("subject", "tenant"), [("bob", "acme"), ("ana", "globex")])
async def test_an_output_of_somebody_else_looks_like_one_that_does_not_exist(memory, ana, refused, subject, tenant):
    pointer = (await ana.store(LONG)).output.pointer
    other, unknown = memory.user(subject, tenant), "out_" + "a" * 26
    for call in (other.get, other.read):
        theirs, nobodys = await refused(call(pointer)), await refused(call(unknown))
        assert theirs.code is nobodys.code is grpc.StatusCode.NOT_FOUND
        assert theirs.reason == nobodys.reason == "OUTPUT_NOT_FOUND"
        assert theirs.message.replace(pointer, unknown) == nobodys.message
        assert theirs.metadata == {"pointer": pointer}
    assert (await other.store(LONG)).output.pointer != pointer


async def test_an_output_over_the_limit_is_refused_and_leaves_nothing(make_memory, refused):
    memory = await make_memory(max_output_bytes=20_000)
    refusal = await refused(memory.user().store("x" * 20_001, cut=1_000))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OUTPUT_TOO_LARGE")
    assert refusal.metadata == {"limit_bytes": "20000"}
    assert memory.count("outputs") == 0
    assert (await memory.user().store("x" * 20_000)).output.evicted


async def test_the_thresholds_are_settings(make_memory):
    memory = await make_memory(evict_over_chars=5, rehydrate_under_chars=8)
    ana = memory.user()
    assert not (await ana.store("12345")).output.evicted
    assert (await ana.store("1234567")).output.rehydration_allowed
    assert not (await ana.store("12345678", tool_call_id="c2")).output.rehydration_allowed


@pytest.mark.parametrize(
    "data",
    [b"\xff", b"\xc3", b"ok \xed\xa0\x80", b"x" * 70_000 + b"\x80" * 10, b"\x80" * 100_000, b"x" * 65_535 + b"\xf0"],
    ids=["stray byte", "cut character", "surrogate", "late", "continuations only", "cut at a chunk's end"],
)
async def test_text_that_is_not_utf8_is_refused_and_leaves_nothing(memory, ana, refused, data):
    refusal = await refused(ana.store(data))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert refusal.fields == ["chunk"]
    assert memory.count("outputs") == memory.count("output_chunks") == 0


def _chunk(data: bytes) -> output_pb2.StoreOutputRequest:
    return output_pb2.StoreOutputRequest(chunk=data)


async def test_a_stream_out_of_order_is_refused_and_leaves_nothing(memory, ana, refused):
    text = _chunk(LONG.encode())
    empty = output_pb2.StoreOutputRequest()
    for requests in ([], [text], [text, ana.spec()], [empty], [ana.spec(), empty], [ana.spec(), text, ana.spec()]):
        refusal = await refused(ana.stream(requests))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
        assert refusal.fields
    assert memory.count("outputs") == 0


async def test_a_spec_without_chunks_is_an_empty_output(ana):
    stored = await ana.stream([ana.spec()])
    assert (stored.output.size_chars, stored.output.evicted) == (0, False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["cancel", "die"])
async def test_a_client_that_hangs_up_leaves_nothing_and_may_store_again(memory, ana, how):
    # The client is a process of its own: within one event loop the server always hears of the end in time.
    clients = 8 if how == "die" else 1
    for client in range(clients):
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HANGS_UP, f"127.0.0.1:{memory.server.port}", how, str(client)
        )
        await child.wait()
    ids = [f"c{client}-{number}" for client in range(clients) for number in range(1 if how == "die" else 150)]
    for tool_call_id in ids:
        stored = await ana.store(LONG + "whole", tool_call_id=tool_call_id)
        assert stored.output.size_chars == len(LONG + "whole")
    assert memory.count("outputs") == len(ids)


HANGS_UP = """
import asyncio, os, random, sys
import grpc
from phylactery.memory.v1 import output_pb2, output_pb2_grpc

target, how, client = sys.argv[1:]
who = (("x-phylactery-subject", "ana"), ("x-phylactery-tenant", "acme"))

async def main():
    stub = output_pb2_grpc.OutputServiceStub(grpc.aio.insecure_channel(target))
    dice = random.Random(client)
    for number in range(150):
        call = stub.StoreOutput(metadata=who)
        name = f"c{client}-{number}"
        spec = output_pb2.OutputSpec(thread_id="t1", run_id="r1", tool_call_id=name, tool_name="read_file")
        await call.write(output_pb2.StoreOutputRequest(spec=spec))
        for _ in range(dice.randrange(1, 5)):
            await call.write(output_pb2.StoreOutputRequest(chunk=b"x" * dice.choice([10_001, 200_000])))
        if how == "die":
            os._exit(0)
        call.cancel()
        await asyncio.wait([asyncio.ensure_future(call.code())])

asyncio.run(main())
"""
