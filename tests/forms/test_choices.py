"""The answers that a form's question takes, for clients that show them as buttons."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.dialogue.prompts import choices
from phylactery_forms.dialogue.state import new_conversation
from phylactery_forms.values.model import Context

ES = Context("es", datetime.fromisoformat("2026-11-23T10:00:00+01:00"), "ES")
FORM = """
id: table
version: 1
title: {es: Mesa, en: Table}
description: {es: Pide una mesa., en: Asks for a table.}
triggers: {es: [quiero una mesa], en: [i want a table]}
fields:
  - id: place
    type: choice
    options: {choices: [{id: in, label: {es: dentro, en: inside}}, {id: out, label: {es: fuera, en: outside}}]}
    label: {es: sitio, en: place}
    ask: {es: "¿Dónde?", en: "Where?"}
  - {id: child, type: yes_no, label: {es: trona, en: high chair}, ask: {es: "¿Trona?", en: "High chair?"}}
  - id: menu
    type: choice
    options: {choices: [{id: y, label: {es: sí, en: "yes"}}, {id: n, label: {es: no gracias, en: no thanks}}]}
    label: {es: menú, en: menu}
    ask: {es: "¿Menú?", en: "Menu?"}
"""


def test_only_the_options_of_the_asked_field_are_answers_and_no_yes_is(subtests: pytest.Subtests) -> None:
    form = parse_form(FORM.encode(), "table.yaml")
    begun: Any = new_conversation(form, ES)
    doubt = {"field": "place", "values": ["out"], "reason": "left_over", "times": 1}
    for changes, answers in (
        ({"asked": "place"}, ["dentro", "fuera"]),
        ({"asked": "place", "language": "en"}, ["inside", "outside"]),
        ({"asked": "child"}, []),
        ({"asked": "menu"}, []),
        ({"asked": None, "status": "review"}, []),
        ({"asked": "place", "status": "cancelled"}, []),
        ({"asked": "place", "choosing": ["place", "menu"]}, []),
        ({"asked": "menu", "confirming": "place"}, []),
        ({"asked": "place", "doubt": doubt}, []),
        ({"asked": "place", "doubt": {**doubt, "values": []}}, ["dentro", "fuera"]),
    ):
        with subtests.test(str(changes)):
            assert choices(form, {**begun, **changes}) == answers
