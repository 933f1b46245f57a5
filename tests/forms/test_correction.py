"""Corrections by weighed signals: which earlier answer a message changes, and what it leaves alone."""

from __future__ import annotations

import pytest
from phylactery_forms.definitions.reading import parse_form
from phylactery_forms.dialogue.correction import correction_in, signal_weights
from phylactery_forms.dialogue.signals import evidence_of, parts_of
from phylactery_forms.dialogue.state import put
from phylactery_forms.dialogue.words import words_of
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context, Language

from tests.support.agent.forms import NOW
from tests.support.cases import each_case

TABLE = """
id: table
version: 1
title: {es: Mesa, en: Table}
description: {es: Una mesa., en: A table.}
triggers: {es: [quiero una mesa], en: [i want a table]}
fields:
  - {id: email, type: email, label: {es: correo, en: e-mail}, ask: {es: "¿Correo?", en: "E-mail?"}}
  - {id: guests, type: number, label: {es: personas, en: guests}, ask: {es: "¿Cuántos?", en: "How many?"}}
  - {id: day, type: date, label: {es: fecha, en: date}, ask: {es: "¿Qué día?", en: "Which day?"}}
  - {id: order, type: text, label: {es: número de pedido, en: order number}, ask: {es: "¿Pedido?", en: "Order?"}}
  - {id: hour, type: time, label: {es: hora, en: time}, ask: {es: "¿Hora?", en: "What time?"}}
  - {id: note, type: text, label: {es: observaciones, en: note}, ask: {es: "¿Algo más?", en: "Anything else?"}}
"""
FILLED = {"email": "ana@example.com", "guests": "4", "day": "2026-12-05", "order": "A-4471"}


def table(asked: str, language: Language = "es") -> Simulation:
    """Return the form with its first answers given, at a question."""
    said = Simulation(parse_form(TABLE.encode(), "table.yaml"), Context(language, NOW, "ES"))
    state = said.conversation
    for number, (name, value) in enumerate(FILLED.items()):
        state = put(state, name, value, str(number))
    if asked == "note":
        state = put(state, "hour", "21:00", "9")
    said.conversation = {**state, "asked": asked}
    return said


def values(of: Simulation) -> dict[str, str]:
    return {name: one["value"] for name, one in of.conversation["values"].items()}


@each_case(
    ("language", "text", "field", "value"),
    [
        ("es", "perdón, seremos seis", "guests", "6"),
        ("es", "al final somos 5, no 4", "guests", "5"),
        ("es", "no somos 4 sino 6", "guests", "6"),
        ("es", "uy, dije el 5 y era el 6 de diciembre", "day", "2026-12-06"),
        ("es", "el día 5 no puedo, el 10", "day", "2026-12-10"),
        ("es", "me equivoqué, el pedido es A-4417", "order", "A-4417"),
        ("es", "el número de pedido no es A-4471 sino B-12", "order", "B-12"),
        ("es", "mi correo está mal, es bea@example.com", "email", "bea@example.com"),
        ("en", "sorry, there will be six guests", "guests", "6"),
        ("en", "I meant 5 guests, not 4", "guests", "5"),
        ("en", "actually, make it December 10", "day", "2026-12-10"),
        ("en", "the order number is wrong, it's A-4417", "order", "A-4417"),
        ("en", "oops, my e-mail is bea@example.com", "email", "bea@example.com"),
    ],
)
def test_a_correction_said_at_another_question_changes_its_field_alone(
    language: Language, text: str, field: str, value: str
) -> None:
    said = table("hour", language)
    turn = said.say(text).turn
    assert (turn["is_correction"], turn["correction_field"]) == (True, field)
    assert values(said) == {**FILLED, field: value}
    assert said.conversation["asked"] == "hour"


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("es", "a las 20:30"),
        ("es", "mejor a las 21:00 que a las 20:00"),
        ("es", "perdón, a las 22:00"),
        ("es", "en realidad a las 13:15"),
        ("en", "at 20:30"),
        ("en", "sorry, 21:00"),
        ("en", "actually 13:15"),
    ],
)
def test_an_answer_with_a_marker_fills_the_asked_field_and_overwrites_none(language: Language, text: str) -> None:
    said = table("hour", language)
    assert not said.say(text).turn["is_correction"]
    assert "hour" in values(said)
    assert {name: values(said)[name] for name in FILLED} == FILLED


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("es", "pedimos una azul y en realidad nos dieron una roja"),
        ("es", "mejor una mesa tranquila"),
        ("es", "el camarero no vino hasta las 22:00"),
        ("en", "we'd rather have a quiet table"),
        ("en", "actually, it is a birthday"),
    ],
)
def test_a_story_with_words_of_a_correction_is_the_text_it_was_asked_for(language: Language, text: str) -> None:
    said = table("note", language)
    assert not said.say(text).turn["is_correction"]
    assert values(said)["note"] == text
    assert {name: values(said)[name] for name in FILLED} == FILLED


def test_an_invalid_new_value_leaves_the_old_one_until_a_valid_one_comes() -> None:
    said = table("hour")
    said.say("mi correo está mal, es bea@@")
    assert values(said) == FILLED
    assert said.conversation["asked"] == "email"
    said.say("bea@example.com")
    assert values(said) == {**FILLED, "email": "bea@example.com"}
    assert said.conversation["asked"] == "hour"


def test_a_correction_that_may_mean_two_fields_asks_which() -> None:
    form = parse_form(TABLE.replace("id: guests, type: number", "id: guests, type: date").encode(), "table.yaml")
    said = Simulation(form, Context("es", NOW, "ES"))
    state = put(put(said.conversation, "guests", "2026-12-01", "1"), "day", "2026-12-05", "2")
    said.conversation = {**state, "asked": "email"}
    found = correction_in(form, said.conversation, "perdón, el 9 de diciembre", said.context)
    assert found is not None
    assert (found.field, set(found.candidates)) == (None, {"guests", "day"})


def test_what_is_denied_is_never_the_new_value() -> None:
    parts = parts_of(words_of("el 24 no, el 23, en vez de las dos ponla a las tres"))
    assert [(part.text, part.denied) for part in parts] == [
        ("el 24 no", True),
        ("el 23", False),
        ("en vez de las dos", True),
        ("ponla a las tres", False),
    ]


def test_every_weight_is_of_a_signal_there_is() -> None:
    said = table("hour")
    evidence = evidence_of(said.form, said.conversation, words_of("no, 5 personas"), said.context)
    for state in ("asked", "review"):
        assert {*signal_weights(state)} <= {*evidence.message}
    assert {*signal_weights("field")} <= {*evidence.about[0].signals}


@pytest.mark.parametrize("text", ["no " * 1_300, "1, " * 1_300, "no, 1 sino 2 " * 300])
def test_a_long_message_is_weighed_as_a_whole(text: str) -> None:
    assert len(parts_of(words_of(text))) <= 1
    said = table("hour")
    said.say(text)
    assert {name: values(said)[name] for name in FILLED} == FILLED
