"""Where a message ends, what it says ends: thanks in a message of their own are no content of the one before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import pytest
import pytest_asyncio
from phylactery_understanding.replies.talk import small_talk_in

from tests.support.agent.system import System, open_system
from tests.support.cases import each_case

_people = count(1)
MODULE = pytest.mark.asyncio(loop_scope="module")


def joined(*messages: str) -> tuple[str, list[int]]:
    """Return messages as a gateway joins them, and where each but the first begins."""
    text, starts = messages[0], list[int]()
    for one in messages[1:]:
        starts.append(len(text) + 1)
        text = f"{text}\n{one}"
    return text, starts


@pytest.mark.parametrize(
    "first",
    ["Manda esto a ana@x.com:", "escribe un correo a ana@x.com que diga", "send ann@x.com this text", "Send Ann:\n"],
)
def test_what_follows_a_message_that_dictates_is_its_content(first: str) -> None:
    assert small_talk_in(*joined(first, "Buenas tardes", "El lunes no puedo ir", "Gracias")) == ()
    text, starts = joined("hola", first, "Buenas tardes", "gracias")
    assert [text[start:stop].strip() for start, stop in small_talk_in(text, starts)] == ["hola"]


@pytest.mark.parametrize("first", ["Hola:", "lee notas.txt", "lee notas.txt a las 10:30", "what does this text say?"])
def test_what_follows_any_other_message_is_an_aside(first: str) -> None:
    text, starts = joined(first, "lee b.txt", "gracias")
    assert [text[start:stop].strip() for start, stop in small_talk_in(text, starts)][-1] == "gracias"


@each_case("aside", ["gracias", "muchas gracias!", "thanks", "hola", "hi", "ok", "vale", "adiós", "👍"])
@each_case("last", [True, False])
def test_small_talk_in_a_message_of_its_own_belongs_to_no_other(aside: str, last: bool) -> None:
    text, starts = joined(*(("escribe en a.txt: hola", aside) if last else (aside, "escribe en a.txt: hola")))
    [(start, stop)] = small_talk_in(text, starts)
    assert text[start:stop].strip() == aside


@each_case(
    "second", ["no, gracias", "no thanks", "jajaja", "compra pan", "gracias, y otra cosa", "thanks?", "...", "espera"]
)
def test_what_may_take_back_or_say_more_stays(second: str) -> None:
    text, starts = joined("escribe en a.txt: hola", second)
    assert small_talk_in(text, starts) == ()


def test_small_talk_alone_and_thanks_inside_a_message_stay() -> None:
    assert small_talk_in(*joined("hola", "gracias")) == ()
    assert small_talk_in("escribe en a.txt: hola\ngracias", []) == ()
    assert small_talk_in("escribe en a.txt: hola gracias", [24]) == (), "no message begins within a line"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    folder: Path = tmp_path_factory.mktemp("boundaries")
    async with open_system(folder, time_zone="Europe/Madrid") as opened:
        yield opened


@pytest.mark.slow
@MODULE
@pytest.mark.parametrize(
    ("messages", "content"),
    [
        (("escribe hola en {}", "gracias"), "hola"),
        (("escribe en {}: hola", "muchas gracias!"), "hola"),
        (("write to {}: hello", "hi"), "hello"),
        (("hola", "escribe en {}: hola"), "hola"),
        (("write to {}: hello", "ok", "thank you"), "hello"),
        (("write to {}: thanks",), "thanks"),
    ],
)
async def test_a_file_holds_what_its_message_said(system: System, messages: tuple[str, ...], content: str) -> None:
    name = f"f{next(_people)}.txt"
    text, starts = joined(*(one.format(name) for one in messages))
    await system.person(name[:-4]).say(text, message_starts=starts)
    [written] = system.written(name)
    assert written.read_text() == content


@pytest.mark.slow
@MODULE
@pytest.mark.parametrize(
    "messages",
    [("escribe en {}: hola", "compra pan"), ("write to {}: hello", "buy milk")],
)
async def test_content_that_goes_on_in_a_further_message_is_asked_about(
    system: System, messages: tuple[str, ...]
) -> None:
    name = f"f{next(_people)}.txt"
    text, starts = joined(*(one.format(name) for one in messages))
    answer = await system.person(name[:-4]).say(text, message_starts=starts)
    assert system.written(name) == []
    assert answer.run.reason == "AWAITING_APPROVAL"


@pytest.mark.slow
@MODULE
@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        (("remind me tomorrow at 9 am to call Ana", "thanks"), "call Ana"),
        (("recuérdame mañana a las 9 de la mañana llamar a Ana", "gracias"), "llamar a Ana"),
        (("recuerda que me gusta el té", "gracias"), "me gusta el té"),
        (("remember that I like tea", "thank you"), "I like tea"),
    ],
)
async def test_a_reminder_and_a_memory_end_with_their_message(
    system: System, messages: tuple[str, ...], kept: str
) -> None:
    text, starts = joined(*messages)
    told = (await system.person(f"u{next(_people)}").say(text, message_starts=starts)).reply.text
    assert told.endswith(kept)
