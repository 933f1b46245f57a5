"""The agent's memories of a person, with the real RiskGate and memory."""

from __future__ import annotations

import re
from typing import Any

import pytest
from phylactery.memory.v1 import memory_pb2_grpc, user_memory_pb2
from phylactery_agent.adapters.memory import MemoriesAdapter
from phylactery_agent.adapters.riskgate import RiskGateAdapter
from phylactery_agent.ports import GateDecision, MemoryUnavailableError, Remembered
from phylactery_agent.runtime.effects.ledger import SqlLedger
from phylactery_agent.runtime.storage.records import Owner

from tests.support.agent.system import DONE, Person, System


async def memories(system: System, person: Person) -> list[user_memory_pb2.Memory]:
    stub = memory_pb2_grpc.MemoryServiceStub(system.memory_channel)
    request = user_memory_pb2.ListMemoriesRequest(include_invalid=True)
    return list((await stub.ListMemories(request, metadata=person.metadata)).memories)


async def test_what_a_person_asks_to_remember_counts_as_their_own_word_and_is_found_in_another_thread(
    system: System, ana: Person
) -> None:
    asked = await ana.say("recuerda que mi perro se llama Nilo", "t1")
    assert (asked.run.status, asked.reply.text) == (DONE, "Lo recordaré: mi perro se llama Nilo")
    [kept] = await memories(system, ana)
    assert (kept.text, kept.trust, kept.thread_id) == ("mi perro se llama Nilo", user_memory_pb2.TRUST_USER, "t1")
    [origin] = kept.lineage
    assert (origin.message.thread_id, origin.message.message_id.endswith(".user")) == ("t1", True)
    found = await ana.say("¿qué recuerdas sobre mi perro?", "t2")
    assert "mi perro se llama Nilo" in found.reply.text
    assert (
        "(Nada que coincida con esas palabras.)"
        in (await system.person("ben").say("¿qué recuerdas sobre mi perro?", "t2")).reply.text
    )


async def test_the_transcript_holds_the_message_once_though_remembering_needed_it_early(ana: Person) -> None:
    await ana.say("recuerda que prefiero el té", "t1")
    assert await ana.transcript("t1") == [
        ("user", "recuerda que prefiero el té"),
        ("assistant", "Lo recordaré: prefiero el té"),
    ]


@pytest.mark.parametrize(
    ("said", "later"),
    [
        ("recuerda que vivo en Lima", "no, es mentira"),
        ("remember that I live in Lima", "no, forget it"),
        ("me llamo Lima", "es broma"),
        ("my name is Lima", "just kidding"),
    ],
)
async def test_what_is_taken_back_in_the_same_breath_is_not_remembered(
    system: System, ana: Person, said: str, later: str
) -> None:
    await ana.say(f"{said}\n{later}", "t1", message_starts=[len(said) + 1])
    await ana.say(f"{said}. {later}", "t2")
    assert await memories(system, ana) == []
    assert "Lima" not in (await ana.say("¿dónde vivo? ¿cómo me llamo?", "t3")).reply.text


async def test_a_password_is_not_remembered(system: System, ana: Person) -> None:
    answer = await ana.say("recuerda que mi contraseña es hunter2xyz")
    assert "no guardo contraseñas" in answer.reply.text
    assert await memories(system, ana) == []


async def test_what_a_person_says_of_themselves_is_remembered_after_the_turn_and_small_talk_is_not(
    system: System, ana: Person
) -> None:
    for text in ("Vivo en Lima y prefiero el té.", "hola", "lee notas.txt", "¿vivo lejos?"):
        await ana.say(text)
    await system.agent.delivery.flush_all()
    kept = await memories(system, ana)
    assert {one.text: one.trust for one in kept} == dict.fromkeys(
        ("Vivo en Lima", "prefiero el té."), user_memory_pb2.TRUST_USER
    )
    assert {origin.message.thread_id for one in kept for origin in one.lineage} == {"t1"}


async def test_a_request_to_remember_leaves_one_memory_and_none_where_riskgate_refuses(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ana.say("recuerda que prefiero el té")
    await system.agent.delivery.flush_all()
    assert [kept.text for kept in await memories(system, ana)] == ["prefiero el té"]

    async def refuses(*_args: Any, **_where: Any) -> GateDecision:
        return GateDecision("de_1", "BLOCKED", (), (), "low", None)

    monkeypatch.setattr(RiskGateAdapter, "evaluate", refuses)
    ben = system.person("ben")
    await ben.say("recuerda que prefiero el café")
    await system.agent.delivery.flush_all()
    assert await memories(system, ben) == []


async def test_what_a_tool_answers_is_never_remembered(system: System, ana: Person) -> None:
    system.sandbox.joinpath("nota.txt").write_text("Vivo en Quito y siempre prefiero el mate.")
    assert "prefiero el mate" in (await ana.say("lee nota.txt")).reply.text
    await system.agent.delivery.flush_all()
    assert await memories(system, ana) == []


async def test_what_the_person_did_not_say_is_remembered_as_a_texts_once_something_was_read(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def has_read(_ledger: SqlLedger) -> bool:
        return True

    async def misled(self: MemoriesAdapter, text: str, **about: Any) -> Remembered:
        return await real(self, "mi banco es Banco Malo" if "banco" in text else text, **about)

    real = MemoriesAdapter.write
    monkeypatch.setattr(SqlLedger, "has_read", has_read)
    monkeypatch.setattr(MemoriesAdapter, "write", misled)
    await ana.say("recuerda que el banco cierra tarde")
    await ana.say("recuerda que prefiero el té")
    kept = {one.text or one.untrusted_text: one.source for one in await memories(system, ana)}
    assert kept == {
        "mi banco es Banco Malo": user_memory_pb2.MEMORY_SOURCE_TEXT,
        "prefiero el té": user_memory_pb2.MEMORY_SOURCE_USER,
    }


async def test_words_said_while_memory_was_away_are_remembered_once_when_it_is_back(
    system: System, ana: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = MemoriesAdapter.write, []

    async def lost_answer(self: MemoriesAdapter, text: str, **about: Any) -> Remembered:
        answer = await real(self, text, **about)
        seen.append(text)
        if len(seen) == 1:
            raise MemoryUnavailableError("the answer got lost")
        return answer

    monkeypatch.setattr(MemoriesAdapter, "write", lost_answer)
    await ana.say("Vivo en Lima.")
    while not await system.agent.delivery.flush_all():
        pass
    assert len(seen) == 2
    assert [kept.text for kept in await memories(system, ana)] == ["Vivo en Lima."]


async def test_words_delivered_late_do_not_retire_what_was_said_since(system: System, ana: Person) -> None:
    owner, early = Owner("acme", "ana"), system.clock.now_us()
    await ana.say("Vivo en Lima.", "t1")
    await system.agent.delivery.flush_all()
    system.clock.advance(60)
    await ana.say("Vivo en Quito.", "t2")
    await system.agent.delivery.flush_all()
    first = next(kept for kept in await memories(system, ana) if kept.text == "Vivo en Lima.")
    await system.agent.services.memories(owner).write(
        "Vivo en Lima.",
        thread_id="t1",
        message_ids=[first.lineage[0].message.message_id],
        valid_us=early,
        keep=False,
    )
    holds = [kept.text for kept in await memories(system, ana) if not kept.HasField("invalid_at")]
    assert holds == ["Vivo en Quito."]


async def test_an_evicted_output_is_brought_back_whole_once_asked_for_and_a_long_one_by_parts_alone(
    system: System, ana: Person
) -> None:
    def pointer_in(text: str) -> str:
        found = re.search(r"lee la salida ([A-Za-z0-9_-]+) desde", text)
        assert found is not None
        return found.group(1)

    whole = "".join(f"línea {number}\n" for number in range(3_000))
    system.sandbox.joinpath("registro.txt").write_text(whole)
    pointer = pointer_in((await ana.say("lee registro.txt")).reply.text)
    answer = await ana.say(f"recupera la salida {pointer}")
    assert answer.reply.text == f"Salida {pointer}, entera:\n{whole}".strip()
    assert [(call.tool, call.status, call.pointer) for call in answer.run.tool_calls] == [
        ("rehydrate_output", "success", "")
    ]
    system.sandbox.joinpath("largo.txt").write_text("x" * 50_000)
    long = pointer_in((await ana.say("lee largo.txt")).reply.text)
    assert "too long to bring back whole" in (await ana.say(f"bring back output {long}")).reply.text
    stranger = await system.person("ben").say(f"recupera la salida {pointer}")
    assert "no existe esa salida" in stranger.reply.text


async def test_an_evicted_output_is_searched_line_by_line(system: System, ana: Person) -> None:
    lines = [f"línea {number}: {'ERROR' if number % 1_000 == 7 else 'bien'}" for number in range(1, 3_001)]
    system.sandbox.joinpath("registro.txt").write_text("\n".join(lines))
    pointer = re.search(r"lee la salida ([A-Za-z0-9_-]+) desde", (await ana.say("lee registro.txt")).reply.text)
    assert pointer is not None
    found = (await ana.say(f"busca error en la salida {pointer.group(1)}")).reply.text.splitlines()
    total = len("\n".join(lines))
    assert found == [
        f"En la salida {pointer.group(1)}:",
        f"[3; 0-{total} / {total}]",
        "7:línea 7: ERROR",
        "1007:línea 1007: ERROR",
        "2007:línea 2007: ERROR",
    ]
    assert "no existe esa salida" in (await ana.say("busca error en la salida out_abcdefghijkl")).reply.text
    stranger = await system.person("ben").say(f"busca error en la salida {pointer.group(1)}")
    assert "no existe esa salida" in stranger.reply.text
