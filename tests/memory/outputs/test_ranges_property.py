"""Any text, read by any sequence of ranges, is byte for byte the stored text."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery_chassis.errors import OutOfRange
from phylactery_memory.outputs.chunks import CHUNK_BYTES, Intake
from phylactery_memory.outputs.model import OutputSpec
from phylactery_memory.outputs.ranges import characters, lines

SPEC = OutputSpec("t", "r", "c", "tool")
TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]), st.sampled_from("\0\r\n\u0301\u200d👩🜛\U0010ffff\ufeff")
    ),
    max_size=400,
)
COUNTS = iter(range(10**9))


@pytest.mark.slow
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


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXTS.filter(bool), times=st.integers(1, 400), data=st.data())
async def test_any_text_reassembles_from_any_lines_over_the_wire(make_memory, text, times, data):
    if not hasattr(make_memory, "memory"):
        make_memory.memory = await make_memory(evict_over_chars=1)
    ana, whole = make_memory.memory.user(), text * times + "."
    stored = await ana.store(whole, run_id=f"r{next(COUNTS)}")
    assert stored.output.size_lines == len(whole.split("\n"))
    parts, line, skip, offset = [], 1, 0, 0
    while line <= stored.output.size_lines:
        limit = data.draw(st.integers(max(1, (len(whole) - offset) // 8), 10_000), label="limit")
        count = data.draw(st.sampled_from([0, 0, 1, 3, 10_000]), label="count") if len(parts) < 40 else 0
        part = await ana.read_lines(stored.output.pointer, line, count, skip_chars=skip, limit=limit)
        assert (part.offset, part.first_line, part.total_lines) == (offset, line, stored.output.size_lines)
        assert 0 < len(part.text) <= limit
        assert not count or part.text.count("\n") <= count
        by_offset = await ana.read(stored.output.pointer, offset, len(part.text))
        assert (by_offset.text, by_offset.next_line, by_offset.next_skip_chars) == (
            part.text,
            part.next_line,
            part.next_skip_chars,
        )
        parts.append(part.text)
        line, skip, offset = part.next_line, part.next_skip_chars, part.next_offset
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
    data, intake, position, turn, chunks = whole.encode(), Intake(10**9), 0, 0, []
    while position < len(data):
        size = cuts[turn % len(cuts)]
        chunks += intake.feed(data[position : position + size])
        position, turn = position + size, turn + 1
    chunks += intake.finish()
    record = intake.record(SPEC)
    assert b"".join(chunk.body for chunk in chunks) == data
    assert "".join(chunk.text for chunk in chunks) == whole
    assert all(len(chunk.body) <= CHUNK_BYTES + 3 for chunk in chunks)
    places = [chunk.place for chunk in chunks]
    for place in places:
        before = whole[: place.first_char]
        assert (place.first_break, place.line_start) == (before.count("\n"), before.rfind("\n") + 1)
        assert place.breaks == whole[place.first_char : place.first_char + place.chars].count("\n")
    assert [place.first_char for place in places] == [sum(p.chars for p in places[:i]) for i in range(len(places))]
    assert record.size_lines == len(_lines(whole))
    assert (intake.preview_head, intake.preview_tail) == (whole[:300], whole[-300:])
    holding = [c for c in chunks if c.place.first_char < offset + limit and c.place.first_char + c.place.chars > offset]
    if offset > len(whole):
        with pytest.raises(OutOfRange):
            characters(record, (), offset, limit)
        return
    part = characters(record, holding, offset, limit)
    assert part.text == whole[offset : offset + limit]
    assert (part.offset, part.next_offset) == (offset, min(offset + limit, len(whole)))
    whole_lines = lines(record, holding, offset, limit, 0)
    assert part.text.startswith(whole_lines.text)
    assert whole_lines.text.endswith("\n") or "\n" not in whole_lines.text or whole_lines.next_offset == len(whole)


def _lines(text):
    pieces = text.split("\n")
    return pieces if pieces[-1] else pieces[:-1]
