"""Commands to the conversation: stop, hold on, help, a person; and what only contains their words, or denies them."""

from __future__ import annotations

import pytest
from phylactery_agent.rules.commands import denies_wish, read_command

from tests.support.cases import each_case

PERSON = """
quiero hablar con una persona, se me ha roto la lavadora
Se me ha roto la lavadora. Quiero hablar con una persona
se me ha roto la lavadora y quiero hablar con alguien
necesito cambiar mi pedido y quiero hablar con una persona
no, quiero hablar con una persona
que no, que quiero hablar con una persona
no quiero hablar con un robot, quiero hablar con una persona
¿por qué no puedo hablar con una persona?
«quiero hablar con una persona»
kiero hablar con una persona porfa
ponme con alguien de tu equipo
QUIERO HABLAR CON ALGUIEN!!!
necesito hablar urgentemente con una persona
I want to talk to a person, my washing machine is broken
My washing machine is broken. Can I talk to a human?
I don't want to talk to a bot, I want to talk to a person
why can't I talk to a person?
this is useless, get me a manager
please put me through to somebody
write hello to a.txt. I want to talk to a person
asdf\\nI need a human
"""
NOBODY = """
no quiero hablar con una persona
ya no quiero hablar con una persona
pero no necesito una persona
en la foto, hay una persona
busco a una persona, se llama Ana Ruiz
no hace falta que me atienda una persona
no me pases con una persona
no quiero que me llame una persona
I don't want to talk to a human
i'd rather not talk to a person
don't put me through to an agent
I want to talk to a person no more
gracias, agente
thanks, agent
write "hi, I want to talk to a person, thanks" to a.txt
escribe en a.txt: quiero hablar con una persona
manda un correo a ana@example.org diciendo hola, quiero hablar con una persona
remember that my washer broke and I want to talk to a person
recuérdame comprar pan y hablar con una persona
add milk to list.txt and call a person
dile a Juan que quiero hablar con una persona
no sé si quiero hablar con una persona
si quiero hablar con una persona, ¿qué digo?
quiero un agente de viajes
ayer quise hablar con una persona
"""
HELP = "help|Ayuda!!|ayúdame, por favor|could you help me please?|necesito ayuda|what can you do?|help files|/help|menú"
NO_HELP = "no necesito ayuda|I don't need help|write \"help\" to a.txt|help.txt|no sé|what?|I don't understand|help Ana"


def lines(text: str) -> list[str]:
    return [line.replace("\\n", "\n") for line in text.strip().splitlines()]


@each_case("text", lines(PERSON))
def test_a_wish_for_a_person_is_heard_in_any_clause(text: str) -> None:
    assert read_command(text) == "person"


@each_case("text", lines(NOBODY))
def test_a_denied_wish_and_what_is_written_sent_or_reported_call_nobody(text: str) -> None:
    assert read_command(text) is None


@each_case(
    ("text", "command"),
    [
        *((text, "help") for text in HELP.split("|")),
        *((text, None) for text in NO_HELP.split("|")),
        *((text, "stop") for text in ("para", "Stop!", "cancela todo, por favor")),
        *((text, "hold") for text in ("espera", "hold on")),
        *((text, None) for text in ("no pares", "don't stop", "no quiero cancelar", "hola", "gracias", "sí", "no")),
    ],
)
def test_help_and_stops_are_read_whole(text: str, command: str | None) -> None:
    assert read_command(text) == command


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("no quiero poner una queja", True),
        ("hola, ya no necesito una cita", True),
        ("I don't want to file a complaint", True),
        ("i'd rather not book anything", True),
        ("quiero poner una queja", False),
        ("no me llegó el pedido, quiero poner una queja", False),
        ("no, quiero poner una queja", False),
    ],
)
def test_a_wish_is_denied_where_its_verb_is(text: str, denied: bool) -> None:
    assert denies_wish(text) is denied
