"""What of a model's opinion counts: only what the person's own words bear out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.dialogue.opinions import Opinion, Quoted, beside_it, borne_out
from phylactery_forms.dialogue.state import new_conversation, put
from phylactery_forms.values.model import Context

EN = Context("en", datetime.fromisoformat("2026-11-23T10:00:00+01:00"), "ES")
VISIT = """
id: visit
version: 1
title: {es: Visita, en: Visit}
description: {es: Pide una visita., en: Asks for a visit.}
triggers: {es: [quiero una visita], en: [i want a visit]}
fields:
  - {id: day, type: date, label: {es: día, en: day}, ask: {es: "¿Qué día?", en: "Which day?"}}
  - id: guests
    type: number
    options: {maximum: 30}
    label: {es: visitas, en: guests}
    ask: {es: "¿Cuántas?", en: "How many?"}
  - id: floor
    type: number
    options: {maximum: 9}
    label: {es: piso, en: floor}
    ask: {es: "¿Qué piso?", en: "Which floor?"}
  - {id: email, type: email, label: {es: correo, en: e-mail}, ask: {es: "¿Tu correo?", en: "Your e-mail?"}}
  - {id: host, type: person_name, label: {es: nombre, en: name}, ask: {es: "¿Tu nombre?", en: "Your name?"}}
"""


@pytest.fixture(scope="module")
def visit() -> Form:
    return parse_form(VISIT.encode(), "visit.yaml")


def test_a_value_counts_by_its_quote_and_what_is_said_over_it(visit: Form, subtests: pytest.Subtests) -> None:
    for name, value, quote, text, found in (
        ("guests", "3", "three of us", "the lads and I, three of us", ("3", "")),
        ("guests", "3", "THREE  of us", "the lads and I, three of us", ("3", "")),
        ("guests", "4", "three of us", "the lads and I, three of us", ("4", "left_over")),
        ("guests", "3", "the usual lot", "bring the usual lot", ("3", "left_over")),
        ("guests", "3", "three", "not three, God forbid", ("3", "denied")),
        ("guests", "3", "three", "my wife's three sisters", ("3", "others")),
        ("guests", "3", "three", "would three fit?", ("3", "asks")),
        ("guests", "3", "3", "we saw 13 of them", None),
        ("guests", "3", "three guests", "three of us", None),
        ("guests", "3", "", "three of us", None),
        ("guests", "99", "99", "make it 99", None),
        ("guests", "NOT_PROVIDED", "three", "three of us", None),
        (
            "email",
            "ana@example.org",
            "ana@example.org",
            "mails reach me by ana@example.org",
            ("ana@example.org", ""),
        ),
        ("email", "eve@example.net", "ana@example.org", "that is ana@example.org", ("eve@example.net", "left_over")),
    ):
        with subtests.test(f"{name} {value} {quote} {text}"):
            read = borne_out(visit.by_id[name], Quoted(value, quote), text, EN)
            assert found == ((read.values[0].value, read.reason) if read.values else None)
    assert not borne_out(visit.by_id["guests"], None, "three", EN).values


def test_another_field_gets_only_words_that_no_other_field_could_take(visit: Form, subtests: pytest.Subtests) -> None:
    conversation: Any = {**new_conversation(visit, EN), "asked": "day"}
    text = "Ana Ruiz, ana@example.org, 4, and the usual day"
    day = Quoted("2026-11-27", "the usual day")
    for values, given in (
        ({"email": Quoted("ana@example.org", "ana@example.org")}, {"email": "ana@example.org"}),
        ({"email": Quoted("eve@example.net", "ana@example.org")}, {}),
        ({"guests": Quoted("4", "4")}, {}),
        ({"day": day, "floor": Quoted("4", "4")}, {}),
        ({"host": Quoted("ana@example.org", "ana@example.org")}, {}),
    ):
        with subtests.test(", ".join(values)):
            opinion = Opinion(values)
            assert beside_it(visit, conversation, opinion, text, EN, target=visit.by_id["day"]) == given
    filled: Any = put(conversation, "email", "old@example.org", "tn_0")
    opinion = Opinion({"email": Quoted("ana@example.org", "ana@example.org")})
    assert beside_it(visit, filled, opinion, text, EN, target=visit.by_id["day"]) == {}
