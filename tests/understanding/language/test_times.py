"""Times as people say them: their values, and which of them cannot be compared."""

from __future__ import annotations

import pytest
from phylactery_understanding.language.text import tokenize
from phylactery_understanding.language.times import times_of, unread_time

from tests.support.cases import each_case


@each_case(
    ("text", "hour", "minutes"),
    [
        ("at half past nine", 9, 30),
        ("at quarter past 3", 3, 15),
        ("a quarter to 9 tonight", 8, 45),
        ("at ten to one", 12, 50),
        ("at ten past 4", 4, 10),
        ("twenty minutes past 4", 4, 20),
        ("at half twelve", 12, 30),
        ("a las seis menos cuarto", 5, 45),
        ("a la una menos diez", 12, 50),
        ("a las 7 y media", 7, 30),
        ("a las nueve y cuarto", 9, 15),
    ],
)
def test_minutes_are_said_before_and_behind_the_hour(text: str, hour: int, minutes: int) -> None:
    assert [one[1:3] for one in times_of(text).features if one[0] == "hour"] == [(hour, minutes)]


@pytest.mark.parametrize("text", ["from ten to twelve", "from 10 to 12"])
def test_a_range_is_no_minutes(text: str) -> None:
    assert {one[1:3] for one in times_of(text).features} == {(10, 0), (12, 0)}


@pytest.mark.parametrize(
    ("text", "feature"),
    [
        ("tomorow", ("day", 1)),
        ("tommorrow", ("day", 1)),
        ("mñana", ("day", 1)),
        ("wensday", ("weekday", 2)),
        ("thrusday", ("weekday", 3)),
        ("vierns", ("weekday", 4)),
    ],
)
def test_a_slip_of_the_finger_is_the_day_it_means(text: str, feature: tuple[str, int]) -> None:
    assert times_of(text).features == {feature}


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("call Sam this weekend", "this weekend"),
        ("pagar el gas este finde", "este finde"),
        ("pagar el gas el mes que viene", "el mes"),
        ("pay next month", "next month"),
        ("pagar pasado a las 9", "pasado"),
        ("or 6 to call Sam", "or 6"),
        ("o 6 llamar a Samuel", "o 6"),
    ],
)
def test_a_time_that_cannot_be_compared_is_told(text: str, unread: str) -> None:
    assert unread_time(tokenize(text)) == unread


@pytest.mark.parametrize("text", ["", "pay the rent", "pasado mañana", "the month report", "el mes pasado", "a or b"])
def test_what_is_no_time_is_not(text: str) -> None:
    assert unread_time(tokenize(text)) == ""
