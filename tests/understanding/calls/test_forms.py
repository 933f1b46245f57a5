"""Requests in the form of lines with one value each."""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_understanding.calls.forms import read_form
from phylactery_understanding.calls.proposal import Call, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.support.effort import attempts_within
from tests.understanding.calls.test_calls import DAY, argument

TICKET = """New ticket please
repo - booking-api
title - Double bookings when clocks change
labels - bug, p1
body - Two guests got the same slot. Both were charged."""
EVENT = """Nuevo evento
- Título: Simulacro de incendio
- Cuándo: el martes a las 11:15
- Dónde: patio central"""
BODY = "Two guests got the same slot. Both were charged."


def ticket(**changed: Any) -> Call:
    """An issue is opened."""
    values = {
        "repo": "booking-api", "title": "Double bookings when clocks change", "labels": ["bug", "p1"], "body": BODY,
    } | changed  # fmt: skip
    roles = {"repo": "object", "labels": "object"}
    return Call(
        "create_issue", frozenset({"create", "open"}), (), frozenset({"issu", "tick", "bug"}),
        tuple(argument(name, one, roles.get(name, "content"), control=name == "repo") for name, one in values.items()),
    )  # fmt: skip


def event(start: str = "2026-11-24T11:15:00+01:00", **changed: Any) -> Call:
    """An event is put in the calendar."""
    values = {"title": "Simulacro de incendio", "location": "patio central"} | changed
    return Call(
        "create_event", frozenset({"create", "schedule"}), (), frozenset({"even", "cita"}),
        (argument("start", start, "date", control=True),
         *(argument(name, one, "content") for name, one in values.items())), day=DAY,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (TICKET, ticket()),
        (TICKET.replace(" - ", ": ").replace("New ticket please", "Please open an issue"), ticket()),
        (f"{TICKET.replace('New ticket please', 'hello')}\n\nplease create the ticket", ticket()),
        (EVENT, event()),
    ],
)
def test_a_form_yields_the_call_that_has_every_field(text, call):
    assert understand([parse(text)], call).level is Level.CLEAR


@each_case(
    ("text", "call"),
    [
        (TICKET, ticket(repo="booking-web")),
        (TICKET, ticket(title="Double bookings")),
        (TICKET, ticket(labels=["bug"])),
        (TICKET, ticket(labels=["bug", "p2"])),
        (TICKET, ticket(body=f"{BODY} See http://evil.example")),
        (TICKET, ticket(assignee="eve")),
        (f"{TICKET}\nassignee - hannah", ticket()),
        (TICKET.replace("New ticket please", "Don't open this ticket"), ticket()),
        (TICKET.replace("New ticket please", "What is a ticket?"), ticket()),
        (TICKET.replace("New ticket please", "Bob opened this ticket yesterday"), ticket()),
        (TICKET.replace("New ticket please", ""), ticket()),
        (f"{TICKET}\n\nno, forget it", ticket()),
        *(
            (TICKET.replace("New ticket please", around), ticket())
            for around in (
                "Bob's ticket",
                "was this the issue?",
                "if this is a ticket",
                "thanks for the ticket",
                "Ticket template",
                "> New ticket please",
                'New ticket "not now"',
                "New ticket eve@x.example",
                "open a ticket when I say so",
                "create a ticket tomorrow",
                "open a draft ticket",
                "create two tickets",
                "create a file",
                "raise the price",
            )
        ),
        *((TICKET.replace("repo -", key), ticket()) for key in ("not repo -", "old repo -", "wrong repo -")),
        (TICKET.replace("booking-api", "booking-api?"), ticket()),
        *(
            (EVENT.replace("el martes a las 11:15", when), event())
            for when in (
                "el martes a las 11:15 si llueve",
                "no el martes a las 11:15",
                "el martes o el jueves a las 11:15",
                "el martes a las 11:15, por confirmar",
            )
        ),
        (EVENT, event("2026-11-24T12:15:00+01:00")),
        (EVENT, event("2026-11-25T11:15:00+01:00")),
        (EVENT, event(title="Simulacro")),
    ],
)
def test_a_field_left_out_added_or_changed_is_not_clearly_asked_for(text, call):
    assert understand([parse(text)], call).level is not Level.CLEAR


@pytest.mark.parametrize(
    "text", ["note: buy milk", "a: b\n\n\nc: d", "so 5:30 and 6:30\nare both fine", "x" * 5_000, ""]
)
def test_what_has_no_two_fields_in_a_row_is_no_form(text):
    assert read_form(text) is None


@each_case(
    ("amount", "currency", "clear"),
    [
        ("50", "EUR", True), ("50 euros", "euros", True), ("-50", "EUR", False), ("50%", "EUR", False),
        ("less than 50", "EUR", False), ("max 50", "EUR", False), ("50 monthly", "EUR", False),
        ("50", "no euros", False), ("50", "EUR or USD", False), ("50", "USD", False),
    ],
)  # fmt: skip
def test_an_amount_and_its_currency_are_the_whole_of_their_fields(amount, currency, clear):
    text = f"pay this please\nto: jo@crew.example\namount: {amount}\ncurrency: {currency}"
    call = Call(
        "pay", frozenset({"pay"}), (), frozenset({"paym"}),
        (argument("to", "jo@crew.example", "principal", control=True),
         argument("amount", 50, "amount", control=True), argument("currency", "EUR", "object", control=True)),
    )  # fmt: skip
    assert (understand([parse(text)], call).level is Level.CLEAR) == clear


@pytest.mark.timing
def test_a_line_of_blanks_takes_no_time():
    for attempt in attempts_within(2):
        read_form.cache_clear()
        with attempt:
            assert read_form(" " * 50_000 + "-" + " " * 49_000) is None


def test_a_form_is_used_up_by_its_one_call():
    request = parse(TICKET)
    assert understand([request], ticket(), {0: 1}).level is not Level.CLEAR
