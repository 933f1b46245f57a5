"""A yes at the review is for all that is stored, so the review says all of it, whatever its author wrote."""

from __future__ import annotations

import pytest
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context

from tests.support.agent.forms import NOW

VISIT = """
id: visit
version: 1
title: {{es: Visita, en: Visit}}
description: {{es: Reserva una visita., en: Books a visit.}}
triggers: {{es: [quiero una visita], en: [i want a visit]}}
{prompts}
fields:
  - {{id: email, type: email, label: {{es: correo, en: e-mail}}, ask: {{es: "¿Correo?", en: "E-mail?"}}}}
  - {{id: reason, type: text, label: {{es: motivo, en: reason}}, ask: {{es: "¿Motivo?", en: "Reason?"}}}}
  - {{id: pin, type: text, sensitive: true, label: {{es: clave, en: pin}}, ask: {{es: "¿Clave?", en: "Pin?"}}}}
submit: {submit}
"""
CONFIRM = "{confirm: {es: 'Reservo para {email}. ¿Vale?', en: 'I book for {email}. All right?'}}"
REVIEW = "prompts: {review: {es: 'Reservo para {email}. ¿Vale?', en: 'I book for {email}. All right?'}}"


def reviewed(prompts: str, submit: str) -> str:
    form = parse_form(VISIT.format(prompts=prompts, submit=submit).encode())
    said = Simulation(form, Context("es", NOW, "ES"))
    for text in ("ana@example.com", "dolor de muelas"):
        said.say(text)
    return said.say("tulipán 7").turn["response"]


@pytest.mark.parametrize(
    ("prompts", "submit"), [("", CONFIRM), (REVIEW, "true"), (REVIEW, "{fields: [reason, email]}")]
)
def test_what_the_authors_text_leaves_out_is_said_before_it(prompts: str, submit: str) -> None:
    reply = reviewed(prompts, submit)
    assert reply.endswith("Reservo para ana@example.com. ¿Vale?")
    assert "dolor de muelas" in reply
    assert reply.count("ana@example.com") == 1
    assert "tulipán" not in reply


@pytest.mark.parametrize(
    "submit", ["{fields: [email]}", "{tool: send_email, args: {to: a@b.example, body: '{reason}'}}"]
)
def test_what_is_not_stored_need_not_be_said(submit: str) -> None:
    assert reviewed(REVIEW, submit).endswith("Reservo para ana@example.com. ¿Vale?")
    assert "muelas" not in reviewed(REVIEW, submit)


def test_what_a_review_changed_is_said_before_it() -> None:
    said = Simulation(parse_form(VISIT.format(prompts="", submit="true").encode()), Context("es", NOW, "ES"))
    for text in ("ana@example.com", "dolor de muelas", "tulipán 7"):
        said.say(text)
    changed = said.say("el correo es eva@example.com").turn["response"]
    assert changed.startswith("Cambiado: correo es ahora eva@example.com.\n\n")
    unread = said.say("hoy llueve").turn["response"]
    assert unread.startswith("No lo he entendido, y no he cambiado nada.\n\n")
    assert "eva@example.com" in unread
    hidden = said.say("la clave es jacinto 9").turn["response"]
    assert hidden.startswith("Cambiado: clave")
    assert "jacinto" not in hidden
