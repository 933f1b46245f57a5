"""Requests in the form of lines that name a value each."""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_understanding.calls import understand
from phylactery_understanding.forms import read_form
from phylactery_understanding.proposal import Call, Level
from phylactery_understanding.request import parse

from tests.understanding.test_understanding_calls import DAY, argument

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


@pytest.mark.parametrize(
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


def test_a_form_is_used_up_by_its_one_call():
    request = parse(TICKET)
    assert understand([request], ticket(), {0: 1}).level is not Level.CLEAR
