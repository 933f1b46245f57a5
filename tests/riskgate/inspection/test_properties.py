"""Inspection of arbitrary text: linear time, deterministic, and independent of what surrounds a finding."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from phylactery_chassis.inspection import Finding, Wanted, inspect, redact, replaced
from phylactery_chassis.inspection.candidates import Sight
from phylactery_chassis.inspection.text import readings

from tests.support.effort import assert_linear, assert_within
from tests.support.riskgate import inspection as made
from tests.support.riskgate.inspection import ALL, PROSE, found

HOSTILE = ["4", "a", "=", "@", "a@", "a.", "a@b.co ", "612345678 ", "4111 1111 1111 1111 ", "4111 ", "1 2 3 4 "]
HOSTILE += ["password=", 'password="a ', "password: a b c ", "-----BEGIN PRIVATE KEY-----", "ES12 ", "eyJaaaaaaaaaa."]
HOSTILE += [
    "4\u200b",
    "密码是",
    "-",
    "a://b:c",
    "1.2.3.4 ",
    "a:b:",
    "+34612345678 ",
    "sk-aaaaaaaaaaaaaaaaaaaaaaaa ",
    "1.",
]
HOSTILE += [
    "authorization: bearer ",
    "-----BEGIN PRIVATE KEY-----AAAA",
    "12345678Z ",
    "👩‍👩‍👧",
    "password secret token ",
    "«",
    "the password is ",
    "password of the one is the one: ",
    "my pin is 43 ",
    "a1b2c is my password ",
    "x1; as password ",
    'password="',
    "password=a;",
    "código de la ",
    "cookie: a=b; ",
    "mysql -u a ",
    "curl x ",
    "contraseña:\n",
    "4111 1111 ",
    "123-45-6789 ",
    "+34 612345678 ",
]


@pytest.mark.timing
@pytest.mark.parametrize("unit", HOSTILE)
def test_a_long_text_of_anything_takes_linear_time(unit: str):
    assert_linear(inspect, unit, 8_000, 240_000)


@pytest.mark.timing
def test_ten_thousand_characters_take_milliseconds():
    text = (" ".join(PROSE) * 3)[:9_900] + " dni 12345678Z, tarjeta 4111 1111 1111 1111"
    assert len(inspect(text)) == 2
    assert_within(0.02, lambda: inspect(text), tries=20)


TEXTS = st.text(max_size=200) | st.lists(
    st.sampled_from(
        [*PROSE, "4111 1111 1111 1111", "12345678Z", "password=", "\u200b", "«card»", " ", "-", "ana@b.es"]
    ),
    max_size=6,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_spans_lie_in_the_text_apart_from_each_other_and_the_same_every_time(text: str):
    got = inspect(text, ALL)
    assert got == inspect(text, ALL)
    at = 0
    for one in got:
        assert at <= one.start < one.end <= len(text)
        at = one.end


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_redacting_twice_changes_nothing_more(text: str):
    for wanted in (ALL, Wanted()):
        once = redact(text, wanted)
        assert not inspect(once, wanted)
        assert redact(once, wanted) == once


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PROSE), st.integers(0, 10_000), st.integers(0, 10_000))
def test_a_number_put_anywhere_between_the_words_of_clean_text_is_found(line: str, place: int, seed: int):
    words = line.split(" ")
    chooser = random.Random(seed)
    value, kind = chooser.choice(
        [(made.written_card(chooser), "card"), (chooser.choice(made.dni_forms(*made.dni(chooser))), "es_dni")]
    )
    at = place % (len(words) + 1)
    text = " ".join([*words[:at], f"({value})", *words[at:]])
    assert (kind, value) in found(text)


def test_nothing_that_inspection_hands_around_shows_what_it_holds():
    text = "card 4111 1111 1111 1111 password=hunter22 \u200b"
    objects: list[object] = [*inspect(text), *readings(text), Sight(text.encode("latin-1", "ignore"))]
    assert any(isinstance(one, Finding) for one in objects)
    for shown in [repr(one) for one in objects] + [str(one) for one in objects]:
        assert "4111" not in shown
        assert "hunter22" not in shown
    assert replaced(text, inspect(text)).count("4111") == 0
