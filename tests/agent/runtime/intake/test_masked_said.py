"""What was masked in a person's message is said in the reply, once, in their language, whatever it is the reply to."""

from __future__ import annotations

import re

import pytest
from phylactery_agent.ports import Language
from phylactery_agent.runtime.intake.redaction import masks_told, without_masks_told

from tests.support.agent.system import Person, System
from tests.support.agent.threads import watched

KEY = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
ENGLISH, SPANISH = "I do not keep passwords, PINs or keys", "No guardo contraseñas, PIN ni claves"


@pytest.mark.parametrize(
    ("text", "says", "mask"),
    [
        ('write "my password is Hunter2x9Q" to a.txt', ENGLISH, "«password»"),
        ('escribe "mi contraseña es Gato99Perro" en a.txt', SPANISH, "«password»"),
        ("remind me tomorrow at 9 am that my password is Hunter2x9Q", ENGLISH, "«password»"),
        (f"repite {KEY}", SPANISH, "«stripe_key»"),
        ("hola, mi contraseña es Gato99Perro", SPANISH, "«password»"),
        ("send an email to ana@acme.example saying my password is Hunter2x9Q", ENGLISH, "«password»"),
    ],
)
async def test_what_was_masked_is_said_once_before_whatever_is_said_of_the_message(
    ana: Person, text: str, says: str, mask: str
) -> None:
    reply = (await ana.say(text)).reply.text
    assert reply.startswith(says)
    assert reply.partition(".")[0].endswith(f"{'says' if says == ENGLISH else 'dirá'} {mask}")
    assert reply.count(says) == 1
    assert ("user", mask) in [(role, found[0]) for role, said in await ana.transcript() if (found := _masks(said))]


def _masks(text: str) -> list[str]:
    return re.findall("«[a-z_]+»", text)


async def test_two_kinds_are_named_and_the_next_message_says_nothing_of_them(ana: Person) -> None:
    first = (await ana.say(f"repeat my password is Hunter2x9Q and the key is {KEY}")).reply.text
    assert {"«password»", "«stripe_key»"} <= set(_masks(first.partition("\n")[0]))
    second = (await ana.say("hello")).reply.text
    assert ENGLISH not in second
    assert SPANISH not in second


async def test_the_event_that_channels_deliver_says_it_and_a_repeated_request_gets_the_same(
    system: System, ana: Person
) -> None:
    first = await ana.say(f"repite {KEY}", request_id="request-0001")
    again = await ana.say(f"repite {KEY}", request_id="request-0001")
    assert first.reply.text == again.reply.text
    last = (await ana.thread()).last_sequence
    async with watched(ana, "t1") as watch:
        events = await watch.until(last)
    assert [event.message.text for event in events if event.WhichOneof("kind") == "message"] == [first.reply.text]


@pytest.mark.parametrize("text", ["lee notas.txt", 'escribe "hola" en a.txt', "hola", "my e-mail is ana@acme.example"])
async def test_of_a_message_in_which_nothing_was_masked_nothing_is_said(ana: Person, text: str) -> None:
    reply = (await ana.say(text)).reply.text
    assert ENGLISH not in reply
    assert SPANISH not in reply


async def test_what_still_waits_is_named_by_its_question_and_not_by_what_was_masked(ana: Person) -> None:
    first = (await ana.say("remember that my wifi password is Hunter2x9Q")).reply.text
    assert first.startswith(ENGLISH)
    second = (await ana.say('write "x" to a.txt')).reply.text
    assert ENGLISH not in second


@pytest.mark.parametrize("language", ["es", "en"])
@pytest.mark.parametrize("in_form", [True, False])
def test_the_sentence_is_taken_off_a_reply_again(language: Language, in_form: bool) -> None:
    told = masks_told('["secret:password", "personal:email", "secret:aws_key"]', language, in_form=in_form)
    assert _masks(told) == ["«password»", "«aws_key»"]
    assert without_masks_told(f"{told}\n\nSaved.\n\nMore.") == "Saved.\n\nMore."
    assert without_masks_told("Saved.\n\nMore.") == "Saved.\n\nMore."
    assert (
        masks_told('["personal:email"]', language, in_form=in_form) == masks_told("", language, in_form=in_form) == ""
    )
