"""Times said relative to another one."""

from __future__ import annotations

from datetime import datetime, timedelta

from phylactery_agent.timeparse.phrases import is_time
from phylactery_agent.timeparse.shifts import exact_time, shift_in

from tests.support.cases import each_case


@each_case(
    ("text", "minutes"),
    [
        ("an hour earlier", -60),
        ("one hour later please", 60),
        ("hmm make that half an hour later", 30),
        ("no, two hours and a half earlier", -150),
        ("bring it forward by 15 minutes", -15),
        ("snooze it for ten minutes", 10),
        ("a day later", 24 * 60),
        ("una hora antes", -60),
        ("uy, mejor una hora antes", -60),
        ("media hora más tarde", 30),
        ("hora y media", None),
        ("una hora y media después porfa", 90),
        ("adelántalo veinte minutos", -20),
        ("aplázalo dos días", 2 * 24 * 60),
    ],
)
def test_a_message_that_only_moves_a_time_says_how_far(text, minutes):
    assert shift_in(text) == (None if minutes is None else timedelta(minutes=minutes))


@each_case(
    "text",
    [
        "an hour",
        "in an hour",
        "an hour earlier I was asleep",
        "call Ana an hour earlier",
        "he came an hour later",
        "dentro de una hora",
        "llegó una hora antes",
        "",
        "earlier",
    ],
)
def test_anything_more_or_less_moves_nothing(text):
    assert shift_in(text) is None


def test_an_exact_time_is_one_that_reminders_read():
    assert exact_time(datetime(2027, 3, 1, 8, 5)) == "2027-03-01 08:05"  # noqa: DTZ001 - a local time
    assert is_time(exact_time(datetime(2027, 3, 1, 8, 5)))  # noqa: DTZ001 - a local time
