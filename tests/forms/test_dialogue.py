"""The rules of the dialogue, message by message."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form, read_forms, sample_folder
from phylactery_forms.dialogue.filling import adopted, prefilled
from phylactery_forms.dialogue.messages import is_message
from phylactery_forms.dialogue.state import new_conversation
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import TYPES, Context, Language
from phylactery_understanding.language.word_files import entries

from tests.support.agent.forms import NOW
from tests.support.cases import each_case
from tests.support.effort import attempts_within

FORMS = read_forms(sample_folder())
TRIP = """
id: trip
version: 1
title: {es: Viaje, en: Trip}
description: {es: Un viaje., en: A trip.}
triggers: {es: [quiero viajar], en: [i want to travel]}
digressions: 2
fields:
  - {id: leaves, type: date, label: {es: salida, en: departure}, ask: {es: "¿Cuándo sales?", en: "When do you leave?"}}
  - {id: returns, type: date, label: {es: vuelta, en: return}, ask: {es: "¿Cuándo vuelves?", en: "When do you return?"}}
  - {id: seats, type: number, label: {es: plazas, en: seats}, ask: {es: "¿Cuántas plazas?", en: "How many seats?"}}
  - {id: job, type: text, label: {es: profesión, en: profession}, ask: {es: "¿Profesión?", en: "Profession?"}}
"""


def trip(language: Language = "es") -> Simulation:
    return Simulation(parse_form(TRIP.encode(), "trip.yaml"), Context(language, NOW, "ES"))


def booked(language: Language = "es") -> Simulation:
    """Return an appointment that waits for the answer to its review."""
    said = Simulation(FORMS["appointment"], Context(language, NOW, "ES"))
    for text in ("Ana García", "ana@ejemplo.com", "612 345 678", "1", "30/11/2026", "10:00"):
        said.say(text)
    assert said.conversation["status"] == "review"
    return said


def values(of: Simulation) -> dict[str, str]:
    return {name: one["value"] for name, one in of.conversation["values"].items()}


def test_the_state_is_plain_json() -> None:
    state = booked().conversation
    assert json.loads(json.dumps(state)) == state


# What people say when they change something they said: cases of our own, by whoever wrote the rules.
@each_case(
    ("text", "field", "value"),
    [
        ("No, mi email es luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("En realidad, mi correo es luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("perdón, quise decir luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("me equivoqué de correo, es luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("cambia el correo a luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("mejor a las 12:30", "hour", "12:30"),
        ("no, a las 12:30", "hour", "12:30"),
        ("¿puede ser a las 12:30?", "hour", "12:30"),
        ("prefiero el 2 de diciembre", "day", "2026-12-02"),
        ("que sea el 02/12/2026", "day", "2026-12-02"),
        ("la fecha está mal, es el 02/12/2026", "day", "2026-12-02"),
        ("el teléfono es el 699 111 222", "phone", "+34699111222"),
        ("no, mi nombre es Luis Pérez", "name", "Luis Pérez"),
        ("no, me llamo Luis Pérez", "name", "Luis Pérez"),
        ("me equivoqué, me llamo Luis Pérez", "name", "Luis Pérez"),
        ("corrige el nombre: Luis Pérez", "name", "Luis Pérez"),
        ("quiero cambiar el servicio a revisión", "service", "follow_up"),
        ("mejor una revisión", "service", "follow_up"),
    ],
)
def test_a_spanish_correction_in_a_review_changes_its_field_alone(text: str, field: str, value: str) -> None:
    said = booked()
    before = values(said)
    turn = said.say(text).turn
    assert (turn["is_correction"], turn["correction_field"]) == (True, field)
    assert values(said) == {**before, field: value}
    assert said.conversation["status"] == "review"


@pytest.mark.parametrize(
    "text",
    ["Ana García", "no tengo prisa, Ana García", "me llamo Ana", "Ana", "soy Ana García, mucho gusto"],
)
def test_a_first_answer_is_no_correction(text: str) -> None:
    said = Simulation(FORMS["appointment"], Context("es", NOW, "ES"))
    assert not said.say(text).turn["is_correction"]


@pytest.mark.parametrize("text", ["no me llamo Ana", "no me llamo Ana García"])
def test_who_says_that_a_name_is_not_theirs_is_asked_for_it(text: str) -> None:
    said = booked()
    before = values(said)
    turn = said.say(text).turn
    assert (turn["correction_field"], said.conversation["asked"]) == ("name", "name")
    assert values(said) == before


def test_a_name_is_corrected_in_the_middle_of_a_form() -> None:
    said = Simulation(FORMS["appointment"], Context("en", NOW, "ES"))
    said.say("Ana García")
    asked = said.conversation["asked"]
    said.say("no, I'm called Eva García")
    assert values(said)["name"] == "Eva García"
    assert said.conversation["asked"] == asked


def test_two_fields_of_a_type_are_filled_in_their_order_and_never_overwrite_each_other() -> None:
    said = trip()
    said.say("01/12/2026")
    said.say("08/12/2026")
    assert values(said) == {"leaves": "2026-12-01", "returns": "2026-12-08"}
    said.say("la salida es el 02/12/2026")
    assert values(said) == {"leaves": "2026-12-02", "returns": "2026-12-08"}
    assert said.conversation["asked"] == "seats"


def test_a_value_of_a_type_that_two_fields_have_asks_which_one_is_meant() -> None:
    said = trip()
    for text in ("01/12/2026", "08/12/2026"):
        said.say(text)
    turn = said.say("09/12/2026").turn
    assert turn["is_correction"]
    assert "salida" in turn["response"]
    assert "vuelta" in turn["response"]
    assert values(said) == {"leaves": "2026-12-01", "returns": "2026-12-08"}
    said.say("vuelta")
    said.say("09/12/2026")
    assert values(said)["returns"] == "2026-12-09"


def test_digressions_are_bounded() -> None:
    said = trip()
    assert "Luego vuelvo" in said.say("¿cuál es el clima?").turn["response"]
    assert "Di «seguir»" in said.say("¿y quién eres tú?").turn["response"]
    assert said.conversation["attempts"] == {}


def test_a_job_title_is_an_answer_and_no_wish_for_a_person() -> None:
    said = trip()
    for text in ("01/12/2026", "08/12/2026", "2"):
        said.say(text)
    assert said.conversation["asked"] == "job"
    said.say("gerente")
    assert values(said)["job"] == "gerente"


@pytest.mark.parametrize("text", ["no quiero hablar con un humano", "no necesito hablar con nadie"])
def test_who_wants_no_person_gets_none(text: str) -> None:
    said = trip()
    said.say(text)
    assert said.conversation["status"] == "collecting"


RESERVATION = """
id: reservation
version: 1
title: {es: Reserva, en: Booking}
description: {es: Una reserva., en: A booking.}
triggers: {es: [mi reserva], en: [my booking]}
fields:
  - id: action
    type: choice
    label: {es: gestión, en: action}
    ask: {es: "¿Qué quieres hacer?", en: "What do you want to do?"}
    options:
      choices:
        - {id: change, label: {es: cambiar la fecha, en: change the date}}
        - {id: cancel, label: {es: cancelar la reserva, en: cancel the booking}}
        - {id: stop, label: {es: parar el envío, en: stop the delivery}}
        - {id: keep, label: {es: no cancelar, en: don't cancel it}}
  - {id: note, type: text, label: {es: nota, en: note}, ask: {es: "¿Algo más?", en: "Anything else?"}}
"""


@each_case(
    ("text", "action", "status"),
    [
        *((text, "cancel", "collecting") for text in ("cancelar la reserva", "Cancelar", "cancel the booking", "2")),
        *((text, "stop", "collecting") for text in ("parar el envío", "stop the delivery", "parar")),
        *((text, None, "cancelled") for text in ("cancela el formulario", "cancel the form", "cancelar todo")),
        *((text, None, "cancelled") for text in ("para", "¡Basta ya!", "detente, por favor", "never mind")),
        *((text, None, "collecting") for text in ("no quiero cancelar", "no pares", "don't cancel")),
        *((text, "keep", "collecting") for text in ("no cancelar", "don't cancel it")),
    ],
)
def test_words_that_stop_cancel_a_form_unless_they_are_an_option_or_denied(
    text: str, action: str | None, status: str
) -> None:
    said = Simulation(parse_form(RESERVATION.encode(), "reservation.yaml"), Context("es", NOW, "ES"))
    said.say(text)
    assert (values(said).get("action"), said.conversation["status"]) == (action, status)


@pytest.mark.parametrize("text", ["no quiero cancelar", "no canceles"])
def test_a_denied_stop_is_no_answer_either(text: str) -> None:
    said = Simulation(FORMS["appointment"], Context("es", NOW, "ES"))
    said.say(text)
    assert (values(said), said.conversation["asked"]) == ({}, "name")


def test_undo_takes_back_a_correction_to_the_value_before_it() -> None:
    said = booked()
    said.say("no, mi correo es luis@ejemplo.com")
    said.say("deshacer")
    assert values(said)["email"] == "ana@ejemplo.com"


def test_an_invalid_correction_keeps_the_old_value_and_asks_again() -> None:
    said = booked()
    turn = said.say("no, la fecha es el 01/01/2020").turn
    assert values(said)["day"] == "2026-11-30"
    assert said.conversation["asked"] == "day"
    assert "queda como estaba" in turn["response"]
    said.say("02/12/2026")
    assert values(said)["day"] == "2026-12-02"


def test_what_the_first_message_says_already_is_not_asked() -> None:
    form, context = FORMS["appointment"], Context("es", NOW, "ES")
    state = new_conversation(form, context)
    state = prefilled(form, state, "quiero una cita el 30/11/2026, soy ana@ejemplo.com", context, "0")
    assert {name: one["value"] for name, one in state["values"].items()} == {
        "email": "ana@ejemplo.com",
        "day": "2026-11-30",
    }
    assert state["asked"] == "name"


@pytest.mark.parametrize("form", FORMS.values(), ids=lambda form: form.id)
def test_the_words_that_begin_a_form_answer_nothing_in_it(form: Form) -> None:
    for language in ("es", "en"):
        context = Context(language, NOW, "ES")
        for trigger in form.triggers[language]:
            assert prefilled(form, new_conversation(form, context), trigger, context, "0")["values"] == {}, trigger


def test_a_form_that_changed_meanwhile_keeps_what_still_fits() -> None:
    said = trip()
    said.say("01/12/2026")
    changed = parse_form(TRIP.replace("id: returns", "id: back").encode(), "trip.yaml")
    state = adopted(changed, said.conversation, said.context)
    assert (state["version"], state["asked"], list(state["values"])) == (changed.hash, "back", ["leaves"])


@pytest.mark.timing
@pytest.mark.parametrize("text", ["🙂", "\0\0", "\u200f", "x" * 100_000, "1 " * 50_000, "no " * 33_333])
@pytest.mark.parametrize("name", ["appointment", "complaint", "expense"])
def test_a_hostile_message_fills_nothing_and_takes_no_time(name: str, text: str) -> None:
    for attempt in attempts_within(5):
        said = Simulation(FORMS[name], Context("es", NOW, "ES"))
        with attempt:
            turn = said.say(text).turn
    assert values(said) == {}
    assert len(turn["response"]) < 2_000


def test_a_long_pause_is_greeted_with_where_we_are() -> None:
    said = trip()
    said.say("01/12/2026")
    said.wait(timedelta(days=1))
    assert "Hola de nuevo" in said.say("hola").turn["response"]


def test_every_type_has_its_texts_and_both_languages_have_the_same_messages() -> None:
    for kind in TYPES:
        assert all(is_message(f"{name}_{kind}") for name in ("type", "help", "example"))
    folder = sample_folder().parent / "words"
    names = [[one.name for one in entries(folder / language / "messages.yaml")] for language in ("es", "en")]
    assert names[0] == names[1]


def test_no_reply_of_a_form_names_a_field_by_its_id() -> None:
    form: Form = FORMS["appointment"]
    said = Simulation(form, Context("es", NOW, "ES"))
    replies = [said.say(text).turn["response"] for text in ("", "Ana García", "xyz", "ana@ejemplo.com", "qué llevo")]
    assert not any("first_visit" in reply or "follow_up" in reply for reply in replies)


def test_the_policies_are_tried_in_their_order() -> None:
    form = FORMS["complaint"]
    timed = parse_form(
        (sample_folder() / "complaint.yaml")
        .read_bytes()
        .replace(b"  sentiment:", b"  timeout: {minutes: 1}\n  sentiment:")
    )
    for text, policy in (("quiero hablar con un humano, inútil de mierda", "keyword"), ("inútil de mierda", "timeout")):
        said = Simulation(timed, Context("es", NOW, "ES"))
        said.wait(timedelta(minutes=5))
        said.say(text)
        assert said.conversation["escalation"] is not None
        assert said.conversation["escalation"]["policy"] == policy
    said = Simulation(form, Context("es", NOW, "ES"))
    said.say("inútil de mierda")
    assert said.conversation["escalation"] == {"policy": "sentiment", "reason": "complaint"}


def test_a_complaint_in_the_answer_to_a_question_for_a_text_escalates_nothing() -> None:
    said = Simulation(FORMS["complaint"], Context("es", NOW, "ES"))
    for text in ("Juan Pérez", "AB-12345", "llegó roto"):
        said.say(text)
    said.say("Es una vergüenza y una estafa, el supervisor fue un inútil")
    assert said.conversation["status"] == "collecting"
    assert "description" in values(said)


def test_a_confirmed_value_may_be_corrected_instead_of_answered() -> None:
    said = Simulation(parse_form(README.encode()), Context("en", NOW, "ES"))
    said.say("ana@example.com")
    assert said.conversation["confirming"] == "email"
    turn = said.say("no, it's bea@example.com").turn
    assert turn["correction_field"] == "email"
    assert values(said) == {"email": "bea@example.com"}
    said.say("yes")
    assert said.conversation["values"]["email"]["confirmed"]
    assert said.conversation["asked"] == "reason"


README = """
id: visit
version: 1
title: {es: Visita, en: Visit}
description: {es: Reserva una visita., en: Books a visit.}
triggers: {es: [quiero una visita], en: [i want a visit]}
fields:
  - id: email
    type: email
    label: {es: correo, en: e-mail}
    ask: {es: "¿Cuál es tu correo?", en: "What is your e-mail?"}
    confirm: true
  - id: reason
    type: text
    label: {es: motivo, en: reason}
    ask: {es: "¿Por qué?", en: "Why?"}
    optional: true
"""


def complaint(*texts: str) -> Simulation:
    said = Simulation(FORMS["complaint"], Context("es", NOW, "ES"))
    for text in texts:
        said.say(text)
    return said


BEFORE_TEXT = ("Ana García", "AB-12345", "llegó roto")
HOLDING = ("espera", "un momento", "momento por favor", "déjame pensar", "dame 5 minutos", "ahora vuelvo",
           "hold on", "wait a second please", "let me check", "brb", "bear with me")  # fmt: skip
WISHES = ("operator please", "operador, por favor", "quiero hablar con alguien", "can I talk to a human?",
          "una persona por favor", "i want to talk to someone", "puedo hablar con una persona")  # fmt: skip


@each_case("before", [(), BEFORE_TEXT], ids=["asked a name", "asked a text"])
@each_case("text", HOLDING)
def test_words_that_hold_are_no_value_and_cost_nothing(before: tuple[str, ...], text: str) -> None:
    said = complaint(*before)
    asked, kept = said.conversation["asked"], values(said)
    turn = said.say(text).turn
    assert turn["next_action"] == "hold"
    assert (said.conversation["asked"], values(said), said.conversation["attempts"]) == (asked, kept, {})


@each_case("before", [(), BEFORE_TEXT], ids=["asked a name", "asked a text"])
@each_case("text", WISHES)
def test_a_wish_for_a_person_is_no_value(before: tuple[str, ...], text: str) -> None:
    said = complaint(*before)
    assert said.say(text).turn["should_escalate"]
    assert said.conversation["status"] == "escalated"


@pytest.mark.parametrize("before", [(), BEFORE_TEXT], ids=["asked a name", "asked a text"])
@pytest.mark.parametrize(
    "text", ["mi vecina dice: quiero hablar con un gerente", "> I want a human, please", "she said: get me a human"]
)
def test_a_wish_of_somebody_else_calls_nobody(before: tuple[str, ...], text: str) -> None:
    assert not complaint(*before).say(text).turn["should_escalate"]


@pytest.mark.parametrize("name", ["Esperanza", "Esperanza Parada", "Manager Peña", "Holden Waits", "Alto Momento"])
def test_a_name_that_resembles_such_words_is_a_name_or_asked_again(name: str) -> None:
    said = complaint()
    turn = said.say(name).turn
    assert not turn["next_action"]
    assert not turn["should_escalate"]


@pytest.mark.parametrize(
    "text", ["Esperé un momento y el paquete llegó abierto", "el agente me dijo: espera un momento"]
)
def test_a_description_that_has_such_words_is_a_description(text: str) -> None:
    turn = complaint(*BEFORE_TEXT).say(text).turn
    assert not turn["next_action"]
    assert not turn["should_escalate"]


WAITED = """
id: waited
version: 1
title: {es: Espera, en: Waiting}
description: {es: Anota una espera., en: Notes a wait.}
triggers: {es: [anota una espera], en: [note a wait]}
fields:
  - id: who
    type: text
    label: {es: profesión, en: job}
    ask: {es: "¿Profesión?", en: "Job?"}
  - id: long
    type: text
    label: {es: espera, en: wait}
    ask: {es: "¿Cuánto has esperado?", en: "How long?"}
"""


@pytest.mark.parametrize("text", ["un rato", "un minuto", "one minute", "Un ratito."])
def test_a_duration_without_a_verb_is_an_answer_where_a_text_is_asked(text: str) -> None:
    said = Simulation(parse_form(WAITED.encode()), Context("es", NOW, "ES"))
    said.say("profesora")
    for held in ("un minuto, por favor", "dame un minuto", "déjame ver"):
        assert said.say(held).turn["next_action"] == "hold", held
    said.say(text)
    assert "long" in values(said)


@pytest.mark.parametrize("text", ["gerente, gracias", "supervisora, gracias", "manager, thanks", "agente"])
def test_a_job_with_thanks_is_a_job(text: str) -> None:
    said = Simulation(parse_form(WAITED.encode()), Context("es", NOW, "ES"))
    assert not said.say(text).turn["should_escalate"]
    assert "who" in values(said)


def test_a_duration_is_an_answer_where_a_number_is_asked() -> None:
    said = trip()
    said.say("mañana")
    said.say("pasado mañana")
    assert said.conversation["asked"] == "seats"
    assert said.say("un momento").turn["next_action"] == "hold"
    said.say("2")
    assert values(said)["seats"] == "2"


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("el nombre es Luis Pérez", "name", "Luis Pérez"),
        ("nombre: Luis Pérez", "name", "Luis Pérez"),
        ("mi correo es luis@ejemplo.com", "email", "luis@ejemplo.com"),
        ("my name is Louis Perry", "name", "Louis Perry"),
    ],
)
def test_in_a_review_a_field_that_is_named_first_is_changed(text: str, field: str, value: str) -> None:
    said = booked()
    before = values(said)
    said.say(text)
    assert values(said) == {**before, field: value}


@pytest.mark.parametrize(
    ("text", "field"), [("el nombre", "name"), ("the e-mail", "email"), ("el correo, por favor", "email")]
)
def test_in_a_review_a_field_that_is_only_named_is_asked_for(text: str, field: str) -> None:
    said = booked()
    before = values(said)
    said.say(text)
    assert (said.conversation["asked"], values(said)) == (field, before)


@pytest.mark.parametrize("text", ["el correo lo miro luego", "el nombre ya lo sabes"])
def test_in_a_review_other_words_about_a_field_change_nothing(text: str) -> None:
    said = booked()
    before = values(said)
    said.say(text)
    assert values(said) == before


def complained() -> Simulation:
    """Return a complaint that waits for the answer to its review."""
    said = complaint(*BEFORE_TEXT, "el paquete llegó roto y sucio", "ana@ejemplo.com", "sí")
    assert said.conversation["status"] == "review"
    return said


@each_case(
    "text",
    [
        *(
            "el nombre es correcto",
            "el nombre está bien",
            "the name is correct",
            "my name looks fine",
            "nombre: correcto",
        ),
        *("la descripción está bien", "la descripción no la cambies", "la descripción está perfecta, envíala"),
        *("la descripción me parece muy bien", "the description is good", "la descripción es la misma", "nombre ok"),
        *("don't change the name", "el nombre no hace falta cambiarlo", "the name is spelled right"),
        *("está bien el nombre", "el nombre ya lo sabes", "the description I will tell you later"),
    ],
)
def test_in_a_review_what_is_said_about_a_value_does_not_replace_it(text: str) -> None:
    said = complained()
    before = values(said)
    said.say(text)
    assert values(said) == before


@each_case(
    ("text", "field"),
    [
        *(("nombre mal", "name"), ("el nombre está mal", "name"), ("el nombre no es correcto", "name")),
        *(("my name is spelled wrong", "name"), ("the name is wrong", "name"), ("the name is not right", "name")),
        *(("mi nombre está mal escrito", "name"), ("el nombre es otro", "name"), ("nombre: mal", "name")),
        *(("la descripción está incompleta", "description"), ("the description is too long", "description")),
        *(("a la descripción le falta algo", "description"), ("la descripción tiene un error", "description")),
    ],
)
def test_in_a_review_a_value_that_is_said_to_be_wrong_is_asked_for(text: str, field: str) -> None:
    said = complained()
    before = values(said)
    said.say(text)
    assert (said.conversation["asked"], values(said)) == (field, before)


@each_case(
    ("text", "field", "value"),
    [
        ("el nombre es Luis Pérez", "name", "Luis Pérez"),
        ("nombre: Luis Pérez", "name", "Luis Pérez"),
        ("cambia el nombre a Luis Pérez", "name", "Luis Pérez"),
        ("mi nombre no es Ana, es Eva Ruiz", "name", "Eva Ruiz"),
        ("el nombre está mal, es Eva Ruiz", "name", "Eva Ruiz"),
        ("mi nombre correcto es Eva Ruiz", "name", "Eva Ruiz"),
        ("my name isn't Ann, it's Eve Ross", "name", "Eve Ross"),
        ("descripción: bien empaquetado pero roto", "description", "bien empaquetado pero roto"),
        ("la descripción debería ser el paquete no llegó", "description", "paquete no llegó"),
    ],
)
def test_in_a_review_a_value_behind_a_colon_or_a_linking_word_is_taken(text: str, field: str, value: str) -> None:
    said = complained()
    before = values(said)
    said.say(text)
    assert values(said) == {**before, field: value}


SENDS = ("sí, envíalo", "envíalo", "send it", "correcto", "sí, está bien", "es correcto", "todo bien",
         "Perfecto, envíalo ya", "that's right", "looks good", "perfect, send it now", "sí, mándalo",
         "Good.. that is fine..", "it is", "that's correct, make the reservation", "en efecto",
         "sí, haz la reserva")  # fmt: skip
NO_SENDS = ("envíalo?", "no lo envíes", "no es correcto", "envíalo a Luis", "send it to bob", "envíalo 👎",
            "send it tomorrow", "está bien, pero cambia el nombre", "gracias", "don't send it", "yes...",
            "is it correct", "correct that", "it is not", "make the reservation", "do it tomorrow",
            "that's right 👎", "better inside", "great, add the table", "perfect, add that",
            "good, get the car")  # fmt: skip


@each_case("text", SENDS)
def test_at_the_review_a_yes_is_said_in_many_words(text: str) -> None:
    said = complained()
    before = values(said)
    said.say(text)
    assert (said.conversation["status"], values(said)) == ("submitting", before)


@each_case("text", NO_SENDS)
def test_at_the_review_anything_beside_such_a_yes_sends_nothing(text: str) -> None:
    said = complained()
    before = values(said)
    said.say(text)
    assert said.conversation["status"] != "submitting"
    assert values(said) == before


def at_day(language: Language = "es") -> Simulation:
    """Return an appointment that asks for the day."""
    said = Simulation(FORMS["appointment"], Context(language, NOW, "ES"))
    for text in ("Ana García", "ana@ejemplo.com", "612 345 678", "1"):
        said.say(text)
    assert said.conversation["asked"] == "day"
    return said


@pytest.mark.parametrize("text", ["a las 6", "las 6", "a la 1", "pues a las 9", "at 6", "at 10"])
def test_an_hour_is_no_day(text: str) -> None:
    said = at_day("en" if text.startswith("at") else "es")
    said.say(text)
    assert "day" not in values(said)


@each_case(
    ("language", "text", "hour"),
    [
        *(("es", text, "19:00") for text in ("a las 6, digo a las 7", "a las 6 no espera a las 7")),
        *(("es", text, "19:00") for text in ("a las 6 perdón a las 7", "a las 6... no, mejor a las 7 de la tarde")),
        *(("en", text, "19:00") for text in ("6pm no wait 7pm", "at 6 pm, no wait, 7 pm", "6 pm, sorry, 7 pm")),
        *(("en", text, "19:00") for text in ("6pm i mean 7pm", "6pm actually no 7pm", "6pm, or rather 7pm")),
        *(("en", text, "18:00") for text in ("6 pm not 7 pm", "sorry, 6 pm", "actually 6 pm")),
        ("es", "perdón, a las 6", "18:00"),
    ],
)
def test_of_an_answer_that_takes_itself_back_the_last_value_counts(language: Language, text: str, hour: str) -> None:
    for said in (at_day(language), booked(language)):
        if said.conversation["status"] != "review":
            said.say("30/11/2026")
        day = values(said)["day"]
        said.say(text)
        assert (values(said)["hour"], values(said)["day"]) == (hour, day), said.conversation["status"]


@pytest.mark.parametrize("text", ["not at 6", "not 6 pm", "it's not at 6 pm"])
def test_a_value_that_is_denied_is_not_put_in(text: str) -> None:
    said = booked("en")
    said.say(text)
    assert values(said)["hour"] == "10:00"
    said.say("at 7 pm")
    assert values(said)["hour"] == "19:00"


@pytest.mark.parametrize(
    "text",
    [
        "una cosa",
        "vale una cosa, ¿cuánto cuesta?",
        "oye una cosa",
        "sí, una cosa, ¿puedo llevar a mi perro?",
        "la cosa",
    ],
)
def test_what_says_no_more_than_a_thing_is_no_option(text: str) -> None:
    said = booked()
    said.say(text)
    assert values(said)["service"] == "first_visit"


@pytest.mark.parametrize("text", ["a las 7 de la tarde", "la hora, a las 7 de la tarde", "hora 19:00", "19:00", "2"])
def test_which_answer_is_meant_may_be_told_by_a_value_of_it(text: str) -> None:
    said = booked()
    said.conversation = {**said.conversation, "choosing": ["day", "hour"]}
    said.say(text)
    if text == "2":
        said.say("a las 7 de la tarde")
    assert values(said)["hour"] == "19:00"
    assert said.conversation["status"] == "review"


@pytest.mark.parametrize(
    ("language", "text", "told"),
    [
        ("es", "la fecha es el 5 de diciembre", "Anotado: fecha: sábado 5 de diciembre de 2026."),
        ("en", "my phone is 612 345 678", "Noted: phone number: +34 612 34 56 78."),
        ("es", "ana@ejemplo.com", "Anotado: correo: ana@ejemplo.com."),
    ],
)
def test_what_is_taken_for_another_answer_than_the_asked_one_is_said(language: Language, text: str, told: str) -> None:
    said = Simulation(FORMS["appointment"], Context(language, NOW, "ES"))
    reply = said.say(text).turn["response"]
    assert reply.startswith(told), reply
