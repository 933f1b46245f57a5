"""A conversation keeps its language: names, addresses, links and single foreign words do not change it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count

import pytest
import pytest_asyncio
from phylactery_agent.rules.expressions import detect_language

from tests.support.agent.system import Person, System, open_system

MODULE = pytest.mark.asyncio(loop_scope="module")
_NAMES = count()
NONE_TELLS = (
    "New York",
    "sales.team@acme.com",
    "https://example.com/the-best",
    "weekend",
    "Bank of America",
    "the_report.pdf",
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    async with open_system(tmp_path_factory.mktemp("language")) as opened:
        yield opened


@pytest.fixture
def ana(system: System) -> Person:
    return system.person(f"ana{next(_NAMES)}")


@MODULE
async def test_a_spanish_conversation_stays_spanish_until_a_sentence_is_english(ana: Person) -> None:
    await ana.say("hola, ¿qué tal estás?")
    for text in NONE_TELLS:
        assert detect_language((await ana.say(text)).reply.text) == "es", text
    assert "What I remember:" in (await ana.say("what do you know about me?")).reply.text
    assert "Lo que recuerdo:" in (await ana.say("¿qué sabes de mí?")).reply.text


@MODULE
async def test_an_english_conversation_stays_english_and_one_word_returns(ana: Person) -> None:
    await ana.say("hello, how are you?")
    for text in ("Los Angeles", "José Pérez", "ana.torres@empresa.es", "El Paso", "almuerzo"):
        assert (await ana.say(text)).reply.text.isascii() or detect_language((await ana.say(text)).reply.text) == "en"
    assert detect_language((await ana.say("gracias")).reply.text, "en") == "es"
    assert detect_language((await ana.say("thanks")).reply.text, "es") == "en"
