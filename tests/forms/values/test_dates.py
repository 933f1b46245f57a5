"""Dates and times of day."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from phylactery_forms.values import Context, Problem, extract, shown, validate, value_type

from tests.support.cases import each_case

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=ZoneInfo("Europe/Madrid"))  # a Monday
ES = Context("es", NOW)
EN = Context("en", NOW, "US")


def values(name: str, text: str, context: Context = ES, **options) -> list[str] | str:
    found = extract(value_type(name, options), text, context)
    return found.code if isinstance(found, Problem) else [one.value for one in found]


@each_case(
    ("text", "context", "value"),
    [
        ("el viernes", ES, "2026-11-27"),
        ("mañana por la tarde", ES, "2026-11-24"),
        ("pasado mañana", ES, "2026-11-25"),
        ("24/11/2026", ES, "2026-11-24"),
        ("2026-11-24", ES, "2026-11-24"),
        ("24.11.26", ES, "2026-11-24"),
        ("el 15", ES, "2026-12-15"),
        ("el quince de diciembre", ES, "2026-12-15"),
        ("nací el 3 de mayo de 1990", ES, "1990-05-03"),
        ("3-7-71", ES, "1971-07-03"),
        ("uno de enero de dos mil treinta", ES, "2030-01-01"),
        ("dentro de dos semanas", ES, "2026-12-07"),
        ("hace tres días", ES, "2026-11-20"),
        ("viernes 27 de noviembre", ES, "2026-11-27"),
        ("el martes de la semana que viene", ES, "2026-12-01"),
        ("domingo pasado", ES, "2026-11-22"),
        ("Nov 27th, 2026", EN, "2026-11-27"),
        ("3/4/2026", EN, "2026-03-04"),
        ("3/4/2026", ES, "2026-04-03"),
        ("31/12/2026", EN, "2026-12-31"),
        ("two days ago", EN, "2026-11-21"),
        ("the twenty first", EN, "2026-12-21"),
        ("two weeks before christmas", EN, "2026-12-11"),
        ("the first monday of december", EN, "2026-12-07"),
        ("tomorrow", ES, "2026-11-24"),
        ("el viernes", EN, "2026-11-27"),
    ],
)
def test_a_date_is_read_in_both_languages(text: str, context: Context, value: str):
    assert values("date", text, context) == [value]


def test_a_field_for_the_past_reads_the_nearest_day_before():
    assert values("date", "el 15", when="past") == ["2026-11-15"]
    assert values("date", "3 de diciembre", when="past") == ["2025-12-03"]
    assert values("date", "el viernes", when="past") == ["2026-11-20"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("31/02/2026", "no_such_day"),
        ("lunes 27 de noviembre", "weekday_differs"),
        ("la semana que viene", "not_one_day"),
        ("cuanto antes", "not_one_day"),
    ],
)
def test_what_is_no_single_day_asks(text: str, code: str):
    assert values("date", text) == code


@pytest.mark.parametrize("text", ["por la mañana", "the second option", "5.5", "612345678", "no sé", ""])
def test_what_only_looks_like_a_date_is_none(text: str):
    assert values("date", text, EN if "the" in text else ES) == []


def test_a_date_is_validated_against_today_in_the_persons_zone():
    future, past = value_type("date", {"when": "future"}), value_type("date", {"when": "past"})
    assert validate(future, "2026-11-23", ES) == validate(past, "2026-11-23", ES) == "2026-11-23"
    codes = [
        one.code
        for of, value in ((future, "2026-11-22"), (past, "2026-11-24"), (past, "2026-02-30"), (past, "mañana"))
        if isinstance(one := validate(of, value, ES), Problem)
    ]
    assert codes == ["date_in_past", "date_in_future", "no_such_day", "not_a_date"]


def test_a_date_is_shown_with_its_weekday():
    assert shown(value_type("date"), "2026-11-27", "es") == "viernes 27 de noviembre de 2026"
    assert shown(value_type("date"), "2026-11-27", "en") == "Friday, 27 November 2026"


@each_case(
    ("text", "value"),
    [
        ("a las 5 de la tarde", "17:00"),
        ("17:30", "17:30"),
        ("a las diez y media de la mañana", "10:30"),
        ("las ocho menos cuarto de la noche", "19:45"),
        ("las dos de la madrugada", "02:00"),
        ("mediodía", "12:00"),
        ("a medianoche", "00:00"),
        ("15h", "15:00"),
        ("5pm", "17:00"),
        ("5:15 p.m.", "17:15"),
        ("half past five pm", "17:30"),
        ("quarter to 6 in the evening", "17:45"),
        ("en 20 minutos", "10:20"),
    ],
)
def test_a_time_of_day_is_read(text: str, value: str):
    assert values("time", text) == [value]


def test_five_oclock_asks_unless_the_bounds_decide():
    assert values("time", "a las 5") == "ambiguous_time"
    assert values("time", "a las 5", earliest="09:00", latest="18:00") == ["17:00"]
    assert values("time", "9", earliest="09:00", latest="18:00") == ["09:00"]


def test_a_part_of_the_day_is_no_time():
    assert values("time", "por la tarde") == "not_one_time"


@each_case(
    "text",
    [
        "quiero una cita",
        "necesito una cita, por favor",
        "pon una reserva",
        "¿me das una hora?",
        "quiero una cita una tarde de estas",
        "una noche",
        "una mañana",
        "ponme una cita mejor",
    ],
)
def test_an_article_is_no_hour(text: str):
    assert values("time", text, earliest="08:00", latest="20:00") == []


@pytest.mark.parametrize(
    "text",
    ["una", "una, por favor", "la una", "quiero una cita a la una", "una en punto", "una de la tarde", "pon la una"],
)
def test_one_is_an_hour(text: str):
    assert values("time", text, earliest="08:00", latest="20:00") == ["13:00"]


def test_a_time_is_validated():
    of = value_type("time", {"earliest": "09:00", "latest": "18:00"})
    assert validate(of, "9:05", ES) == "09:05"
    codes = [one.code for v in ("08:00", "19:00", "25:00") if isinstance(one := validate(of, v, ES), Problem)]
    assert codes == ["too_early", "too_late", "not_a_time"]
    assert shown(of, "17:30", "en") == "5:30 pm"
