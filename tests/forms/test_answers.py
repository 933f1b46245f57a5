"""Answers as people give them: a denied value, a number for an option, a past year, and another language."""

from __future__ import annotations

from dataclasses import replace

import pytest
from phylactery_forms.definitions.reading import FormError, parse_form, read_forms, sample_folder
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context, Language

from tests.support.agent.forms import NOW

ANSWERS = ("Ana García", "ana@ejemplo.com", "612 345 678", "1", "30/11/2026", "10:00")


def appointment(given: int, language: Language = "es") -> Simulation:
    """Return an appointment with its first answers given."""
    said = Simulation(read_forms(sample_folder())["appointment"], Context(language, NOW, "ES"))
    for text in ANSWERS[:given]:
        said.say(text)
    return said


def value(of: Simulation, field: str) -> str | None:
    found = of.conversation["values"].get(field)
    return None if found is None else found["value"]


@pytest.mark.parametrize(
    ("language", "text"),
    [("es", "no quiero a las 12:30"), ("es", "no a las 12:30"), ("en", "not at 12:30"), ("en", "no not at 12:30")],
)
def test_a_time_that_is_denied_asks_again(language: Language, text: str) -> None:
    said = appointment(5, language)
    turn = said.say(text).turn
    assert value(said, "hour") is None
    assert said.conversation["asked"] == "hour"
    assert ("eso no" if language == "es" else "not that one") in turn["response"]
    said.say("11:15")
    assert value(said, "hour") == "11:15"


@pytest.mark.parametrize("text", ["no a las 12:30 sino a las 11:15", "a las 12:30 no, a las 11:15", "no, a las 11:15"])
def test_what_is_said_instead_of_a_denied_time_is_the_answer(text: str) -> None:
    said = appointment(5)
    said.say(text)
    assert value(said, "hour") == "11:15"


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("1", "first_visit"),
        ("2", "follow_up"),
        ("la segunda", "follow_up"),
        ("visita", "first_visit"),
    ],
)
def test_a_choice_is_answered_by_its_number_or_a_part_of_its_words(text: str, chosen: str) -> None:
    said = appointment(3)
    said.say(text)
    assert value(said, "service") == chosen


def test_what_is_part_of_no_option_is_none() -> None:
    said = appointment(3)
    said.say("quizás")
    assert value(said, "service") is None


@pytest.mark.parametrize("text", ["30/11/2025", "el 3 de marzo de 2020", "30.11.1999"])
def test_a_date_of_a_past_year_asks_again(text: str) -> None:
    said = appointment(4)
    turn = said.say(text).turn
    assert value(said, "day") is None
    assert "ya ha pasado" in turn["response"]


def test_another_language_in_the_middle_of_a_form_changes_what_is_asked_and_no_answer() -> None:
    said = appointment(2)
    turn = said.say("sorry, what do you need my phone number for?").turn
    assert said.conversation["language"] == "en"
    assert "Which phone number" in turn["response"]
    assert value(said, "email") == "ana@ejemplo.com"
    said.say("612 345 678")
    assert value(said, "phone") == "+34612345678"
    said.say("la primera visita, por favor, y perdona")
    assert (value(said, "service"), said.conversation["language"]) == ("first_visit", "en")


def test_examples_are_read_in_both_languages() -> None:
    text = """
id: desk
version: 1
title: {es: Puesto, en: Desk}
description: {es: Pide un puesto., en: Asks for a desk.}
triggers: {es: [quiero un puesto], en: [i want a desk]}
examples: {es: [me hace falta un sitio para trabajar], en: [i am looking for a place to work]}
fields:
  - {id: seats, type: number, label: {es: sitios, en: seats}, ask: {es: "¿Cuántos?", en: "How many?"}}
"""
    form = parse_form(text.encode(), "desk.yaml")
    assert form.examples["es"] == ("me hace falta un sitio para trabajar",)
    assert form.examples["en"] == ("i am looking for a place to work",)


def test_the_number_one_writes_from_is_an_answer_that_is_read_back(subtests: pytest.Subtests) -> None:
    said = (
        *("el de este WhatsApp", "este número", "el mismo desde el que escribo", "sí, llamadme a este", "this number"),
        *("the one I'm writing from", "same number I'm texting you from, thanks", "on this WhatsApp please"),
    )
    for text in said:
        with subtests.test(text):
            on_phone, elsewhere = appointment(2), appointment(2)
            on_phone.context = replace(on_phone.context, own_phone="+5215512345678")
            assert "+52 55 1234 5678" in on_phone.say(text).turn["response"]
            assert (value(on_phone, "phone"), on_phone.conversation["asked"]) == ("+525512345678", "service")
            told = elsewhere.say(text).turn["response"]
            assert (value(elsewhere, "phone"), elsewhere.conversation["asked"]) == (None, "phone")
            assert elsewhere.conversation["values"].keys() == {"name", "email"}
            assert told.startswith(("No veo el número desde el que escribes", "I cannot see the number you write from"))


def test_what_is_said_of_ones_number_besides_is_no_answer(subtests: pytest.Subtests) -> None:
    said = (
        *("este número no", "este número ya no es mío", "¿este número?", "al que te escribo", "not this number"),
        *("this number stopped working", "el mismo", "este número es de mi madre", "is this number okay?"),
    )
    for text in said:
        with subtests.test(text):
            form = appointment(2)
            form.context = replace(form.context, own_phone="+34600111222")
            form.say(text)
            assert value(form, "phone") is None
    given = appointment(2)
    given.context = replace(given.context, own_phone="+34600111222")
    given.say("mejor el 612 345 678, este número no")
    assert value(given, "phone") is None  # a no is over one of them: asked back
    given.say("612 345 678")
    assert value(given, "phone") == "+34612345678"


WISHES = """
id: wishes
version: 1
title: {es: Queja, en: Complaint}
description: {es: Una queja., en: A complaint.}
triggers: {es: [poner una queja], en: [file a complaint]}
fields:
  - {id: day, type: date, options: {when: future}, label: {es: día, en: day}, ask: {es: "¿Qué día?", en: "Which day?"}}
  - {id: story, type: text, label: {es: relato, en: story}, ask: {es: "¿Qué pasó?", en: "What happened?"}}
  - {id: until, type: date, label: {es: fin, en: end date}, ask: {es: "¿Hasta cuándo?", en: "Until when?"}}
  - id: state
    type: choice
    label: {es: estado, en: state}
    ask: {es: "¿Qué le pasa?", en: "What is wrong?"}
    options:
      choices:
        - {id: smell, label: {es: huele mal, en: smells bad}, synonyms: {es: [olor], en: [smell]}}
        - {id: dead, label: {es: no arranca, en: does not start}}
  - id: voucher
    type: yes_no
    label: {es: vale, en: voucher}
    ask: {es: "¿Quieres un vale?", en: "Do you want a voucher?"}
submit: true
"""
GIVEN = ("12/12/2026", "se rompió", "20/12/2026", "2", "no")


def wishes(asked: str, language: Language = "en", *, notes: bool = False) -> Simulation:
    """Return a form whose fields up to one are filled; ``notes`` lets its story say anything."""
    text = WISHES.replace("id: story, type: text,", "id: story, type: text, accept: doubtful,") if notes else WISHES
    form = parse_form(text.encode(), "wishes.yaml")
    said = Simulation(form, Context("es", NOW, "ES"))
    for given in GIVEN[: [one.id for one in form.fields].index(asked)]:
        said.say(given)
    assert said.conversation["asked"] == asked
    said.conversation = {**said.conversation, "language": language}
    said.context = replace(said.context, language=language)
    return said


STORIES = (
    *(
        "I told them to cancel the visit twice",
        "we no longer need it since it arrived in June",
        "they had to drop it off at ten",
    ),
    *("quería anular el viaje porque nadie vino", "otra vez no vinieron al final", "stop charging me twice"),
    *("the hold line was dead", "I waited longer than later customers", "no lights, no heating", "mañana es tarde"),
)
ASKED_BACK = (
    *(
        "hang on, the clerk has the papers",
        "cancel the payment",
        "quiero cancelar la reserva",
        "why is it always late?",
    ),
    *(
        "no idea what went on",
        "lo que queráis",
        "no sé qué hicieron con la caja",
        "no, it's the second one",
        "actually, send it to Ann",
    ),
)


def test_a_text_keeps_the_words_of_commands_and_asks_about_what_may_be_one(subtests: pytest.Subtests) -> None:
    for text in STORIES:
        with subtests.test(text):
            said = wishes("story")
            said.say(text)
            assert value(said, "story") == text
    for text in ASKED_BACK:
        with subtests.test(text):
            said = wishes("story")
            told = said.say(text).turn["response"]
            assert (value(said, "story"), said.conversation["status"], text in told) == (None, "collecting", True)
            said.say("yes")
            assert value(said, "story") == text


def test_a_text_that_is_asked_back_is_quoted() -> None:
    said = wishes("story")
    assert said.say("why is it always late?").turn["response"] == (
        "Is that your answer: “why is it always late?”? (yes/no)"
    )


def test_another_answer_to_what_was_asked_back_is_said_back() -> None:
    said = wishes("story")
    said.say("why is it always late?")
    assert "tomorrow" in said.say("tomorrow").turn["response"]
    assert value(said, "story") == "tomorrow"


def test_a_text_that_accepts_doubt_keeps_questions_and_guesses(subtests: pytest.Subtests) -> None:
    for text in ("why is it always late?", "no idea what went on", "I think it fell", "no, it's the second one"):
        with subtests.test(text):
            said = wishes("story", notes=True)
            said.say(text)
            assert value(said, "story") == text
    for text in ("cancel this complaint", "cancel it"):
        with subtests.test(text):
            said = wishes("story", notes=True)
            said.say(text)
            assert said.conversation["status"] == "cancelled"
    with pytest.raises(FormError, match="only a text accepts what is doubtful"):
        parse_form(
            WISHES.replace("id: day, type: date,", "id: day, type: date, accept: doubtful,").encode(), "wishes.yaml"
        )


def test_a_value_that_another_answer_may_mean_is_asked_about(subtests: pytest.Subtests) -> None:
    for text in ("no, make it the 15th", "actually the 15th", "sorry, the 15th"):
        with subtests.test(text):
            said = wishes("until")
            assert "end date" in said.say(text).turn["response"]
            assert (value(said, "day"), value(said, "until")) == ("2026-12-12", None)
    said = wishes("until")
    said.say("until the 15th")
    assert value(said, "until") == "2026-12-15"
    said = wishes("until")
    said.say("we no longer need it on the 15th, the 16th is better")
    assert (value(said, "until"), said.conversation["status"]) == (None, "collecting")


def test_a_sentence_about_what_is_asked_is_a_yes_or_a_no(subtests: pytest.Subtests) -> None:
    yes = ("I'd like a voucher", "a voucher would be great", "that works for me", "me gustaría un vale", "buena idea")
    no = (
        "no, I don't",
        "I don't need a voucher",
        "a voucher is not necessary",
        "no, no lo quiero",
        "I want no voucher",
    )
    none = (
        *("it's fine", "I'm good", "is a voucher good", "no, I don't mind a voucher", "a voucher wouldn't hurt"),
        *("I don't want to lose a voucher", "I would not want it without a voucher", "no way I go without a voucher"),
        *("no thanks, I want a voucher", "no quiero ir sin vale", "sure, why would I"),
    )
    for texts, wanted in (
        (yes, "yes"),
        (no, "no"),
        (none, None),
        (("I had a voucher", "your voucher is a joke"), None),
    ):
        for text in texts:
            with subtests.test(text):
                said = wishes("voucher")
                said.say(text)
                assert value(said, "voucher") == wanted


def test_a_sign_alone_is_a_yes_or_a_no(subtests: pytest.Subtests) -> None:
    for text, wanted in (("👍", "yes"), ("👎", "no"), ("👎.", "no"), ("❌", "no"), ("lunch 👎", None)):
        with subtests.test(text):
            said = wishes("voucher")
            said.say(text)
            assert value(said, "voucher") == wanted


def test_an_option_that_is_denied_around_its_words_is_none(subtests: pytest.Subtests) -> None:
    for text, wanted in (("olor no tiene", None), ("mal no huele", None), ("no arranca", "dead"), ("huele", "smell")):
        with subtests.test(text):
            said = wishes("state", "es")
            said.say(text)
            assert value(said, "state") == wanted


def test_a_second_thought_between_two_values_leaves_the_latter(subtests: pytest.Subtests) -> None:
    told = (
        *(("until", "the 15th, no, the 16th", "2026-12-16"), ("until", "the 15th, not the 16th", "2026-12-15")),
        *(("until", "the 15th is better than the 16th", None), ("state", "smells bad, I mean, does not start", "dead")),
        *(("voucher", "no, wait, yes", "yes"), ("voucher", "yes, sorry, no", "no"), ("voucher", "no, sorry", "no")),
    )
    for asked, text, wanted in told:
        with subtests.test(text):
            said = wishes(asked)
            said.say(text)
            assert value(said, asked) == wanted
