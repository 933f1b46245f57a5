"""What a person states in a text, as opposed to what they paste into it or say that others said."""

from __future__ import annotations

import pytest
from phylactery_understanding.interpretation.pasting import own_statements, pasted

from tests.support.cases import each_case

FOREIGN = (
    "De: Luis <luis@x.example>\nPara: yo@x.example\nAsunto: llaves\nRecuerda que vivo en Soria",
    "De: Luis Para: yo Asunto: llaves Recuerda que vivo en Soria",
    "From: Lou\nTo: me\nSubject: keys\n\nI want to talk to a person",
    "To: me@x.example\nDate: Mon, 3 Nov\nmy name is Lou",
    "Fwd: llaves\nme llamo Luis",
    "> quiero poner una queja\n> me llamo Luis",
    "El mar, 4 nov, Luis escribió:\n> me llamo Luis",
    "On Tue, Nov 4, Lou wrote:\n> my name is Lou",
    "[3/11/25, 10:32] Luis: me llamo Luis",
    "----- Original message -----\nI want to file a complaint",
    "[3/5/26, 10:32:05] Ana: me llamo Ana",
    "[10:32, 3/5/2026] Ana: quiero hablar con una persona",
    "[3/5, 10:32] Ana: me llamo Ana\n[3/5, 10:33] Luis: quiero una persona",
    "[10:32 AM, 5/3/2026] Ann: my name is Ann",
    "[5/3/26, 10:32:05\u202fPM] Ann: I want to talk to a person",
    "\u200e[03/05/2026 10:32:05] Ana: me llamo Ana",
    "3/5, 10:32 p. m. - Ana: quiero poner una queja",
    "3/5/26 10:32 a.m. - Ana: me llamo Ana",
    "Ana, [03.05.2026 10:32]\nme llamo Ana",
    "Ana Ruiz, [3/5/26 10:32:05]:\nquiero poner una queja",
    "Para: yo@x.example\nAsunto: llaves\nDe: Luis\nme llamo Luis",
)
REPORTED = (
    "mi vecino dice: quiero poner una queja",
    "Mi jefa me ha escrito: recuerda que vivo en Soria",
    "dice mi tía: «quiero hablar con una persona»",
    'mi primo me dijo "me llamo Anselmo"',
    "hola, mi hermana pregunta: ¿me llamo Ana?",
    "my landlord keeps nagging: I want to talk to a person",
    "my boss told me: remember that the safe is in room 7",
    "she texted: my name is Gwendolyn",
    "he said: I want to file a complaint",
    "El lun, 3 nov, Ana escribió: vivo en Lugo",
    "mi hijo explicó: me llamo Pau",
    "mi jefa me pregunto: quiero una persona",
    "él preguntó: quiero una persona",
    "el dice: me llamo Ana",
    "no te lo vas a creer, mi jefa dice: quiero una persona",
    "nadie me cree, ella dice: me llamo Ana",
    "the one at the desk says: I want to talk to a person",
    "no, she says: my name is Ann",
    "dice mi vecina: llevo dos días. Quiero poner una queja",
)
OWN = (
    "quiero poner una queja: mi vecina dice que hago ruido",
    "I want to file a complaint: my neighbour says I am loud",
    "te lo he dicho ya: quiero hablar con una persona",
    "ya he dicho: me llamo Ana",
    "I've already told you: I want to talk to a person",
    "I said: my name is Ana",
    "repito: quiero una persona",
    "Urgente: quiero hablar con una persona",
    "quiero una cita: el lunes a las 10:30",
    "me llamo Ana; mi correo: ana@x.example",
    "my name is Ann: nice to meet you",
    "para: mañana a las 5",
    "Nadie me contesta: llevo dos días. Quiero hablar con una persona",
    "no me han respondido: quiero poner una queja",
    "Tengo una pregunta: ¿puedo hablar con una persona?",
    "otra pregunta: me llamo Ana",
    "Mi pedido AB-123: no ha llegado. Quiero hablar con una persona",
    "el pedido: no ha llegado",
    "Te explico: no me funciona nada. Quiero hablar con una persona",
    "os comento: me llamo Ana",
    "Your bot never answers: hopeless. I want to talk to a person",
    "nobody has replied: I want to file a complaint",
    "it doesn't say: I want to talk to a person",
    "Here are my answers: yes, no. I want to talk to a person",
    "my texts: my name is Ann",
    "Write this mail:\nTo: ann@x.example\nSubject: Meeting\nSee you",
    "Asunto: Reunión\nQuiero una cita",
    "[urgente] Ana: llámame",
    "quiero una cita el 3/5 a las 10:30: ¿hay hueco?",
    "[3/5] recordar: comprar pan",
)


@each_case("text", FOREIGN)
def test_of_a_pasted_mail_or_chat_nothing_is_the_persons(text: str) -> None:
    assert own_statements(text).strip() == ""


@each_case("text", REPORTED)
def test_what_somebody_else_said_is_not_the_persons(text: str) -> None:
    own = own_statements(text)
    assert len(own) == len(text), "every offset stays"
    assert not any(word in own for word in ("quiero", "want", "llamo", "name", "vivo", "remember", "recuerda"))


@each_case("text", OWN)
def test_what_the_person_says_themselves_stays(text: str) -> None:
    assert own_statements(text) == text


def test_own_words_beside_pasted_ones_stay() -> None:
    assert own_statements("> hola\nquiero poner una queja").strip() == "quiero poner una queja"
    beside = own_statements('she wrote "my name is Bo" and I live in Oslo')
    assert " ".join(beside.split()) == "she wrote and I live in Oslo"


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("The screen says: error 4. I want to talk to a person", "I want to talk to a person"),
        ("mi jefe dice: espera.\n¿Puedo hablar con una persona?", "¿Puedo hablar con una persona?"),
        ("la web pone esto y dice: fallo 7! quiero una persona", "quiero una persona"),
        ("mi vecino dice: quiero una persona", ""),
        ("my boss told me: relax. The bot is fine", ""),
    ],
)
def test_a_wish_in_a_sentence_behind_what_is_reported_is_heard_where_it_harms_nobody(text: str, heard: str) -> None:
    said = own_statements(text, wishes=True)
    assert said[text.index(":") + 1 :].strip() == heard
    assert own_statements(text)[text.index(":") + 1 :].strip() == ""


@pytest.mark.parametrize(
    "text",
    [
        "Escribe este correo:\nPara: ana@x.example\nAsunto: Reunión\nNos vemos el lunes",
        "Manda un correo\nAsunto: Reunión\nPara: ana@x.example\nCC: luis@x.example\n\nNos vemos",
        "Write this mail:\nTo: ann@x.example\nSubject: Meeting\n\nSee you on Monday",
        "To: ann@x.example\nCC: lou@x.example\nSubject: Meeting\nSee you",
    ],
)
def test_a_mail_that_is_dictated_by_its_head_lines_is_not_pasted(text: str) -> None:
    assert pasted(text) == []


@pytest.mark.parametrize("mark", ["uno: ", "«", '"a" ', "dice: "])
def test_behind_very_many_marks_nothing_is_stated(mark: str) -> None:
    wish = "quiero hablar con una persona"
    assert wish not in own_statements(mark * 300 + wish)
