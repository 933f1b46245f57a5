"""What a tool lists is indexed once per result: a call costs its width, however much of it matches a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.domain.intent.facts import IndexReader, task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.reading import Piece, read_words
from phylactery_riskgate.domain.model import BoundCall
from phylactery_understanding.calls.proposal import in_item
from phylactery_understanding.language.text import tokenize

from tests.riskgate.intent.test_things import CANCEL, CANCEL_LINE, ORDERS, SHIPMENTS, seen
from tests.support.effort import assert_within

WORDS = "Cancel the second order of Ana with the blue kettle please"
_WIDTH, _RESULTS = 200, 20


def _wide(order: Callable[[int], Any]) -> Any:
    return {"orders": [order(at) for at in range(_WIDTH)]}


HOSTILE: dict[str, Callable[[int], Any]] = {
    "one id for all": lambda at: {"id": "r", "customer": f"Ana {at}", "items": [{"sku": "r", "name": "blue kettle"}]},
    "one id in other spellings": lambda at: {"id": "r" + "," * at, "customer": "Ana"},
    "the words of the user": lambda at: {"id": f"o-{at}", "customer": WORDS, "items": [{"sku": "r", "name": WORDS}]},
    "one part in all": lambda at: {"id": f"o-{at}", "items": [{"sku": "r", "name": "r"}] * 3},
    "days": lambda at: {"id": "r" + "." * at, "customer": f"monday at {at % 12} pm, 3 may 2026"},
    "one word, very long": lambda at: {"id": "r", "customer": "x" * 239, "items": [{"sku": "r", "name": "ﷺ" * 13}]},
    "marks": lambda at: {"id": "r", "items": [{"sku": "r", "name": "'\"“«" * 50}]},
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("words", [WORDS, f"{WORDS} on monday at 5"], ids=["plain", "timed"])
def test_however_much_of_what_was_listed_matches_a_call_it_takes_milliseconds(kind: str, words: str) -> None:
    listed = seen(ORDERS, _wide(HOSTILE[kind]))
    index = TaskIndex([read_words(words, "2026-11-23"), *[listed] * _RESULTS], ["t"])
    bound = BoundCall(CANCEL.name, "v", {"order_id": "r"}, "", "")
    task_facts(index, CANCEL, bound)
    assert_within(0.5, lambda: [task_facts(index, CANCEL, bound) for _ in range(10)])


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_first_call_after_them_takes_no_more_than_reading_each_of_them_once(kind: str) -> None:
    listed = seen(ORDERS, _wide(HOSTILE[kind]))
    bound = BoundCall(CANCEL.name, "v", {"order_id": "r"}, "", "")

    def first() -> None:
        task_facts(TaskIndex([read_words(WORDS, "2026-11-23"), *[listed] * 4], ["t"]), CANCEL, bound)

    assert_within(2.0, first)


def test_what_is_not_indexed_yet_is_no_work_for_the_event_loop() -> None:
    listed = seen(ORDERS, _wide(HOSTILE["one id for all"]))
    index = TaskIndex([read_words(WORDS, "2026-11-23"), listed], ["t"])
    reader, bound = IndexReader(index), BoundCall(CANCEL.name, "v", {"order_id": "r"}, "", "")
    assert reader.work >= index.size
    reader(CANCEL, bound)
    assert reader.work == 0
    more = IndexReader(index.with_piece(listed))
    assert more.work > 0
    more(CANCEL, bound)
    assert more.work == 0  # the first result was not indexed once more


# ---- the same facts whenever they are asked for ----------------------------------------------------------------------

_texts = st.sampled_from(["r", "Ana", "Bob Stone", "blue kettle", "kettle", "monday at 5", "2026-05-03", "eur", "'r,"])
_parts = st.lists(st.fixed_dictionaries({"sku": _texts, "name": _texts}), max_size=3)
_orders = st.lists(
    st.fixed_dictionaries({}, optional={"id": _texts | st.integers(0, 9), "customer": _texts, "items": _parts}),
    max_size=5,
).map(lambda found: seen(ORDERS, {"orders": found}))
_shipments = st.lists(
    st.fixed_dictionaries({"id": _texts, "parcels": st.lists(st.fixed_dictionaries({"lines": st.lists(
        st.fixed_dictionaries({"id": _texts, "name": _texts}), max_size=3)}), max_size=2)}), max_size=3,
).map(lambda found: seen(SHIPMENTS, found))  # fmt: skip
_said = st.builds(
    lambda verb, what, tail: f"Cancel the {verb} of {what} {tail}",
    st.sampled_from(["order", "second order", "last line", "line", "r order"]), _texts,
    st.sampled_from(["", "please", "on monday", "called kettle", "with the 'blue kettle'"]),
)  # fmt: skip


@given(_said, st.lists(_orders | _shipments, min_size=1, max_size=3), _texts | st.integers(0, 9))
def test_an_index_that_grew_between_calls_gives_the_facts_of_one_built_at_once(
    said: str, pieces: list[Piece], value: Any
) -> None:
    words = read_words(said, "2026-11-23")
    calls = [
        (CANCEL, BoundCall(CANCEL.name, "v", {"order_id": value}, "", "")),
        (CANCEL_LINE, BoundCall(CANCEL_LINE.name, "v", {"line_id": [value, "r"]}, "", "")),
    ]
    grown = TaskIndex([words], ["t"])
    for piece in pieces:
        grown = grown.with_piece(piece)
        for tool, bound in calls:
            task_facts(grown, tool, bound)
    for tool, bound in calls:
        assert task_facts(grown, tool, bound) == task_facts(TaskIndex([words, *pieces], ["t"]), tool, bound)


@given(_orders | _shipments, st.sampled_from(["r", "ana", "kettle", "kettles", "'blue kettle'", "5", "bob's", "'!'"]))
def test_a_listing_finds_by_a_word_the_items_that_have_it(piece: Piece, word: str) -> None:
    [result] = TaskIndex([read_words("x", "2026-11-23"), piece], ["t"]).results
    [token] = tokenize(word)
    listing = result.listing
    assert set(listing.with_word(token)) == {one for one in listing.items if in_item(token, one)}
