"""Output search returns what a plain reading of grep would, page by page, for any text and pattern."""

from __future__ import annotations

import asyncio
import random
import re
import threading
import time
from typing import Any

import grpc
import pytest
import re2
from grpc import aio
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_memory.outputs import grep
from phylactery_memory.outputs import service as outputs_module
from phylactery_memory.outputs.chunks import Chunk, Intake
from phylactery_memory.outputs.grep import Query, Scanner

from tests.support.contracts.refusals import refusal_of
from tests.support.effort import attempts_within

LOG = "".join(f"línea {number}: {'ERROR 🜛' if number % 1_000 == 7 else 'ok'}\r\n" for number in range(1, 20_001))


def plain(text, pattern):
    """The reading: line by line with Python's own engine."""
    found, offset = [], 0
    for number, line in enumerate(text.split("\n"), 1):
        body = line.removesuffix("\r")
        match = re.search(pattern, body)
        if match and offset < len(text):
            found.append((number, offset + match.start(), len(match.group()), body))
        offset += len(line) + 1
    return found


async def everything(user, pointer, pattern, **options):
    """Every match, page by page, each within its bounds."""
    found, offset, total = [], options.pop("offset", 0), 1
    while offset < total:
        answer = await user.grep(pointer, pattern, offset=offset, **options)
        characters = sum(len(line.text) for m in answer.matches for line in (m.line, *m.before, *m.after))
        assert characters <= 10_000
        assert answer.next_offset > offset
        found += answer.matches
        offset, total = answer.next_offset, answer.total_chars
    return found


async def test_matches_carry_line_numbers_and_offsets_in_code_points(kept):
    ana = kept.user()
    pointer = (await ana.store(LOG)).output.pointer
    found = await everything(ana, pointer, "ERR[A-Z]+ .$", max_matches=7)
    assert [match.line.number for match in found] == list(range(7, 20_001, 1_000))
    for match in found:
        assert LOG[match.offset : match.offset + match.size_chars] == "ERROR 🜛"
        assert LOG[match.line.offset :].startswith(match.line.text + "\r\n")
        assert not match.line.cut


async def test_context_is_the_lines_around_and_ends_where_the_text_does(ana):
    pointer = (await ana.store(LOG)).output.pointer
    found = await everything(ana, pointer, "ERROR", context_lines=3)
    assert len(found) == 20
    for match in found:
        numbers = [line.number for line in (*match.before, match.line, *match.after)]
        assert numbers == list(range(match.line.number - 3, match.line.number + 4))
        for line in (*match.before, *match.after):
            assert LOG[line.offset :].startswith(line.text + "\r\n")
    (last,) = await everything(ana, pointer, "línea 19999:", context_lines=3)
    assert [line.number for line in last.after] == [20_000]
    (first,) = await everything(ana, pointer, "línea 1:", context_lines=3)
    assert (list(first.before), len(first.after)) == ([], 3)


async def test_a_pattern_is_taken_literally_and_without_case_where_told_to(ana):
    pointer = (await ana.store("price: $5.00 (NET)\n" + "x" * 20_000)).output.pointer
    for pattern, options, hits in (
        ("$5.00 (", {"literal": True}, 1),
        ("$5.00 (", {"literal": True, "ignore_case": True}, 1),
        ("(net)", {}, 0),
        ("(net)", {"ignore_case": True}, 1),
        ("(net)", {"literal": True, "ignore_case": True}, 1),
        ("(?i)net", {}, 1),
        ("^price", {}, 1),
        (r"\Aprice", {}, 1),
        (r"NET\)\z", {}, 1),
        ("^x+$", {}, 1),
        ("T\\)\nx", {}, 0),
        ("\\C", {"literal": True}, 0),
        (r"\\C|price", {}, 1),
    ):
        assert len(await everything(ana, pointer, pattern, **options)) == hits, pattern


async def test_a_long_line_is_answered_in_parts_around_its_matches(ana):
    text = ("." * 9_990 + "needle 🜛…") * 300  # one line of 3 million characters
    pointer = (await ana.store(text)).output.pointer
    found = await everything(ana, pointer, "needle", max_matches=13)
    places = [match.start() for match in re.finditer("needle", text)]
    assert [match.offset for match in found] == places
    for match in found:
        assert match.line.cut
        assert match.line.number == 1
        assert len(match.line.text) <= 500
        assert text[match.line.offset : match.line.offset + len(match.line.text)] == match.line.text
        assert "needle" in match.line.text


async def test_a_search_from_an_offset_finds_what_starts_there_or_later(ana):
    text = "aXbXc\n" * 4_000
    pointer = (await ana.store(text)).output.pointer
    answer = await ana.grep(pointer, "X", offset=6 * 100 + 2, max_matches=2)
    assert [match.offset for match in answer.matches] == [603, 607]
    end = await ana.grep(pointer, "X", offset=len(text))
    assert (list(end.matches), end.next_offset, end.total_chars) == ([], len(text), len(text))


async def test_a_search_past_the_end_is_out_of_range(ana, refused):
    pointer = (await ana.store(LOG)).output.pointer
    refusal = await refused(ana.grep(pointer, "x", offset=len(LOG) + 1))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.OUT_OF_RANGE, "RANGE_PAST_END")


async def test_nothing_found_says_that_everything_was_searched(ana):
    pointer = (await ana.store(LOG)).output.pointer
    answer = await ana.grep(pointer, "no such text")
    assert (list(answer.matches), answer.next_offset) == ([], len(LOG))


@pytest.mark.parametrize("pattern", ["(x+x+)+y", "^(a+)+$", "(a|aa)+$", "(.*a){20}b", "(a?){200}a{200}c"])
async def test_a_regex_bomb_takes_time_linear_in_the_text(ana, pattern):
    pointer = (await ana.store(("a" * 2_000 + "x" * 2_000 + "\n") * 100)).output.pointer
    began = time.monotonic()
    await ana.grep(pointer, pattern)
    assert time.monotonic() - began < 60


async def test_a_pattern_too_large_for_a_long_line_is_refused_before_it_runs(ana, refused):
    pointer = (await ana.store("a" * 12_000_000)).output.pointer
    refusal = await refused(ana.grep(pointer, "(.*a.{100}b){3}"))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["pattern"])
    assert len((await ana.grep(pointer, "a{10}")).matches) > 0


@pytest.mark.parametrize("pattern", [r"(\pL|\pN){300}", r"\pL" * 330, r"[\pL\pN\pS\pP]{150}", r"\C", r"\\\C+"])
async def test_a_pattern_that_is_slow_to_compile_or_cuts_characters_is_refused(ana, refused, pattern):
    pointer = (await ana.store("é\n" * 10_000)).output.pointer
    refusal = await refused(ana.grep(pointer, pattern))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["pattern"])


def test_no_pattern_is_kept_once_its_search_is_over():
    engine: Any = re2
    for number in range(3):
        Scanner(Query(f"a{number}"))
    assert engine._Regexp._make.cache_info().currsize == 0


def test_the_last_line_may_end_in_a_carriage_return_alone():
    intake = Intake(10**9)
    chunks = [*intake.feed(b"other\nwanted\r"), *intake.finish()]
    scanner = Scanner(Query("^wanted$"))
    scanner.begin(chunks[0].place)
    scanner.feed(chunks)
    scanner.finish()
    assert [(m.line.number, m.line.text) for m in scanner.matches] == [(2, "wanted")]


async def test_one_users_slow_searches_keep_nobody_else_waiting_though_they_hang_up(memory, ana, monkeypatch):
    pointer = (await ana.store(LOG)).output.pointer
    theirs = (await memory.user("ben").store(LOG)).output.pointer
    begun, over = threading.Semaphore(0), threading.Event()
    searched = outputs_module._feed

    def feed(scanner, opener, record, *rest):
        if record.pointer == pointer:
            begun.release()
            assert over.wait(60)
        return searched(scanner, opener, record, *rest)

    monkeypatch.setattr(outputs_module, "_feed", feed)
    slow = [asyncio.create_task(ana.grep(pointer, "ERROR")) for _ in range(3)]
    assert await asyncio.to_thread(begun.acquire, timeout=20)
    for task in slow:
        task.cancel()
    again = asyncio.create_task(ana.grep(pointer, "ERROR"))
    assert len((await memory.user("ben").grep(theirs, "ERROR")).matches) == 20
    assert not begun.acquire(blocking=False)
    over.set()
    assert len((await again).matches) == 20


HOSTILE = {
    "a counted gap": "a.{200}b.{200}!",
    "gaps in gaps": "(.{0,100}a){1,9}!",
    "nested counts": "(((.{1,9}a){1,9}b){1,9})!",
    "a long gap": "a.{900}!",
    "two classes": "(?:\\x{100}|a).{500}!",
    "a line's end": "\\A[ab]*a[ab]{500}!",
    "a line again for every match": "a(?:[ab]*a[ab]{100}!)|a",
}
ONE_LINE = random.Random(7).randbytes(3_000_000).translate(bytes(b"ab"[byte % 2] for byte in range(256))).decode()
MANY_LINES = "\n".join(ONE_LINE[start : start + 200] for start in range(0, 2_000_000, 200))


@pytest.mark.timing
@pytest.mark.parametrize("text", [ONE_LINE, MANY_LINES], ids=["one line", "many lines"])
@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_pattern_takes_bounded_work_of_one_call_or_is_refused(ana, capfd, text, pattern):
    pointer = (await ana.store(text)).output.pointer
    for attempt in attempts_within(8):  # of the server too, which is in this process
        try:
            with attempt:
                answer = await ana.grep(pointer, pattern)
            assert answer.next_offset > 0
        except aio.AioRpcError as error:
            assert error.code() is grpc.StatusCode.INVALID_ARGUMENT  # noqa: PT017 - either of both is right
            assert "too large for a line of" in (error.details() or "")  # noqa: PT017
    assert "out of memory" not in "".join(capfd.readouterr())


async def test_matches_of_a_line_that_takes_long_are_answered_on_several_pages(ana, monkeypatch):
    pointer = (await ana.store(ONE_LINE[:20_000])).output.pointer
    wanted = await everything(ana, pointer, "ab+")
    monkeypatch.setattr(grep, "_MAX_SECONDS", 0.0)
    first = await ana.grep(pointer, "ab+", context_lines=1)
    assert (len(first.matches), first.next_offset < 1_000) == (1, True)
    found = await everything(ana, pointer, "ab+")
    assert len(found) == len(wanted) > 20
    assert [one.size_chars for one in found if ONE_LINE[one.offset] != "a"] == []


@pytest.mark.slow
async def test_of_many_searches_of_one_user_a_few_wait_and_the_others_are_refused_at_once(memory, ana):
    pointer = (await ana.store(MANY_LINES)).output.pointer
    theirs = (await memory.user("ben").store(LOG)).output.pointer
    asked = [asyncio.create_task(ana.grep(pointer, HOSTILE["a long gap"])) for _ in range(20)]
    assert len(await everything(memory.user("ben"), theirs, "ERROR")) == 20
    done = await asyncio.gather(*asked, return_exceptions=True)
    refusals = [refusal_of(one) for one in done if isinstance(one, aio.AioRpcError)]
    assert len(done) - len(refusals) == 4
    assert {(one.code, one.reason) for one in refusals} == {(grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_CALLS")}
    assert len((await ana.grep(pointer, "a", max_matches=1)).matches) == 1


TEXT = st.text(alphabet="ab\n\r x🜛é", max_size=60)
PATTERNS = ["a", "^a", "b$", "a.*b", "^$", "x?", "🜛+", "[^a]", "a|b", "\\s", "^.é", "(?:ab)+"]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(pieces=st.lists(TEXT, min_size=1, max_size=8), times=st.integers(1, 300), pattern=st.sampled_from(PATTERNS))
def test_any_text_is_searched_as_line_by_line(pieces, times, pattern):
    text = "".join(pieces) * times
    intake = Intake(10**9)
    chunks = [*intake.feed(text.encode()), *intake.finish()]
    size = max(1, len(chunks) // 3)
    rest = [chunks[start : start + size] for start in range(0, len(chunks), size)]
    found, offset = [], 0
    while True:
        scanner = Scanner(Query(pattern, offset=offset, max_matches=40, context_lines=1))
        for number, some in enumerate(rest):
            if not number:
                scanner.begin(some[0].place)
            scanner.feed(some)
        scanner.finish()
        found += [(m.line.number, m.offset, m.size_chars, m.line.text) for m in scanner.matches if not m.line.cut]
        assert scanner.next_offset > offset or not text
        offset = scanner.next_offset
        if not scanner.full:
            break
    wanted = plain(text, pattern)
    assert found == [match for match in wanted if len(match[3]) <= 500]
    assert offset == len(text)


def test_a_search_that_begins_in_the_middle_knows_its_line():
    text = "".join(f"{number}\n" for number in range(40_000))
    intake = Intake(10**9)
    chunks: list[Chunk] = [*intake.feed(text.encode()), *intake.finish()]
    scanner = Scanner(Query("^20000$", offset=chunks[1].place.first_char))
    scanner.begin(chunks[1].place)
    scanner.feed(chunks[1:])
    scanner.finish()
    assert [(m.line.number, m.line.text) for m in scanner.matches] == [(20_001, "20000")]
