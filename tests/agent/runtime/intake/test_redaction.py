"""Redaction at intake: only inspected text is stored, and the original text is evidence within its turn only."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from grpc import StatusCode, aio
from phylactery_agent.ports import GateRefusedError, Inspected
from phylactery_agent.rules.intents import asks_not_to_store, is_fixed_talk, without_store_phrase
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.storage.records import Owner
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_chassis.errors import InvalidArgument, Unavailable

from tests.support.agent.inspector import LocalInspector
from tests.support.agent.system import Person, System
from tests.support.cases import each_case

KEY = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
ANA = Owner("acme", "ana")


class Edge:
    """Sanitizing over RiskGate's rules in this process."""

    def __init__(self) -> None:
        self.rules = LocalInspector()
        self.refusal: GateRefusedError | None = None
        self.sealer = Sealer(b"k" * 32)
        self.edge = Sanitizing(self, self.sealer)  # type: ignore[arg-type]

    def inspector(self, _owner: Owner) -> Any:
        return self

    async def inspect(self, text: str) -> Inspected:
        if self.refusal is not None:
            raise self.refusal
        return await self.rules.inspect(text)


@pytest.fixture
def edge() -> Edge:
    return Edge()


async def test_a_secret_is_redacted_and_the_own_words_are_sealed_to_the_turn(edge: Edge) -> None:
    taken = await edge.edge.take(ANA, f"guarda {KEY} en a.txt", turn_id="tu_1")
    assert KEY not in taken.text
    assert taken.findings == '["secret:stripe_key"]'
    assert taken.sealed_words is not None
    assert KEY.encode() not in taken.sealed_words
    assert edge.sealer.open(taken.sealed_words, turn_id="tu_1.words") == f"guarda {KEY} en a.txt"
    assert taken.sealed_code is None


async def test_personal_data_is_named_and_stays_and_nothing_needs_a_seal(edge: Edge) -> None:
    text = "escribe a bob@acme.es"
    taken = await edge.edge.take(ANA, text, turn_id="tu_1")
    assert (taken.text, taken.findings, taken.sealed_words) == (text, '["personal:email"]', None)


async def test_a_code_is_taken_out_before_anybody_looks_at_the_text(edge: Edge) -> None:
    taken = await edge.edge.take(ANA, "APROBAR ap_waiting0 abcdefgh23", turn_id="tu_1")
    assert taken.text == "APROBAR ap_waiting0 ________"
    assert all("abcdefgh23" not in text for text in edge.rules.looked_at)
    assert taken.sealed_code is not None
    assert edge.sealer.open(taken.sealed_code, turn_id="tu_1") == "abcdefgh23"


REPLY = "RECHAZAR ap_" + "a2b3c4d5e6f7a2b3c4d5e6f7a2"


@pytest.mark.parametrize("text", ["hola", "Buenos días", "gracias", "help", "what can you do?", "adiós", REPLY])
async def test_words_that_are_all_known_cost_no_call_and_are_taken_in_without_riskgate(edge: Edge, text: str) -> None:
    edge.rules.available = False
    taken = await edge.edge.take(ANA, text, turn_id="tu_1")
    assert (taken.text, taken.findings) == (text, "[]")
    assert edge.rules.looked_at == []


@pytest.mark.parametrize(
    "text",
    ["gracias por todo, la clave es hunter2", "hola soy Ana", f"thanks {KEY}", f"RECHAZAR {KEY}", "lee notas.txt"],
)
async def test_any_free_word_is_looked_at_and_without_riskgate_the_message_is_not_taken_in(
    edge: Edge, text: str
) -> None:
    await edge.edge.take(ANA, text, turn_id="tu_1")
    assert edge.rules.looked_at == [text]
    edge.rules.available = False
    with pytest.raises(Unavailable) as error:
        await edge.edge.take(ANA, text, turn_id="tu_2")
    assert error.value.reason == "RISKGATE_UNAVAILABLE"
    assert KEY not in str(error.value)


async def test_a_text_nobody_can_look_at_whole_is_refused_and_a_riskgate_that_refuses_us_counts_as_away(
    edge: Edge,
) -> None:
    edge.refusal = GateRefusedError("TOO_MANY_FINDINGS", "too many")
    with pytest.raises(InvalidArgument):
        await edge.edge.take(ANA, "algo", turn_id="tu_1")
    edge.refusal = GateRefusedError("ROLE_REQUIRED", "no")
    with pytest.raises(Unavailable):
        await edge.edge.take(ANA, "algo", turn_id="tu_1")


@each_case(
    ("text", "rest"),
    [
        ("lee notas.txt, no guardes esto", "lee notas.txt"),
        ("No guardes nada de esto: lee notas.txt", "lee notas.txt"),
        ("read notes.txt and do not store this.", "read notes.txt"),
        ("Don't keep this message. read notes.txt", "read notes.txt"),
        ("no guardes esto", ""),
        ("no guarde esto, por favor: lee notas.txt", "lee notas.txt"),
        ("lee notas.txt y no lo guardes", "lee notas.txt"),
        ("lee notas.txt, no guardes nada", "lee notas.txt"),
        ("lee notas.txt sin guardar nada", "lee notas.txt"),
        ("No guardes este archivo. lee el adjunto", "lee el adjunto"),
        ("lee el adjunto, que no quede registro de esto", "lee el adjunto"),
        ("lee notas.txt, no dejes constancia", "lee notas.txt"),
        ("no quiero que guardes lo que te cuento. lee notas.txt", "lee notas.txt"),
        ("lee notas.txt. No memorices esto", "lee notas.txt"),
        ("read notes.txt, please don't keep it", "read notes.txt"),
        ("read notes.txt without storing it", "read notes.txt"),
        ("Off the record: read notes.txt", "read notes.txt"),
        ("Do not keep a copy of this file. read notes.txt", "read notes.txt"),
        ("read notes.txt and don’t log this", "read notes.txt"),
        ("I don't want you to remember this. read notes.txt", "read notes.txt"),
        ("Never save these documents: read notes.txt", "read notes.txt"),
        ("keep this out of your memory, read notes.txt", "read notes.txt"),
        ("please do not keep any record of this. read notes.txt", "read notes.txt"),
        ("this must not be stored. read notes.txt", "read notes.txt"),
        ("This shouldn't be saved: read notes.txt", "read notes.txt"),
        ("nothing of this is to be kept, read notes.txt", "read notes.txt"),
        ("no guardes lo que te acabo de decir. lee notas.txt", "lee notas.txt"),
        ("no guardes nada de lo que te diga: lee notas.txt", "lee notas.txt"),
        ("no guardes el archivo adjunto. lee notas.txt", "lee notas.txt"),
    ],
)
def test_a_person_says_that_nothing_is_to_be_kept_in_both_languages(text: str, rest: str) -> None:
    assert asks_not_to_store(text)
    assert without_store_phrase(text) == rest


@each_case(
    "text",
    [
        "guarda esto",
        "no guardes la puerta",
        "do not storethis",
        "store this",
        "hola",
        "no guardes nada en la carpeta de ana",
        "don't keep it in the fridge",
        "don't forget this",
        "no lo guardes en notas.txt",
        "keep this in notes.txt",
        "no recuerdo esto",
        "this must be stored in notes.txt",
        "it should be saved every day",
        "this can be kept",
        "this is to be recorded in the minutes",
        "I don't remember this",
        "I do not remember that.",
        "we never keep it",
        "they don't log this",
        "why don't you save it?",
        "come todo, que no quede nada",
    ],
)
def test_what_only_looks_like_that_wish_is_none(text: str) -> None:
    assert not asks_not_to_store(text)
    assert without_store_phrase(text) == text


def test_fixed_talk_has_no_free_part() -> None:
    assert is_fixed_talk("muchas gracias!")
    assert not is_fixed_talk("gracias hunter2")
    assert not is_fixed_talk("hola hunter2")


async def test_no_store_ever_holds_a_secret_that_was_said_and_riskgate_still_gets_the_own_words(
    system: System, ana: Person
) -> None:
    answer = await ana.say(f"repite la clave {KEY}")
    assert KEY not in answer.reply.text
    assert "«stripe_key»" in answer.reply.text
    assert (await ana.transcript())[0] == ("user", "repite la clave «stripe_key»")
    await system.agent.delivery.flush_all()
    assert KEY.encode() not in system.everything_stored()
    with closing(sqlite3.connect(system.folder / "agent" / "agent.db")) as database:
        [row] = database.execute("SELECT findings, sealed_words, sealed_code FROM agent_inbox").fetchall()
    assert row == ('["secret:stripe_key"]', None, None)


async def test_what_was_found_in_a_message_is_told_by_kind_and_never_by_value(system: System, ana: Person) -> None:
    events = await ana.stream(f"repite {KEY} a bob@acme.es")
    notices = [event.notice for event in events if event.WhichOneof("kind") == "notice"]
    assert [(notice.reason, list(notice.kinds), notice.direction) for notice in notices] == [
        ("SECRETS_REDACTED", ["stripe_key"], "in"),
        ("PERSONAL_DATA", ["email"], "in"),
        ("PERSONAL_DATA", ["email"], "out"),
    ]
    assert all(KEY not in str(event) for event in events)


@pytest.mark.slow
async def test_without_riskgate_a_message_is_not_taken_in_and_the_same_one_is_served_when_it_is_back(
    system: System, ana: Person
) -> None:
    first = await ana.say("hola", request_id="request-0")
    await system.stop("riskgate")
    with pytest.raises(aio.AioRpcError) as error:
        await ana.say("repite hola", request_id="request-1")
    assert error.value.code() == StatusCode.UNAVAILABLE
    assert (await ana.say("hola", request_id="request-0")).reply.id == first.reply.id
    with closing(sqlite3.connect(system.folder / "agent" / "agent.db")) as database:
        assert database.execute("SELECT count(*) FROM agent_inbox").fetchone() == (1,)
    await system.come_back("riskgate")
    assert (await ana.say("repite hola", request_id="request-1")).reply.text == "hola"


async def test_a_message_that_was_taken_in_is_answered_again_while_riskgate_is_away(
    system: System, ana: Person
) -> None:
    first = await ana.say("repite hola", request_id="request-1")
    await system.stop("riskgate")
    assert (await ana.say("repite hola", request_id="request-1")).reply.text == first.reply.text
