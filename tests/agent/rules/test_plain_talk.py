"""Small talk in Spanish and English: each message gets a natural reply, and nothing is done."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_agent.rules.expressions import detect_language
from phylactery_agent.rules.plain_replies import asks_time, plain_reply
from phylactery_agent.rules.planner import read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs.shown import reminders_shown

from tests.support.agent.system import DONE, Person, System, open_system
from tests.support.cases import each_case

TOOLS = ToolRegistry()

TALK = [
    ("no lo deshagas", "stays_done"),
    ("No, no lo deshagas", "stays_done"),
    ("no deshagas nada, gracias", "stays_done"),
    ("nunca reviertas eso", "stays_done"),
    ("don't undo it", "stays_done"),
    ("please do not undo the last change", "stays_done"),
    ("never roll that back", "stays_done"),
    ("ask me before you change files", "asks_anyway"),
    ("from now on, always ask me first before changing anything", "asks_anyway"),
    ("check with me before you touch a.txt", "asks_anyway"),
    ("don't write files without asking me first", "asks_anyway"),
    ("pregúntame antes de cambiar archivos", "asks_anyway"),
    ("consulta conmigo siempre antes de tocar nada", "asks_anyway"),
    ("no borres nada sin preguntarme", "asks_anyway"),
    ("always ask before writing", "asks_anyway"),
    ("never write without asking me", "asks_anyway"),
    ("never touch my files without asking", "asks_anyway"),
    ("from now on ask before you do anything", "asks_anyway"),
    ("remember to ask me before you write files", "asks_anyway"),
    ("I want you to ask me before writing", "asks_anyway"),
    ("please confirm with me before changing files", "asks_anyway"),
    ("do not change files without permission", "asks_anyway"),
    ("you must ask me first before you write", "asks_anyway"),
    ("get my approval before every change", "asks_anyway"),
    ("ask first", "asks_anyway"),
    ("siempre pregúntame antes de escribir", "asks_anyway"),
    ("no escribas nada sin preguntar", "asks_anyway"),
    ("recuerda preguntarme antes de escribir archivos", "asks_anyway"),
    ("quiero que me preguntes antes de escribir", "asks_anyway"),
    ("pide permiso antes de escribir", "asks_anyway"),
    ("pregunta antes de guardar", "asks_anyway"),
    ("jamás guardes nada sin mi permiso", "asks_anyway"),
    ("never mind, forget it", "dropped"),
    ("nevermind", "dropped"),
    ("déjalo, da igual", "dropped"),
    ("olvídalo", "dropped"),
    ("no", "dropped"),
    ("mejor no", "dropped"),
    ("no espera, eso no", "dropped"),
    ("no!!! era broma", "dropped"),
    ("/reject", "nothing_waits_at_all"),
    ("/approve 2", "nothing_waits_at_all"),
    ("sacá el pan de lista.txt", "cannot_files"),
    ("y ahora bórralo, a.txt", "cannot_files"),
    ("yes", "nothing_waits_at_all"),
    ("sí", "nothing_waits_at_all"),
    ("are you a robot?", "program"),
    ("¿eres una persona?", "program"),
    ("delete greet2.txt", "cannot_files"),
    ("rename diary.txt to journal.txt", "cannot_files"),
    ("make a copy of shopping.txt called weekend.txt", "cannot_files"),
    ("elimina d.txt", "cannot_files"),
    ("renombra c.txt a despedida.txt", "cannot_files"),
    ("haz una copia de notas.txt que se llame copia.txt", "cannot_files"),
    ("vacía copia.txt", "cannot_files"),
    ("I like tea more than coffee", "told_of_oneself"),
    ("my name is Bob", "told_of_oneself"),
    ("me llamo Carmen", "told_of_oneself"),
    ("prefiero el té al café", "told_of_oneself"),
]
REQUESTS = ["write hello to a.txt", "no, I meant b.txt", "tell me a joke", "¿cuánto cuesta?", "borra el del dentista"]


@each_case(("text", "key"), TALK)
def test_what_no_tool_is_for_has_a_sentence_of_its_own(text, key):
    assert plain_reply(text) == key
    assert not read_request(text, TOOLS).clauses


@pytest.mark.parametrize("text", [*REQUESTS, "", "x" * 400])
def test_anything_else_has_none(text):
    assert plain_reply(text) == ""


@each_case("fallback", ["es", "en"])
@each_case(
    ("text", "language"),
    [
        ("redo", "en"),
        ("empty a.txt", "en"),
        ("delete a.txt", "en"),
        ("sorry, b.txt", "en"),
        ("do it again", "en"),
        ("rehaz", "es"),
        ("vacía a.txt", "es"),
        ("borra a.txt", "es"),
        ("perdón, b.txt", "es"),
        ("otra vez", "es"),
    ],
)
def test_a_short_message_is_answered_in_its_own_language(text, language, fallback):
    assert detect_language(text, fallback) == language


@pytest.mark.parametrize(
    "text", ["what time is it?", "What's the time", "what day is today?", "¿qué hora es?", "¿a qué día estamos?"]
)
def test_the_time_is_asked_for(text):
    assert asks_time(text)


@pytest.mark.parametrize("text", ["what time is the meeting?", "remind me what time it is at 5", "¿a qué hora salgo?"])
def test_another_time_is_not_the_present_one(text):
    assert not asks_time(text)


@pytest.mark.parametrize(
    "text",
    [
        "write hello to me",
        'añade "queso" a compra.txt y luego mándaselo a Ana en un papel',
    ],
)
def test_no_half_of_a_sentence_becomes_a_file_or_its_content(text):
    reading = read_request(text, TOOLS)
    assert not reading.clauses
    assert reading.doubt == "beside"


@pytest.mark.parametrize("text", ["add butter to the list", "write milk to the diary", "añade pan al diario"])
def test_a_word_for_a_file_that_nobody_named_makes_no_file(text):
    reading = read_request(text, TOOLS)
    assert (reading.clauses, reading.doubt) == ((), "which_file")


@pytest.mark.parametrize("text", ["add butter to list", "add butter to the file list", 'añade pan a "la lista"'])
def test_a_file_may_have_a_name_of_one_word(text):
    assert read_request(text, TOOLS).clauses


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def ana(talking: System) -> Person:
    return talking.person("ana")


async def test_memory_is_asked_as_people_ask(ana):
    await ana.say("remember that my sister is called Laura")
    assert "Laura" in (await ana.say("what's my sister's name?")).reply.text
    await ana.say("acuérdate de que vivo en Sevilla")
    assert "Sevilla" in (await ana.say("¿dónde vivo?")).reply.text


@pytest.mark.parametrize(
    ("words", "told", "write", "kept"),
    [
        ("always ask before writing", "cannot keep such a wish", 'write "q" to q.txt', "what do you know about me?"),
        ("never write without asking me", "cannot keep", 'write "q" to q.txt', "what do you know about me?"),
        ("from now on ask before you do anything", "cannot keep", 'write "q" to q.txt', "what do you know about me?"),
        ("siempre pregúntame antes de escribir", "un deseo así", 'escribe "q" en q.txt', "¿qué sabes de mí?"),
    ],
)
async def test_no_promise_to_ask_is_made_that_no_later_turn_keeps(ana, words, told, write, kept):
    assert told in (await ana.say(words)).reply.text
    assert "q.txt" in (await ana.say(write)).reply.text
    assert words not in (await ana.say(kept)).reply.text


@pytest.mark.parametrize("words", ["1", "2.", "#3", "(4)", "12"])
async def test_a_bare_number_is_no_calculation(ana, words):
    text = (await ana.say(words)).reply.text
    assert "calcul" not in text
    assert words.strip() in text


async def test_the_time_is_told_with_its_zone(ana):
    answer = await ana.say("¿qué hora es?")
    assert (answer.run.status, answer.run.tool_calls) == (DONE, [])
    assert "(UTC)" in answer.reply.text


async def test_reminders_are_shown_without_ids_unless_only_those_tell_them_apart(ana):
    assert "rem_" not in (await ana.say("remind me to call mom tomorrow at 8 am")).reply.text
    assert "rem_" not in (await ana.say("what reminders do I have?")).reply.text
    await ana.say("remind me to call mom tomorrow at 9 am")
    assert (await ana.say("what reminders do I have?")).reply.text.count("rem_") == 2


@pytest.mark.parametrize(("more", "told"), [(True, "There is more"), (False, "call Ana")])
def test_more_reminders_than_are_shown_are_told(more, told):
    one = {"id": "rem_1", "text": "call Ana", "due": "2026-11-24T09:00+00:00", "repeat": "", "time_zone": "UTC"}
    assert told in reminders_shown(json.dumps({"reminders": [one], "more": more}), "en").splitlines()[-1]


async def test_a_question_that_is_not_understood_is_quoted_whole(ana):
    assert "«¿cuántos glorbos caben?»" in (await ana.say("¿cuántos glorbos caben?")).reply.text


async def test_files_are_searched_as_people_ask(talking, ana):
    talking.sandbox.joinpath("a.txt").write_text("milk\nbread")
    talking.sandbox.joinpath("b.txt").write_text("eggs")
    either = (await ana.say("search for milk or eggs")).reply.text
    assert "a.txt:1: milk" in either
    assert "b.txt:1: eggs" in either
    assert "a.txt:2: bread" in (await ana.say("which file mentions bread?")).reply.text
    assert (await ana.say('search for "milk or eggs"')).reply.text == "I did not find “milk or eggs”."
    assert (await ana.say("¿en qué fichero pone jueves?")).reply.text == "No he encontrado «jueves»."
