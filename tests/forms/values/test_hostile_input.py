"""Every type on hostile messages: bounded time, no exception, nothing made up, no value in an error."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phylactery_forms.values import TYPES, Context, Problem, ValueType, extract, shown, validate, value_type

from tests.support.cases import each_case
from tests.support.effort import assert_within, attempts_within

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Madrid"))
CONTEXTS = (Context("es", NOW), Context("en", NOW, "US"))
OPTIONS = {"choice": {"choices": ["red", "blue"]}, "pattern": {"pattern": "(a+)+b"}}
ALL = [value_type(name, OPTIONS.get(name)) for name in TYPES]
SECONDS = 2.0
UNITS = [
    "a", "1", "1.", "1 ", "@", "a@", "a@b.", "1/", "1/2 ", "y ", "uno y ", "veinte ", "mil ", "el lunes ", "de mayo ",
    "a las ", "http://", "www.", "(", "+34 ", "-", "😀", "\x00", "\u202e", "\u200b", "é", "e\u0301", "\n", "½", "€",
    "calle ", "me llamo ", "arroba ", "punto ", "in two days ", "1-", "a.", "ﷺ", "١", "three and ",
]  # fmt: skip


@pytest.mark.timing
@pytest.mark.parametrize("of", ALL, ids=TYPES)
def test_a_hundred_thousand_characters_are_refused_at_once(of: ValueType):
    for unit in UNITS:
        text = (unit * 100_000)[:100_000]
        for attempt in attempts_within(SECONDS):
            with attempt:
                assert isinstance(extract(of, text, CONTEXTS[0]), Problem)
                assert isinstance(validate(of, text, CONTEXTS[0]), Problem)


@pytest.mark.timing
@pytest.mark.parametrize("of", ALL, ids=TYPES)
def test_the_longest_message_is_searched_in_bounded_time(of: ValueType):
    for unit in UNITS:
        text = (unit * 4_000)[:4_000]
        assert_within(SECONDS, lambda text=text: extract(of, text, CONTEXTS[0]))


@each_case("of", [one for one in ALL if one.name != "text"], ids=[one for one in TYPES if one != "text"])
@each_case("text", ["", " ", "😀🎉", "\x00", "\u202e\u200b", "\u0301", "…", "﷽", "\ud800"])
def test_a_message_without_words_gives_no_value(of: ValueType, text: str):
    assert extract(of, text, CONTEXTS[0]) in ([], Problem("not_a_number"))


@given(text=st.text(max_size=60))
def test_a_value_that_is_found_lies_in_the_message_and_validates_to_itself(text: str):
    for of in ALL:
        for context in CONTEXTS:
            found = extract(of, text, context)
            for one in [] if isinstance(found, Problem) else found:
                assert 0 <= one.start <= one.end <= len(text)
                canonical = validate(of, one.value, context)
                if isinstance(canonical, str):
                    assert validate(of, canonical, context) == canonical
                    assert shown(of, canonical, context.language)


@given(text=st.lists(st.sampled_from([*UNITS, "5", "pm", "lunes", "ana", "example.com", "12", "euros"]), max_size=12))
def test_no_mixture_of_pieces_of_values_breaks_a_reader(text: list[str]):
    for of in ALL:
        for context in CONTEXTS:
            extract(of, "".join(text), context)
            validate(of, " ".join(text), context)
