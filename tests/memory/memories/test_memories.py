"""Memories over the wire: written, found, and superseding earlier ones, on both databases."""

from __future__ import annotations

import asyncio
import hashlib

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.memory.v1 import user_memory_pb2
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import FailedPrecondition
from phylactery_memory.memories.embeddings import Embedded, NoEmbeddings
from phylactery_memory.memories.model import Origin, Source
from phylactery_memory.memories.service import Draft, Memories
from phylactery_memory.memories.store import MemoryStore

from tests.support.memory_keeper import (
    ASSISTANT,
    BY_SYSTEM,
    BY_USER,
    FACT,
    SEMANTIC,
    SYSTEM,
    TOOL,
    UNTRUSTED,
    USER,
    WEB,
    Code,
    Keeper,
    at,
    reasons,
)


async def test_what_was_written_comes_back_with_every_field(kept, keeper):
    origin = await keeper.say("m1", "Vivo en Lima desde 2019.")
    written = await keeper.write("Vivo en Lima desde 2019", lineage=[origin], importance=0.7, valid_at=at(5))
    memory = written.memory
    assert written.created
    assert reasons(written) == ["FACT"]
    assert (written.decision.layer, written.decision.explanation_es) == (SEMANTIC, "Afirma un hecho duradero.")
    assert (memory.text, memory.untrusted_text) == ("Vivo en Lima desde 2019", "")
    assert (memory.layer, memory.kind, memory.source, memory.trust) == (SEMANTIC, FACT, USER, BY_USER)
    assert (memory.thread_id, memory.sequence, list(memory.lineage)) == ("t1", 1, [origin])
    assert (memory.about, memory.attribute, memory.importance, memory.valid_at) == ("user", "city", 0.7, at(5))
    assert memory.content_hash == "sha256:" + hashlib.sha256(b"Vivo en Lima desde 2019").hexdigest()
    assert not memory.HasField("invalid_at")
    assert memory.create_time.ToMicroseconds() == kept.clock.now_us()
    assert list((await keeper.list()).memories) == [memory]
    (match,) = await keeper.search("¿dónde vive?")
    assert match.memory == memory
    assert match.score > 0


async def test_the_same_text_again_is_the_same_memory(kept, keeper):
    first = await keeper.write("Tengo dos perros", kind=FACT)
    kept.clock.advance(60)
    again = await keeper.write("Tengo dos perros", kind=FACT)
    assert (again.created, again.memory) == (False, first.memory)
    assert reasons(again)[0] == "KNOWN"
    together = await asyncio.gather(*(keeper.write("Tengo un gato") for _ in range(12)))
    assert sum(written.created for written in together) == 1
    assert kept.count("user_memory") == 2


async def test_the_person_takes_over_what_a_page_said_before(keeper):
    page = await keeper.keep("Tengo dos perros", WEB)
    assert (page.trust, page.text, page.untrusted_text) == (UNTRUSTED, "", "Tengo dos perros")
    told = (await keeper.tell("Tengo dos perros", "m1")).memory
    assert (told.memory_id, told.trust, told.text, told.untrusted_text) == (
        page.memory_id,
        BY_USER,
        "Tengo dos perros",
        "",
    )
    assert told.etag != page.etag
    assert (await keeper.keep("Tengo dos perros", WEB)) == told
    assert await keeper.find("perros", min_trust=BY_USER) == ["Tengo dos perros"]


async def test_a_fact_retires_the_one_before_it_and_nothing_else(kept, keeper):
    lima = (await keeper.write("Vivo en Lima")).memory
    dogs = (await keeper.write("Tengo dos perros en Lima")).memory
    kept.clock.advance(100)
    cusco = (await keeper.write("Vivo en Cusco")).memory
    assert list(cusco.supersedes) == [lima.memory_id]
    now = (await keeper.list()).memories
    assert [memory.memory_id for memory in now] == [cusco.memory_id, dogs.memory_id]
    history = (await keeper.list(include_invalid=True, about="user", attribute="city")).memories
    assert [memory.text for memory in history] == ["Vivo en Cusco", "Vivo en Lima"]
    assert history[1].superseded_by == cusco.memory_id
    assert history[1].invalid_at == cusco.valid_at
    assert sorted(await keeper.find("vivo lima")) == ["Tengo dos perros en Lima", "Vivo en Cusco"]
    before = Timestamp(seconds=cusco.valid_at.seconds - 50)
    assert (await keeper.find("vivo lima", as_of=before))[0] == "Vivo en Lima"
    assert len(await keeper.search("vivo lima", include_invalid=True)) == 3


async def test_a_fact_learnt_late_takes_its_place_in_the_past(keeper):
    fact = {"about": "ana", "attribute": "job", "kind": FACT}
    nurse = (await keeper.write("nurse", valid_at=at(0), **fact)).memory
    chief = (await keeper.write("chief nurse", valid_at=at(100), **fact)).memory
    student = (await keeper.write("student", valid_at=at(50), **fact)).memory
    assert (student.invalid_at, student.superseded_by) == (at(100), chief.memory_id)
    for second, expected in (
        (-1, []),
        (0, ["nurse"]),
        (49, ["nurse"]),
        (50, ["student"]),
        (99, ["student"]),
        (100, ["chief nurse"]),
    ):
        page = await keeper.list(as_of=at(second), about="ana", attribute="job")
        assert [memory.text for memory in page.memories] == expected
    again = (await keeper.write("nurse", valid_at=at(200), **fact)).memory
    assert again.memory_id != nurse.memory_id
    assert [m.text for m in (await keeper.list(about="ana", attribute="job")).memories] == ["nurse"]


async def test_what_is_trusted_less_never_holds_beside_what_is_trusted_more(keeper):
    fact = {"about": "ana", "attribute": "job", "kind": FACT}
    await keeper.write("chief nurse", ASSISTANT, valid_at=at(100), **fact)
    await keeper.tell("surgeon", "m1", valid_at=at(200), **fact)
    nurse = (await keeper.tell("nurse", "m2", valid_at=at(50), **fact)).memory
    assert nurse.invalid_at == at(200)
    for second, expected in ((50, "nurse"), (100, "nurse"), (199, "nurse"), (200, "surgeon")):
        page = await keeper.list(as_of=at(second), about="ana", attribute="job")
        assert [memory.text for memory in page.memories] == [expected]


async def test_what_the_person_says_counts_though_the_agent_said_it_before(kept, keeper):
    """The agent's words stand beside the fact, being trusted less: the person's own must not be taken for them."""
    await keeper.tell("Me llamo Ana Gris", "m1")
    kept.clock.advance(1)
    guess = (await keeper.write("Me llamo Eva Gris", ASSISTANT)).memory
    assert guess.attribute == ""
    kept.clock.advance(1)
    told = (await keeper.tell("Me llamo Eva Gris", "m2")).memory
    assert [m.text for m in (await keeper.list(attribute="name")).memories] == ["Me llamo Eva Gris"]
    assert [(m.memory_id, m.trust) for m in (await keeper.list()).memories] == [(told.memory_id, BY_USER)]
    assert [field.text_value for field in (await keeper.user.profile()).fields] == ["Eva Gris"]
    again = await keeper.tell("Me llamo Eva Gris", "m3")
    assert (again.created, again.memory) == (False, told)


async def test_what_the_agent_quotes_of_a_page_stays_the_pages(keeper):
    page = await keeper.keep("Me llamo Mallory", WEB)
    quoted = await keeper.write("Me llamo Mallory", ASSISTANT, keep=True)
    assert (quoted.created, quoted.memory) == (False, page)


async def test_what_a_retired_memory_put_into_the_profile_holds_no_more(kept, keeper):
    old = await keeper.tell("soy vegetariana", "m1")
    assert old.decision.profile_field == "diet"
    kept.clock.advance(1)
    new = (await keeper.tell("Ahora como carne de todo tipo", "m2", attribute="diet", keep=True)).memory
    assert list(new.supersedes) == [old.memory.memory_id]
    profile = await keeper.user.profile(superseded=5)
    assert (list(profile.fields), profile.etag) == ([], "r2")
    assert [(one.text_value, one.invalid_at) for one in profile.superseded] == [("vegetarian", new.valid_at)]


async def test_a_clock_set_back_puts_nothing_said_now_before_what_was_said_earlier(kept, keeper):
    lima = (await keeper.tell("Vivo en Lima", "m1")).memory
    kept.clock.advance(-3_600)
    cusco = (await keeper.tell("Vivo en Cusco", "m2")).memory
    assert (cusco.valid_at, list(cusco.supersedes)) == (lima.valid_at, [lima.memory_id])
    await keeper.tell("Vivo en Puno", "m3")
    kept.clock.advance(7_200)
    assert [m.text for m in (await keeper.list(attribute="city")).memories] == ["Vivo en Puno"]


async def test_what_the_operator_said_only_an_operator_changes(kept, refused):
    operator, person = kept.user("local", "local"), Keeper(kept.user("local", "local"))
    request = user_memory_pb2.WriteMemoryRequest(text="The office closes at six", source=SYSTEM, keep=True)
    said = (await operator.memory.WriteMemory(request)).memory
    for paths, change in ((["text"], {"text": "The office never closes"}), (["invalid_at"], {"invalid_at": at(10**8)})):
        refusal = await refused(person.update(said, *paths, **change))
        assert (refusal.code, refusal.metadata) == (Code.PERMISSION_DENIED, {"role": "operator"})
    change = user_memory_pb2.UpdateMemoryRequest(
        memory_id=said.memory_id, etag=said.etag, text="The office closes at seven", update_mask={"paths": ["text"]}
    )
    assert (await operator.memory.UpdateMemory(change)).memory.trust == BY_SYSTEM


async def test_a_memory_is_not_kept_once_what_it_was_made_from_is_erased(kept):
    """An endpoint may take seconds to answer with a vector, and the person may be erased meanwhile."""
    ana = kept.user()
    await ana.say("m1", "Vivo en Lima")

    class Erasing(NoEmbeddings):
        async def embed(self, texts):
            await ana.erase()
            return Embedded()

    memories = Memories(MemoryStore(kept.database), Erasing(), kept.clock, limit=9)
    with pytest.raises(FailedPrecondition, match="LINEAGE_NOT_FOUND"):
        await memories.write(
            Principal("ana", "acme", frozenset({Role.CALLER})),
            Draft("Vivo en Lima", Source.USER, (Origin("t1", "m1"),)),
        )
    assert kept.count("user_memory") == 0


async def test_what_is_trusted_less_retires_nothing(keeper, refused):
    lima = (await keeper.tell("Vivo en Lima", "m1")).memory
    for source in (ASSISTANT, TOOL, WEB):
        claim = (
            await keeper.write(f"The city is Paris {source}", source, kind=FACT, about="user", attribute="city")
        ).memory
        assert (claim.attribute, list(claim.supersedes)) == ("", [])
        refusal = await refused(keeper.keep(f"Nobody lives here {source}", source, supersedes=lima.memory_id))
        assert (refusal.code, refusal.reason) == (Code.FAILED_PRECONDITION, "MEMORY_TRUSTED_MORE")
    assert [m.text for m in (await keeper.list(attribute="city")).memories] == ["Vivo en Lima"]


async def test_a_named_memory_is_retired_once(kept, keeper, refused):
    old = await keeper.keep("The meeting is on Monday")
    kept.clock.advance(1)
    new = await keeper.keep("The meeting is on Tuesday", supersedes=old.memory_id)
    assert list(new.supersedes) == [old.memory_id]
    assert await keeper.find("meeting") == ["The meeting is on Tuesday"]
    kept.clock.advance(1)
    refusal = await refused(keeper.keep("The meeting is on Friday", supersedes=old.memory_id))
    assert (refusal.code, refusal.reason, refusal.metadata) == (
        Code.FAILED_PRECONDITION,
        "MEMORY_SUPERSEDED",
        {"superseded_by": new.memory_id},
    )
    assert (await refused(keeper.keep("x y z", supersedes="mem_none"))).reason == "MEMORY_NOT_FOUND"


async def test_a_precondition_on_the_standing_fact_lets_one_of_many_writers_win(kept, keeper):
    first = (await keeper.write("Vivo en Lima")).memory
    kept.clock.advance(1)

    async def move(city):
        try:
            await keeper.write(f"Vivo en {city}", attribute="city", if_content_hash=first.content_hash)
        except grpc.aio.AioRpcError as error:
            return error.code()
        return Code.OK

    codes = await asyncio.gather(*(move(city) for city in ("Cusco", "Puno", "Ica", "Tacna")))
    assert sorted(code.name for code in codes) == ["ABORTED", "ABORTED", "ABORTED", "OK"]
    assert len((await keeper.list(attribute="city")).memories) == 1


async def test_what_is_ephemeral_or_secret_leaves_no_row(kept, keeper):
    for text, reason in (("¡Hola!", "SMALL_TALK"), ("¿Dónde vivo?", "QUESTION"), ("hoy estoy mal", "TEMPORARY")):
        written = await keeper.write(text)
        assert (written.decision.layer, written.HasField("memory"), reasons(written)[0]) == (0, False, reason)
    written = await keeper.write("Mi contraseña es hunter2", keep=True)
    assert (written.HasField("memory"), reasons(written)[0]) == (False, "SECRET_PASSWORD")
    assert kept.count("user_memory") == 0
