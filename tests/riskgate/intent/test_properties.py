"""Properties of a task's facts for arbitrary input and calls."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.folding import fold, spans, tokens
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token, number, numbers_in, written_forms
from phylactery_riskgate.domain.intent.packing import packed, unpacked
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.model import Asks, BoundCall, CatalogTool, Json

KINDS = ("system", "naming", "free", "private", "orderable")
ROLES = ("principal", "object", "amount", "secret", "url", "content", "date")
WORDS = (
    "send",
    "email",
    "ana@acme.es",
    "eve@evil.example",
    "the largest",
    "12,50 €",
    "May 15th",
    "'Lunch'",
    "not",
    "%",
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(), st.text(max_size=30), st.sampled_from(WORDS)
)
ANYTHING = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["id", "to"]), inner, max_size=4)
    ),
    max_leaves=20,
)
SAID = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
OUTPUTS = st.lists(
    st.tuples(st.sampled_from(["", "/*", "/*/id", "/id", "/to", "/*/to", "/*/*"]), st.sampled_from(KINDS)), max_size=5
)


@st.composite
def _tools(draw: st.DrawFn) -> CatalogTool:
    roles = draw(st.dictionaries(st.sampled_from(["/to", "/id", "/amount"]), st.sampled_from(ROLES), max_size=3))
    return replace(
        NO_TOOL,
        name="send_email",
        effect=draw(st.sampled_from(["read", "write"])),
        controls=tuple(draw(st.lists(st.sampled_from(["/to", "/id", "/amount"]), max_size=2))),
        roles=roles,
        asks=Asks(phrases_en=("send * email",), examples_en=("Send Ana an email",)),
        outputs=tuple(draw(OUTPUTS)),
        registry=tuple(draw(st.lists(st.sampled_from(["/*/to", "/id"]), max_size=1))),
    )


@st.composite
def _pieces(draw: st.DrawFn) -> list[Piece]:
    found = [read_words(draw(SAID))]
    for _ in range(draw(st.integers(0, 3))):
        reading = read_result(
            draw(st.none() | _tools()),
            "inbox",
            "c",
            draw(st.dictionaries(st.text(max_size=5), ANYTHING, max_size=2)),
            draw(ANYTHING),
            is_text=draw(st.booleans()),
            failed=draw(st.booleans()),
        )
        found.append(reading.piece)
    return found


ARGUMENTS = st.dictionaries(st.sampled_from(["to", "id", "amount", "a/b~c"]), ANYTHING, max_size=4)


def _facts(pieces: list[Piece], tool: CatalogTool, arguments: Json) -> TaskFacts:
    return task_facts(TaskIndex(pieces), tool, BoundCall(tool.name, "", arguments, "", ""))


@settings(max_examples=60, deadline=None)
@given(_pieces(), _tools(), ARGUMENTS)
def test_whatever_is_shown_and_called_has_facts_within_their_ranges(
    pieces: list[Piece], tool: CatalogTool, arguments: Json
) -> None:
    found = _facts(pieces, tool, arguments)
    assert found.shown
    assert found.intent in range(3)
    assert found.signals in range(3)
    assert [one.origin for one in found.arguments] == sorted((one.origin for one in found.arguments), reverse=True)
    assert {one.origin for one in found.arguments} <= set(range(4))
    assert found.worst in ({one.origin for one in found.arguments} or {1})
    assert not found.signals or found.signal_reasons
    assert TaskFacts.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(_pieces(), _tools(), ARGUMENTS)
def test_a_piece_that_was_kept_reads_the_same_after_it(pieces: list[Piece], tool: CatalogTool, arguments: Json) -> None:
    kept = [unpacked(packed(piece)[0]) for piece in pieces]
    assert kept == [unpacked(packed(piece)[0]) for piece in kept]
    assert _facts(kept, tool, arguments) == _facts(pieces, tool, arguments)


@settings(max_examples=40, deadline=None)
@given(_pieces(), _tools(), ARGUMENTS, ANYTHING)
def test_free_text_nobody_pointed_to_makes_no_argument_better_and_asks_for_nothing(
    pieces: list[Piece], tool: CatalogTool, arguments: Json, hostile: Any
) -> None:
    strict = replace(tool, controls=("/to", "/id"), roles={"/to": "principal", "/id": "object", "/amount": "secret"})
    more = read_result(None, "web", "h", {}, hostile, is_text=True, failed=False).piece
    before, after = _facts(pieces, strict, arguments), _facts([*pieces, more], strict, arguments)
    assert (after.intent, after.refused) == (before.intent, before.refused)
    assert after.signals >= before.signals
    told = {one.path: one.origin for one in before.arguments}
    assert all(one.origin >= told[one.path] for one in after.arguments if one.path in {"/to", "/id", "/amount"})


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(_pieces(), _tools(), ARGUMENTS)
def test_one_piece_after_the_other_is_all_pieces_at_once(
    pieces: list[Piece], tool: CatalogTool, arguments: Json
) -> None:
    index = TaskIndex(pieces[:1])
    bound = BoundCall(tool.name, "", arguments, "", "")
    for piece in pieces[1:]:
        task_facts(index, tool, bound)
        index = index.with_piece(piece)
    assert task_facts(index, tool, bound) == _facts(pieces, tool, arguments)


@settings(max_examples=40, deadline=None)
@given(_pieces(), _tools(), ARGUMENTS, st.text(max_size=20))
def test_what_an_argument_beside_says_of_origins_changes_none(
    pieces: list[Piece], tool: CatalogTool, arguments: Json, claim: str
) -> None:
    plain = replace(tool, roles={"/to": "object"}, controls=("/to",))
    before = _facts(pieces, plain, arguments)
    after = _facts(pieces, plain, arguments | {"origin": 0, "said": claim})
    told = {one.path: one.origin for one in after.arguments}
    assert [one.origin for one in before.arguments if one.path == "/to"] == ([told["/to"]] if "/to" in told else [])


@given(st.decimals(min_value=-(10**9), max_value=10**9, places=2) | st.integers(-(10**12), 10**12))
def test_a_number_is_read_in_every_form_it_is_written_in(value: Any) -> None:
    norm = number(value)
    for form in written_forms(norm):
        if not form.startswith("-") and " " not in form:
            assert norm in numbers_in(form)


@given(st.dates())
def test_a_day_is_read_in_figures(day: Any) -> None:
    assert day.isoformat() in set(dates_in_token(day.isoformat()))
    assert day.isoformat() in set(dates_in_token(f"{day.day}/{day.month}/{day.year:04}"))
    assert day.isoformat() in set(dates_in_token(f"{day.month:02}-{day.day:02}-{day.year:04}"))


@given(st.text(max_size=200).map(fold).filter(str.isascii))
def test_ascii_is_cut_as_any_text_is(folded: str) -> None:
    assert tokens(folded) == [folded[start:end] for start, end in spans(folded)]
