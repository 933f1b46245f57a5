"""Ranges at positions where other ways of counting would cut: outside the BMP, between marks, in CRLF."""

from __future__ import annotations

import re

import grpc
import pytest
from phylactery.memory.v1 import memory_pb2

ODD = "a\u0301ñn\u0303🜛👩‍👩‍👧🇵🇪\r\n\0\ufeff\u200f\U0010ffff\r\r\n\n\x85\u2028z"
"""Combining marks, emoji of several code points, every kind of line end, NUL, a mark of direction."""


@pytest.fixture
async def pointer(make_memory):
    memory = await make_memory(evict_over_chars=len(ODD) - 1)
    return memory.user(), (await memory.user().store(ODD)).output.pointer


async def test_every_range_of_every_length_is_that_of_the_code_points(pointer):
    user, output = pointer
    assert (await user.get(output)).size_chars == len(ODD)
    for start in range(len(ODD)):
        for size in (1, 2, 3, len(ODD) - start, len(ODD)):
            part = await user.read(output, start, size)
            assert part.text == ODD[start : start + size]
            assert (part.offset, part.next_offset) == (start, min(start + size, len(ODD)))


async def test_only_a_line_feed_ends_a_line_and_every_byte_of_it_is_kept(pointer):
    user, output = pointer
    lines = re.findall(r"[^\n]*\n|[^\n]+$", ODD)
    assert (await user.get(output)).size_lines == len(lines)
    for number, line in enumerate(lines, 1):
        assert (await user.read_lines(output, number, 1)).text == line
        for skip in range(1, len(line)):
            assert (await user.read_lines(output, number, 1, skip_chars=skip)).text == line[skip:]


@pytest.mark.parametrize("wanted", ["\u0301", "🜛", "👧", "\\x00", "\ufeff", "\U0010ffff", "\\r$", "z$"])
async def test_a_search_answers_where_its_code_points_are(pointer, wanted):
    user, output = pointer
    [match] = (await user.grep(output, wanted)).matches[:1]
    at = ODD.index("\r\r\n") if wanted == "\\r$" else ODD.index(wanted.replace("\\x00", "\0").rstrip("$"))
    assert match.offset == at
    assert (await user.read(output, match.offset, 1)).text == ODD[at]


@pytest.mark.parametrize("offset", [len(ODD) + 1, 2**31, 2**63 - 1])
async def test_past_the_end_is_out_of_range_in_code_points_not_in_bytes(pointer, refused, offset):
    user, output = pointer
    for call in (user.read(output, offset), user.grep(output, "x", offset=offset)):
        refusal = await refused(call)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")
        assert refusal.metadata == {"total_chars": str(len(ODD))}
    assert (await user.read(output, len(ODD))).text == ""


async def test_messages_and_memories_keep_such_text_to_the_byte(kept):
    user = kept.user()
    await user.append("t1", memory_pb2.Message(message_id="m1", role=memory_pb2.ROLE_TOOL, content=ODD))
    assert [message.content for message in (await user.list("t1")).messages] == [ODD]
    assert [record["content"] for record in await user.export() if record["type"] == "message"] == [ODD]
