"""Spoken times and recurring times: exact in both languages, also across clock changes."""

from __future__ import annotations

import itertools
from datetime import datetime

import pytest
from phylactery_agent.rules.expressions import expression
from phylactery_agent.timeparse.phrases import WhenError, changed_time, is_time, resolve
from phylactery_agent.timeparse.recurrence import (
    Rule,
    RuleError,
    next_after,
    occurrences,
    parse_rule,
    to_local,
    to_us,
    zone,
)
from phylactery_agent.timeparse.vocabulary import when_expression

from tests.support.cases import each_case

LIMA = zone("America/Lima")
NOW = to_us(datetime.fromisoformat("2026-11-22T10:00"), LIMA)
"""A Sunday."""


def said(text: str, **changes: object) -> tuple[str, str]:
    when = resolve(text, where=LIMA, now_us=NOW, **changes)  # type: ignore[arg-type]
    return to_local(when.due_us, LIMA).isoformat(" ", "minutes"), str(when.rule) if when.rule else ""


@each_case(
    ("text", "due"),
    [
        ("mañana a las 9 de la mañana", "2026-11-23 09:00"),
        ("MANANA A LAS 9 AM", "2026-11-23 09:00"),
        ("hoy a las 21:30", "2026-11-22 21:30"),
        ("pasado mañana", "2026-11-24 09:00"),
        ("en 20 minutos", "2026-11-22 10:20"),
        ("dentro de media hora", "2026-11-22 10:30"),
        ("en una hora y media", "2026-11-22 11:30"),
        ("en 3 días a las 8 de la mañana", "2026-11-25 08:00"),
        ("en un mes", "2026-12-22 10:00"),
        ("el lunes", "2026-11-23 09:00"),
        ("el domingo a las 9 de la mañana", "2026-11-29 09:00"),
        ("el domingo a las 11 de la mañana", "2026-11-22 11:00"),
        ("el próximo domingo a las 11 de la mañana", "2026-11-29 11:00"),
        ("el lunes que viene a las 5 de la tarde", "2026-11-23 17:00"),
        ("el 3 de marzo", "2027-03-03 09:00"),
        ("el 22 de noviembre a las 9 de la mañana", "2027-11-22 09:00"),
        ("el 29 de febrero", "2028-02-29 09:00"),
        ("el 3 de marzo de 2027 a las 7 de la mañana", "2027-03-03 07:00"),
        ("el 31", "2026-12-31 09:00"),
        ("el 3/4", "2027-04-03 09:00"),
        ("esta noche", "2026-11-22 21:00"),
        ("mañana por la tarde a las 5", "2026-11-23 17:00"),
        ("a las 9 de la mañana", "2026-11-23 09:00"),
        ("a las 11 de la mañana", "2026-11-22 11:00"),
        ("a las nueve y media de la noche", "2026-11-22 21:30"),
        ("a las 9 menos cuarto de la mañana", "2026-11-23 08:45"),
        ("al mediodía", "2026-11-22 12:00"),
        ("el martes a mediodia", "2026-11-24 12:00"),
        ("a las 20 h", "2026-11-22 20:00"),
        ("dec 24 at 6pm", "2026-12-24 18:00"),
        ("el 6 de ene a las 8 am", "2027-01-06 08:00"),
        ("in 2h", "2026-11-22 12:00"),
        ("en 1h30", "2026-11-22 11:30"),
        ("dentro de 45min", "2026-11-22 10:45"),
        ("tommorow at noon", "2026-11-23 12:00"),
        ("at quarter past 8 tonite", "2026-11-22 20:15"),
        ("tomorrow at 9am", "2026-11-23 09:00"),
        ("tomorrow at 12 am", "2026-11-23 00:00"),
        ("tomorrow at 12 pm", "2026-11-23 12:00"),
        ("tomorrow morning", "2026-11-23 09:00"),
        ("the day after tomorrow at noon", "2026-11-24 12:00"),
        ("tonight", "2026-11-22 21:00"),
        ("in an hour and a half", "2026-11-22 11:30"),
        ("in half an hour", "2026-11-22 10:30"),
        ("in two weeks", "2026-12-06 10:00"),
        ("on friday at 5 pm", "2026-11-27 17:00"),
        ("next sunday at 11 am", "2026-11-29 11:00"),
        ("at 9 in the evening tomorrow", "2026-11-23 21:00"),
        ("on March 3rd", "2027-03-03 09:00"),
        ("3 march 2027 at noon", "2027-03-03 12:00"),
        ("on the 15th", "2026-12-15 09:00"),
        ("2027-03-01 09:30", "2027-03-01 09:30"),
        ("2027-03-01T09:30:00-03:00", "2027-03-01 07:30"),
        ("2027-03-01T14:30Z", "2027-03-01 09:30"),
        ("2027-03-01", "2027-03-01 09:00"),
    ],
)
def test_a_time_is_understood_in_both_languages(text: str, due: str) -> None:
    assert said(text) == (due, "")
    assert is_time(text)


@each_case(
    ("text", "due", "rule"),
    [
        ("todos los días a las 9 de la mañana", "2026-11-23 09:00", "FREQ=DAILY"),
        ("cada día a las 11 de la mañana", "2026-11-22 11:00", "FREQ=DAILY"),
        ("cada lunes y jueves a las 9 de la mañana", "2026-11-23 09:00", "FREQ=WEEKLY;BYDAY=MO,TH"),
        ("cada domingo a las 9 de la mañana", "2026-11-29 09:00", "FREQ=WEEKLY;BYDAY=SU"),
        ("de lunes a viernes a las 8 de la mañana", "2026-11-23 08:00", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("el día 1 de cada mes a las 10 de la mañana", "2026-12-01 10:00", "FREQ=MONTHLY"),
        ("cada 2 semanas", "2026-11-23 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
        ("cada año el 3 de mayo", "2027-05-03 09:00", "FREQ=YEARLY"),
        ("every day at 9 am", "2026-11-23 09:00", "FREQ=DAILY"),
        ("every friday at 6 pm", "2026-11-27 18:00", "FREQ=WEEKLY;BYDAY=FR"),
        ("every weekday at 8:30 am", "2026-11-23 08:30", "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
        ("cada noche a las 10", "2026-11-22 22:00", "FREQ=DAILY"),
        ("todas las mañanas a las 7 y media", "2026-11-23 07:30", "FREQ=DAILY"),
        ("every evening at half past eight", "2026-11-22 20:30", "FREQ=DAILY"),
        ("every other week", "2026-11-23 09:00", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO"),
        ("every 3 months", "2026-11-23 09:00", "FREQ=MONTHLY;INTERVAL=3"),
        ("on the 1st of every month", "2026-12-01 09:00", "FREQ=MONTHLY"),
    ],
)
def test_a_repetition_is_understood_in_both_languages(text: str, due: str, rule: str) -> None:
    assert said(text) == (due, rule)


def test_a_rule_beside_the_words_repeats_them_and_two_are_refused() -> None:
    daily = parse_rule("FREQ=DAILY;COUNT=5")
    assert said("a las 9 am", rule=daily) == ("2026-11-23 09:00", "FREQ=DAILY;COUNT=5")
    assert said("2027-03-01 09:00", rule=daily) == ("2027-03-01 09:00", "FREQ=DAILY;COUNT=5")
    with pytest.raises(WhenError, match="twice"):
        said("cada lunes a las 9 am", rule=daily)


@each_case(
    ("text", "code"),
    [
        ("", "TIME_NOT_UNDERSTOOD"),
        ("ayer", "TIME_NOT_UNDERSTOOD"),
        ("mañana mañana", "TIME_NOT_UNDERSTOOD"),
        ("at 25", "TIME_NOT_UNDERSTOOD"),
        ("at 9:75", "TIME_NOT_UNDERSTOOD"),
        ("at 13 pm", "TIME_NOT_UNDERSTOOD"),
        ("el 31 de febrero", "TIME_NOT_UNDERSTOOD"),
        ("el 32", "TIME_NOT_UNDERSTOOD"),
        ("2027-02-30", "TIME_NOT_UNDERSTOOD"),
        ("2027-01-01 25:00", "TIME_NOT_UNDERSTOOD"),
        ("en 99999 semanas", "TIME_NOT_UNDERSTOOD"),
        ("en 9999 años", "TIME_NOT_UNDERSTOOD"),
        ("en 2 horas a las 9", "TIME_NOT_UNDERSTOOD"),
        ("mañana 2027-01-01", "TIME_NOT_UNDERSTOOD"),
        ("mañana a las 12 de la noche", "TIME_NOT_UNDERSTOOD"),
        ("cada 500 días", "TIME_NOT_UNDERSTOOD"),
        ("every morning", "TIME_NOT_UNDERSTOOD"),
        ("next monday at 9 am", "TIME_NOT_UNDERSTOOD"),
        ("2099-01-01", "TIME_NOT_UNDERSTOOD"),
        ("0001-01-01T00:00+14:00", "TIME_PAST"),
        ("hoy a las 9 de la mañana", "TIME_PAST"),
        ("en 0 minutos", "TIME_PAST"),
        ("esta mañana", "TIME_PAST"),
        ("2026-11-22 10:00", "TIME_PAST"),
    ],
)
def test_what_is_no_time_or_is_over_is_refused_by_name(text: str, code: str) -> None:
    with pytest.raises(WhenError) as refused:
        said(text)
    assert refused.value.code == code


def test_a_time_that_does_not_say_its_half_of_the_day_is_asked_about_unless_one_is_past(
    subtests: pytest.Subtests,
) -> None:
    """It is Sunday, ten in the morning."""
    one_left = {"at 9": "22 21:00", "a las 8 y media": "22 20:30", "hoy a las 9": "22 21:00", "at 10:00": "22 22:00"}
    for text, due in one_left.items():
        with subtests.test(text):
            assert said(text) == (f"2026-11-{due}", "")
    unsaid = ("at 11", "mañana a las 8", "tomorrow at 8:30", "every day at 9", "tomorrow at 12", "a las 2 de la noche")
    for text in unsaid:
        with subtests.test(text), pytest.raises(WhenError) as refused:
            said(text)
        assert refused.value.code == "TIME_HALF_UNSAID"


def test_a_zone_in_the_words_is_the_one_they_mean(subtests: pytest.Subtests) -> None:
    """In November New York is at UTC-5, so that there is no EDT."""
    for text, due in {
        "mañana a las 9 am hora de México": "2026-11-23 10:00",
        "tomorrow at 6 pm New York time": "2026-11-23 18:00",
        "tomorrow at 9am EST": "2026-11-23 09:00",
        "mañana a las 15:00 UTC": "2026-11-23 10:00",
        "el martes a las 10 de la mañana hora de España": "2026-11-24 04:00",
    }.items():
        with subtests.test(text):
            assert said(text) == (due, "")
    for text in ("tomorrow at 9am EDT", "in 20 minutes UTC"):
        with subtests.test(text), pytest.raises(WhenError) as refused:
            said(text)
        assert refused.value.code == "TIME_NOT_UNDERSTOOD"


def test_a_monthly_day_that_some_months_lack_is_asked_about() -> None:
    for text in ("el 31 de cada mes", "on the 29th of every month"):
        with pytest.raises(WhenError) as refused:
            said(text)
        assert refused.value.code == "DAY_NOT_IN_ALL_MONTHS"


def test_the_expressions_of_times_name_nothing_but_the_time() -> None:
    for last in (True, False):
        assert expression(when_expression(last=last)).groupindex == {"when": 1}


def test_hostile_text_is_read_in_linear_time() -> None:
    assert not is_time("a las 9 y " * 2_000)
    assert not is_time("mañana " * 3_000)


@each_case(
    "text",
    [
        "",
        "DAILY",
        "FREQ=HOURLY",
        "FREQ=DAILY;FREQ=DAILY",
        "FREQ=DAILY;BYDAY=MO",
        "FREQ=WEEKLY;BYDAY=XX",
        "FREQ=DAILY;INTERVAL=0",
        "FREQ=DAILY;INTERVAL=367",
        "FREQ=DAILY;INTERVAL=٣",
        "FREQ=DAILY;COUNT=1001",
        "FREQ=DAILY;COUNT=2;UNTIL=20300101",
        "FREQ=DAILY;UNTIL=20300230",
        "FREQ=DAILY;BYHOUR=1",
        "FREQ=DAILY;" + "X" * 300,
    ],
)
def test_a_rule_outside_the_subset_is_refused(text: str) -> None:
    with pytest.raises(RuleError):
        parse_rule(text)


def test_a_rule_has_one_spelling() -> None:
    rule = parse_rule("rrule:byday=fr,mo;freq=weekly;interval=2;until=20300101")
    assert str(rule) == "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;UNTIL=20300101"
    assert parse_rule(str(rule)) == rule


def days(rule: Rule, start: str, many: int) -> list[str]:
    found = itertools.islice(occurrences(rule, datetime.fromisoformat(start)), many)
    return [moment.isoformat(" ", "minutes") for moment in found]


def test_months_without_the_day_and_years_without_the_29th_are_skipped() -> None:
    assert days(Rule("MONTHLY"), "2027-01-31T09:00", 3) == ["2027-01-31 09:00", "2027-03-31 09:00", "2027-05-31 09:00"]
    assert days(Rule("YEARLY"), "2028-02-29T09:00", 2) == ["2028-02-29 09:00", "2032-02-29 09:00"]


def test_every_other_week_counts_weeks_from_monday() -> None:
    assert days(Rule("WEEKLY", 2, (0, 4)), "2026-11-27T09:00", 3) == [
        "2026-11-27 09:00",
        "2026-12-07 09:00",
        "2026-12-11 09:00",
    ]


def test_a_rule_ends_with_its_count_or_its_last_day() -> None:
    assert len(days(Rule("DAILY", count=3), "2026-11-27T09:00", 9)) == 3
    until = parse_rule("FREQ=DAILY;UNTIL=20261128")
    assert days(until, "2026-11-27T09:00", 9) == ["2026-11-27 09:00", "2026-11-28 09:00"]


def test_nine_oclock_stays_nine_oclock_when_the_clocks_change() -> None:
    madrid = zone("Europe/Madrid")
    start = to_us(datetime.fromisoformat("2027-03-27T09:00"), madrid)
    then = next_after("FREQ=DAILY", start, "Europe/Madrid", due_us=start, after_us=start)
    assert then.due_us == start + 23 * 3_600 * 1_000_000
    assert to_local(then.due_us, madrid).hour == 9


def test_a_time_the_clocks_skip_is_the_old_offsets_and_one_that_comes_twice_is_the_first() -> None:
    madrid, utc = zone("Europe/Madrid"), zone("UTC")
    skipped = to_us(datetime.fromisoformat("2027-03-28T02:30"), madrid)
    assert to_local(skipped, utc).isoformat() == "2027-03-28T01:30:00"
    assert to_local(skipped, madrid).isoformat() == "2027-03-28T03:30:00"
    twice = to_us(datetime.fromisoformat("2027-10-31T02:30"), madrid)
    assert to_local(twice, utc).isoformat() == "2027-10-31T00:30:00"


def test_what_comes_next_counts_what_passed() -> None:
    day = 24 * 3_600 * 1_000_000
    then = next_after("FREQ=DAILY", NOW, "America/Lima", due_us=NOW + day, after_us=NOW + 3 * day + 1)
    assert (then.due_us, then.passed) == (NOW + 4 * day, 3)
    once = next_after("", NOW, "UTC", due_us=NOW, after_us=NOW + day)
    assert (once.due_us, once.passed) == (None, 1)
    over = next_after("FREQ=DAILY;COUNT=2", NOW, "America/Lima", due_us=NOW, after_us=NOW + 9 * day)
    assert (over.due_us, over.passed) == (None, 2)


@pytest.mark.parametrize("name", ["", "Nowhere/City", "../etc/passwd", "/etc/passwd", "America", "America/Lima\x00"])
def test_a_zone_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(RuleError, match="time zone"):
        zone(name)


@each_case(
    ("old", "new", "meant"),
    [
        ("el sábado a las 8 de la noche", "a las 9 y media", "el sábado a las 9 y media de la noche"),
        ("mañana a las 9", "el viernes", "a las 9 el viernes"),
        ("el jueves", "a las 5 d la tarde", "el jueves a las 5 d la tarde"),
        ("tomorrow at 8 pm", "at 9 am", "tomorrow at 9 am"),
        ("tomorrow at 8 pm", "at 9", "tomorrow at 9 pm"),
        ("every monday at 8", "at 9", "every monday at 9"),
        ("in 20 minutes", "at 9", "at 9"),
        ("mañana a las 9", "en una hora", "en una hora"),
    ],
)
def test_a_time_is_changed_in_what_another_one_says(old: str, new: str, meant: str) -> None:
    assert changed_time(old, new) == meant
