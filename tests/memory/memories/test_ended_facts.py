"""What a person says is over, or different now: a question afterwards finds only what holds, on both databases."""

from __future__ import annotations

from itertools import count

import pytest
from phylactery.memory.v1 import user_memory_pb2

_NUMBERS = count()


async def facts(keeper):
    """Return the texts that hold, in the order in which they were said."""
    return [one.text for one in reversed((await keeper.list()).memories)]


async def fields(kept):
    """Return the current profile."""
    return {one.name: one.text_value for one in (await kept.user().profile()).fields}


async def told(kept, keeper, *texts):
    """Say texts one after another, a minute apart."""
    for text in texts:
        await keeper.tell(text, f"m{next(_NUMBERS)}")
        kept.clock.advance(60)


@pytest.mark.parametrize(
    ("said", "holds"),
    [
        (["vivo en Lima", "ya no vivo en Lima"], ["ya no vivo en Lima"]),
        (["Vivo en Lima", "ya no vivo en lima", "ahora vivo en Cusco"], ["ahora vivo en Cusco"]),
        (["vivo en lima", "me mudé a cusco"], ["me mudé a cusco"]),
        (["Vivo en Lima", "Ya no vivo en Lima, ahora vivo en Cusco."], ["ahora vivo en Cusco."]),
        (["Vivo en Lima", "no vivo en Lima sino en Puno"], ["no vivo en Lima sino en Puno"]),
        (["I live in Boston", "I've moved to Denver last week"], ["I've moved to Denver last week"]),
        (["I live in Boston", "I moved out of Boston"], ["I moved out of Boston"]),
        (["I work at Acme", "I don't work at Acme any more"], ["I don't work at Acme any more"]),
        (["I work at Acme", "I live in Acme", "I left Acme"], ["I work at Acme", "I left Acme"]),
        (["We live in Boston", "my wife and I moved to Denver"], ["my wife and I moved to Denver"]),
        (["vivimos en Sevilla", "nos mudamos a Cádiz"], ["nos mudamos a Cádiz"]),
        (["Hi, I'm called Nora and I live in Oslo", "I moved to Bergen"], ["I'm called Nora", "I moved to Bergen"]),
        (["Trabajo en Acme", "renuncié a Acme", "trabajo para Globex"], ["trabajo para Globex"]),
        (["I work for Acme", "I no longer work"], ["I no longer work"]),
        (["trabajo de fontanera", "no trabajo de fontanera, soy chef"], ["no trabajo de fontanera, soy chef"]),
        (["I work as a baker", "I don't work as a baker, I'm a vet"], ["I don't work as a baker, I'm a vet"]),
        (["trabajo como guía", "ya no trabajo como guía"], ["ya no trabajo como guía"]),
        (["trabajo de guía", "trabajo de noche"], ["trabajo de guía", "trabajo de noche"]),
        (
            ["I live in Oslo. What time is it?", "I have two cats\nread me a story"],
            ["I live in Oslo.", "I have two cats"],
        ),
    ],
)
async def test_what_is_over_or_other_now_is_told_no_more(kept, keeper, said, holds):
    await told(kept, keeper, *said)
    assert await facts(keeper) == holds


@pytest.mark.parametrize(
    ("said", "other"),
    [
        ("Vivo en Lima", "ya no vivo en Quito"),
        ("I work at Acme", "I don't work at Globex any more"),
        ("Mi hermana vive en Lima", "ya no vivo en Lima"),
        ("Vivo en Lima", "mi hermana ya no vive en Lima"),
        ("I live in Lima", "My brother moved to Cusco"),
        ("I live in Lima", "he said I don't live in Lima"),
        ("I live in Lima", "if I don't live in Lima, I'm sad"),
    ],
)
async def test_the_end_of_something_else_ends_nothing(kept, keeper, said, other):
    await told(kept, keeper, said, other)
    assert said in await facts(keeper)


@pytest.mark.parametrize(
    ("said", "field", "over"),
    [
        ("Llámame Pepe", "name.preferred", "ya no me llames Pepe"),
        ("Call me Bob", "name.preferred", "don't call me that any more"),
        ("My name is Bob", "name", "My name is not Bob"),
        ("me llamo Ana", "name", "no me llamo Ana"),
        ("soy vegetariana", "diet", "ya no soy vegetariana"),
        ("I'm vegan", "diet", "I'm not vegan any more"),
        ("Mi color favorito es el azul", "favorite.color", "mi color favorito ya no es el azul"),
        ("My birthday is May 4", "birthday", "my birthday isn't May 4"),
        ("Always answer in English", "language", "don't answer in English any more"),
        ("prefiero respuestas cortas", "answer.length", "ya no quiero respuestas cortas"),
    ],
)
async def test_a_field_ends_with_what_it_was_taken_from(kept, keeper, said, field, over):
    await told(kept, keeper, said)
    assert field in await fields(kept)
    await told(kept, keeper, over)
    assert field not in await fields(kept)
    assert said not in await facts(keeper)


async def test_a_field_that_was_set_directly_ends_or_is_replaced_too(kept, keeper):
    ana = kept.user()
    origin = await ana.say("s1", "vivo en Lima, llámame Pepe")
    await ana.set(city="Lima", name__preferred="Pepe", lineage=[origin])
    kept.clock.advance(60)
    await told(kept, keeper, "ahora vivo en Cusco", "ya no me llames Paco")
    assert await fields(kept) == {"city": "Cusco", "name.preferred": "Pepe"}
    await told(kept, keeper, "ya no vivo en Cusco", "ya no me llames Pepe")
    assert await fields(kept) == {}


async def test_each_statement_of_a_text_ends_alone_and_what_is_written_twice_is_kept_once(kept, keeper):
    text = "Me llamo Ana, vivo en Lima y tengo dos perros."
    await told(kept, keeper, text, text)
    assert await facts(keeper) == ["Me llamo Ana", "vivo en Lima", "tengo dos perros."]
    await told(kept, keeper, "me mudé a Cusco")
    assert await facts(keeper) == ["Me llamo Ana", "tengo dos perros.", "me mudé a Cusco"]
    assert await fields(kept) == {"name": "Ana"}


@pytest.mark.parametrize("source", [user_memory_pb2.MEMORY_SOURCE_TOOL, user_memory_pb2.MEMORY_SOURCE_WEB])
async def test_what_a_tool_or_a_page_says_is_over_is_not(kept, keeper, source):
    await told(kept, keeper, "Llámame Pepe", "vivo en Lima")
    await keeper.write("ya no vivo en Lima", source=source, keep=True)
    await keeper.write("ya no me llames Pepe", source=source, keep=True)
    assert {"Llámame Pepe", "vivo en Lima"} <= {*await facts(keeper)}
    assert await fields(kept) == {"name.preferred": "Pepe"}
