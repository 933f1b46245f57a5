"""Any text, read by any sequence of ranges, is byte for byte the text that was stored."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery_chassis.errors import OutOfRange
from phylactery_memory.domain.outputs import CHUNK_BYTES, Intake, OutputSpec, assemble

SPEC = OutputSpec("t", "r", "c", "tool")
TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from("\0\r\n\u0301\u200d👩🜛\U0010ffff\ufeff")
    ),
    max_size=400,
)
COUNTS = iter(range(10**9))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXTS.filter(bool), times=st.integers(1, 400), data=st.data())
async def test_any_text_reassembles_from_any_ranges_over_the_wire(make_memory, text, times, data):
    if not hasattr(make_memory, "memory"):
        make_memory.memory = await make_memory(evict_over_chars=1)
    ana, whole = make_memory.memory.user(), text * times + "."
    cut = data.draw(st.integers(1, 70_000).filter(lambda n: len(whole.encode()) // n < 500), label="cut")
    stored = await ana.store(whole, cut=cut, run_id=f"r{next(COUNTS)}")
    assert (stored.output.size_chars, stored.output.size_bytes) == (len(whole), len(whole.encode()))
    parts, offset = [], 0
    while offset < len(whole):
        limit = data.draw(st.integers(max(1, (len(whole) - offset) // 8), 10_000), label="limit") if offset else 1
        part = await ana.read(stored.output.pointer, offset, limit)
        assert part.text == whole[offset : offset + limit]
        assert (part.offset, part.total_chars) == (offset, len(whole))
        parts.append(part.text)
        offset = part.next_offset
    assert "".join(parts).encode() == whole.encode()


@settings(max_examples=200, deadline=None)
@given(
    text=TEXTS,
    times=st.integers(1, 900),
    cuts=st.lists(st.integers(1, 90_000), min_size=1, max_size=5),
    offset=st.integers(0, 400_000),
    limit=st.integers(1, 10_000),
)
def test_chunks_are_whole_characters_in_order_and_any_range_lies_in_them(text, times, cuts, offset, limit):
    whole = text * times
    data, intake, position, turn = whole.encode(), Intake("out_p", 10**9), 0, 0
    while position < len(data):
        size = cuts[turn % len(cuts)]
        intake.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    record, chunks = intake.finish(SPEC), intake.chunks
    assert b"".join(chunk.body for chunk in chunks) == data
    assert "".join(chunk.body.decode() for chunk in chunks) == whole
    assert all(len(chunk.body) <= CHUNK_BYTES + 3 for chunk in chunks)
    assert [chunk.first_char for chunk in chunks] == [sum(c.chars for c in chunks[:i]) for i in range(len(chunks))]
    assert (intake.preview_head, intake.preview_tail) == (whole[:300], whole[-300:])
    holding = [c for c in chunks if c.first_char < offset + limit and c.first_char + c.chars > offset]
    if offset > len(whole):
        with pytest.raises(OutOfRange):
            assemble(record, (), offset, limit)
        return
    part = assemble(_as_stored(record), holding, offset, limit)
    assert part.text == whole[offset : offset + limit]
    assert (part.offset, part.next_offset) == (offset, min(offset + limit, len(whole)))


def _as_stored(record):
    return type(record)(record.spec, record.size_chars, record.size_bytes, record.sha256, "out_p", 1)
