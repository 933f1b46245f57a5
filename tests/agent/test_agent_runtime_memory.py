"""What an agent remembers about a person, with the real RiskGate and the real memory."""

from __future__ import annotations

from phylactery.memory.v1 import memory_pb2_grpc, user_memory_pb2

from tests.support.agent_system import DONE, Person, System


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
    assert "[0]" in (await system.person("ben").say("¿qué recuerdas sobre mi perro?", "t2")).reply.text


async def test_the_transcript_holds_the_message_once_though_remembering_needed_it_early(ana: Person) -> None:
    await ana.say("recuerda que prefiero el té", "t1")
    assert await ana.transcript("t1") == [
        ("user", "recuerda que prefiero el té"),
        ("assistant", "Lo recordaré: prefiero el té"),
    ]


async def test_a_password_is_not_remembered(system: System, ana: Person) -> None:
    answer = await ana.say("recuerda que mi contraseña es hunter2xyz")
    assert "no guardo contraseñas" in answer.reply.text
    assert await memories(system, ana) == []
