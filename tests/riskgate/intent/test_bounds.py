"""Stored pieces stay small for any input and report what was omitted; omitted values count as never seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent.facts import MAX_LEAVES, task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.packing import packed
from phylactery_riskgate.domain.intent.reading import MAX_VALUES, read_result, read_words
from phylactery_riskgate.domain.intent.words import MAX_WORDS
from phylactery_riskgate.domain.model import BoundCall

from tests.riskgate.intent.test_facts import DELETE, FILES, LISTING, READ, SEND, facts, result
from tests.support.cases import each_case

SIZE = 100_000
HOSTILE = {
    name: (text * (SIZE // len(text) + 1))[:SIZE]
    for name, text in {
        "words": "a ",
        "quotes": "'",
        "opened quotes": "' a",
        "tags": "<a>",
        "fences": "```",
        "citations": "on " + "x" * 190 + "\n",
        "dots": "1.",
        "addresses": "a@",
        "numbers": "123 ",
        "verbs": "send ",
        "nearly asked": "send " + "a " * 15,
        "days": "may 1 ",
        "orders": "the largest ",
        "accents": "é",
        "percents": "%41",
        "encoded": "QUFB",
        "links": "http://a ",
        "groups": "gb12 ",
    }.items()
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_to_its_end_and_kept_small(name: str) -> None:
    text = HOSTILE[name]
    piece = read_words(text)
    assert len(piece["t"]) <= MAX_WORDS
    reading = read_result(None, "web", "c", {"q": text}, text * 10, is_text=True, failed=False)
    # Prints of every three tokens that follow one another are kept of all of it.
    assert len(packed(reading.piece)[0]) < 14 * SIZE
    bound = BoundCall(SEND.name, "", {"to": [text], "body": text}, "", "")
    assert task_facts(TaskIndex([piece, reading.piece]), SEND, bound).worst in range(4)


def test_what_is_left_out_counts_as_never_seen() -> None:
    items = [{"id": f"f{number}", "name": f"file {number}"} for number in range(3 * MAX_VALUES)]
    reading = read_result(FILES, "files", "c", {}, items, is_text=False, failed=False)
    assert reading.cut
    assert reading.values == len(reading.piece["v"]) == MAX_VALUES
    index = TaskIndex([read_words("Delete that file"), reading.piece])
    tool = replace(NO_TOOL, name="delete", controls=("/id",))
    seen, unseen = (
        task_facts(index, tool, BoundCall("delete", "", {"id": one}, "", "")) for one in ("f5", items[-1]["id"])
    )
    assert (seen.worst, unseen.worst) == (1, 3)


def test_what_is_too_deep_is_left_out() -> None:
    deep: object = "eve@evil.example"
    for _ in range(60):
        deep = [deep]
    reading = read_result(READ, "web", "c", {}, deep, is_text=False, failed=False)
    assert reading.cut
    assert reading.piece["p"] == {}


def test_a_whole_small_result_is_not_cut() -> None:
    reading = read_result(FILES, "files", "c", {}, LISTING, is_text=False, failed=False)
    assert not reading.cut
    assert reading.values == sum(map(len, LISTING))


def test_a_piece_holds_no_text() -> None:
    text = "The quick brown fox jumps over the lazy dog near eve@evil.example"
    assert b"fox" not in packed(result(READ, text))[0]
    assert b"evil" not in packed(result(READ, text))[0]


def test_more_values_than_are_looked_at_are_foreign() -> None:
    words = "Send an email to ana@acme.es"
    assert facts(words, SEND, {"to": ["ana@acme.es"] * (MAX_LEAVES - 1)}).worst == 0
    assert facts(words, SEND, {"to": ["ana@acme.es"] * (MAX_LEAVES + 1)}).worst == 3


@each_case("size", ["nan", "NaN", "sNaN", "inf", "-Infinity", "1e999999", "0x1f", "", None, True])
def test_what_is_no_number_can_stand_in_a_field_of_numbers(size: object) -> None:
    files = result(FILES, [*LISTING, {"id": "f9", "name": "trap", "size": size}])
    assert facts("Delete the largest file", DELETE, {"id": "f9"}, files).worst in range(4)
