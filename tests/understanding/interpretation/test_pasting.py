"""What a person states in a text, as opposed to what they paste into it or say that others said."""

from __future__ import annotations

import pytest
from phylactery_understanding.interpretation.pasting import own_statements

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
)


@pytest.mark.parametrize("text", FOREIGN)
def test_of_a_pasted_mail_or_chat_nothing_is_the_persons(text: str) -> None:
    assert own_statements(text).strip() == ""


@pytest.mark.parametrize("text", REPORTED)
def test_what_somebody_else_said_is_not_the_persons(text: str) -> None:
    own = own_statements(text)
    assert len(own) == len(text), "every offset stays"
    assert not any(word in own for word in ("quiero", "want", "llamo", "name", "vivo", "remember", "recuerda"))


@pytest.mark.parametrize("text", OWN)
def test_what_the_person_says_themselves_stays(text: str) -> None:
    assert own_statements(text) == text


def test_own_words_beside_pasted_ones_stay() -> None:
    assert own_statements("> hola\nquiero poner una queja").strip() == "quiero poner una queja"
    beside = own_statements('she wrote "my name is Bo" and I live in Oslo')
    assert " ".join(beside.split()) == "she wrote and I live in Oslo"
