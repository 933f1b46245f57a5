"""Turns as people type them, in both languages: files that are made, follow-ups, slips, bans and reports."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_agent.rules.plain_replies import asks_last_request, is_beyond, plain_reply, told_of
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.references import referred, repeats_with
from phylactery_agent.rules.spelling import corrected, spoken_names
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent.system import DONE, Person, System, open_system
from tests.support.cases import each_case

TOOLS = ToolRegistry()


def calls(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(one[0].tool, one[0].args) for one in read_request(text, TOOLS).clauses]


def test_a_list_is_kept_as_a_file_named_after_it(subtests):
    for text, path, content in (
        ("make a shopping list with milk, bread and eggs", "shopping-list.txt", "milk\nbread\neggs"),
        ("make me a list of guests: Ana and Luis", "list-of-guests.txt", "Ana\nLuis"),
        ("create a list of milk and eggs", "list.txt", "milk\neggs"),
        ("haz una lista de la compra con leche, pan y huevos", "lista-de-la-compra.txt", "leche\npan\nhuevos"),
        ("make a packing list with socks and a hat in trip.txt", "trip.txt", "socks\na hat"),
        ("haz una lista de la compra con leche y pan en el archivo compra.txt", "compra.txt", "leche\npan"),
        ("¿me haces una lista de tareas: ir al banco, coser?", "lista-de-tareas.txt", "ir al banco\ncoser"),
    ):
        with subtests.test(text):
            assert calls(text) == [("write_file", {"path": path, "content": content})]
    for text in (
        "make a list of my files",
        "haz una lista de mis archivos",
        "make a list with what I said",
        "make me a list of names for my dog",
        "make a list of five ideas for dinner",
        "make a packing list with socks from trip.txt and a hat",
        "make a list with socks in a.txt in b.txt",
    ):
        with subtests.test(text):
            assert calls(text) == []


@pytest.mark.parametrize(
    ("text", "path", "content"),
    [
        ("create notes.txt saying call the bank", "notes.txt", "call the bank"),
        ("could you maybe make me a file called food.txt with milk and eggs", "food.txt", "milk and eggs"),
        ("make another file, garden.txt, with mow the lawn", "garden.txt", "mow the lawn"),
        ('create a.txt with the text "hello there"', "a.txt", "hello there"),
        ("crea notas.txt que diga llamar al banco", "notas.txt", "llamar al banco"),
        ("hazme una lista en compra.txt con leche y pan", "compra.txt", "leche y pan"),
        ("crea un archivo que se llame b.txt: regar las plantas", "b.txt", "regar las plantas"),
    ],
)
def test_a_file_is_made_with_what_is_dictated(text, path, content):
    assert calls(text) == [("write_file", {"path": path, "content": content})]


@pytest.mark.parametrize(
    ("text", "path", "content"),
    [
        ("write down in a file called trip dot txt that we leave at eight", "trip.txt", "we leave at eight"),
        ("apúntame en maleta.txt calcetines y una toalla", "maleta.txt", "calcetines y una toalla"),
    ],
)
def test_what_is_noted_down_is_added(text, path, content):
    assert calls(text) == [("write_file", {"path": path, "content": content, "append": True})]


@each_case(
    "text",
    [
        "make a cake with sugar",
        "haz una tarta con azúcar",
        "create a.txt with the contents of b.txt",
        "create poem.txt with a poem about cats",
        "crea pistas.txt con el nombre del gato",
        "apunta en a.txt lo mismo que en b.txt",
        "don't create notes.txt with milk",
        "if it rains create notes.txt with milk",
    ],
)
def test_no_file_is_made_of_what_is_no_dictation(text):
    assert calls(text) == []


@each_case(
    ("text", "tool"),
    [
        ("don't touch anything, just tell me what files there are", "list_dir"),
        ("no toques nada, solo dime que archivos hay", "list_dir"),
        ("before I go, show me ideas.txt", "read_file"),
        ("antes de irme enséñame ideas.txt", "read_file"),
        ("plz shwo me trip.txt", "read_file"),
        ("qué tengo pendiente?", "list_reminders"),
        ("what have I got coming up?", "list_reminders"),
        ("where do I live again?", "recall"),
        ("a qué soy alérgica?", "recall"),
        ("my favourite colour is green, remember that", "remember"),
        ("es el 3 de mayo, no lo olvides", "remember"),
    ],
)
def test_a_request_is_read_among_the_words_around_it(text, tool):
    assert [name for name, _ in calls(text)] == [tool]


def test_what_was_written_is_read_to_the_person():
    assert calls('append "cheese" to shopping.txt and then read it to me') == [
        ("write_file", {"path": "shopping.txt", "content": "cheese", "append": True}),
        ("read_file", {"path": "shopping.txt"}),
    ]


@pytest.mark.parametrize(
    "text", ["don't touch anything, just write hi to a.txt", "no toques nada, solo escribe hola en a.txt"]
)
def test_a_ban_of_every_change_holds_for_a_change_after_it(text):
    assert calls(text) == []


@pytest.mark.parametrize("text", ["I deleted trip.txt yesterday, didn't I?", "hoy abrí viaje.txt y estaba vacío"])
def test_a_report_of_the_past_is_no_request(text):
    assert (calls(text), read_request(text, TOOLS).doubt) == ([], "past")


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        ("plz shwo me x.txt", "plz show me x.txt"),
        ("write x to shwo.txt", "write x to shwo.txt"),
        ("echo: shwo", "echo: shwo"),
        ("creame un archibo", "creame un archivo"),
    ],
)
def test_a_slip_is_mended_only_before_what_is_dictated(text, spelled):
    assert corrected(text) == spelled


def test_a_spoken_file_name_is_written():
    assert spoken_names("lee viaje punto txt y trip dot md") == "lee viaje.txt y trip.md"
    assert spoken_names("put a dot on it") == "put a dot on it"


@pytest.mark.parametrize(
    ("earlier", "text", "meant"),
    [
        (["read a.txt"], "now do the same with b.txt", "read b.txt"),
        (["lee a.txt"], "ahora haz lo mismo con b.txt", "lee b.txt"),
        (["read a.txt"], "what's in it now?", "read a.txt"),
        (["lee a.txt"], "a ver, qué pone ahora?", "lee a.txt"),
        (["read a.txt", "read b.txt"], "no, the other file", "read a.txt"),
        (['write "x" to a.txt'], "oh and sunscreen too", "add sunscreen to a.txt"),
    ],
)
def test_a_follow_up_becomes_the_request_it_stands_for(earlier, text, meant):
    assert referred(earlier, text, TOOLS) == meant


@pytest.mark.parametrize(
    ("earlier", "text"), [("lee a.txt", "después de eso bórralo"), ("read a.txt", "hmm, delete it")]
)
def test_what_leads_up_to_a_follow_up_does_not_hide_it(earlier, text):
    assert plain_reply(referred([earlier], text, TOOLS)) == "cannot_files"


def test_the_mark_of_a_polite_question_is_no_part_of_a_reminder():
    [(_, args)] = calls("can you set a reminder for friday at 10 am to renew my passport?")
    assert args == {"text": "renew my passport", "when": "friday at 10 am"}
    assert len(read_request("could you open notes.txt?", TOOLS).clauses[0]) == 2  # the file may be called notes.txt?


def test_the_same_with_no_file_names_none():
    assert repeats_with("do the same with love") == ""


@pytest.mark.parametrize(
    "text", ["what did I just ask you?", "qué te acabo de pedir?", "what was the last thing I asked?"]
)
def test_the_last_request_is_asked_for(text):
    assert asks_last_request(text)


def test_another_question_is_not_about_the_last_request():
    assert not asks_last_request("what did I ask Ana to buy?")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("forget where i live", "cannot_forget"),
        ("olvida dónde vivo", "cannot_forget"),
        ("change eight to nine in trip.txt", "cannot_files"),
        ("junta los dos en uno", "cannot_files"),
        ("y tu como te llamas?", "program"),
    ],
)
def test_what_cannot_be_done_is_said(text, key):
    assert plain_reply(text) == key


@pytest.mark.parametrize(
    "text", ["order me a pizza", "can you book a flight to Rome?", "pídeme una pizza", "mándale un whatsapp a Ana"]
)
def test_what_no_tool_does_is_beyond(text):
    assert is_beyond(text)


def test_a_statement_is_repeated_without_the_words_around_it():
    assert told_of("cool. my name is Laura by the way") == "my name is Laura"


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as opened:
        yield opened


@pytest.fixture
def ana(talking: System) -> Person:
    return talking.person("ana")


async def test_the_last_request_is_told(ana):
    assert "have not asked" in (await ana.say("what did I just ask you?")).reply.text
    await ana.say("remind me to call mum tomorrow at 6pm")
    answer = await ana.say("what did I just ask you?")
    assert answer.run.status == DONE
    assert "remind me to call mum tomorrow at 6pm" in answer.reply.text


async def test_one_more_reminder_leaves_the_first_one(ana):
    await ana.say("ponme un recordatorio el viernes a las 10 de la mañana para renovar el pasaporte")
    asked = await ana.say("y otro a las 3 de la tarde para recoger a los niños")
    assert "cancel" not in asked.reply.text
    assert {one.tool for one in asked.run.tool_calls} <= {"create_reminder"}


async def test_a_cancelled_reminder_says_nothing_of_the_others(ana):
    await ana.say("remind me to call mum tomorrow at 6pm")
    await ana.say("remind me to buy milk tomorrow at 7pm")
    assert "milk" not in (await ana.say("cancel the one about mum")).reply.text


async def test_a_part_that_no_tool_does_is_told_as_that_part_alone(system: System) -> None:
    for words, part in (
        ('write "hello" to d.txt and delete the rest', "I cannot do “delete the rest”, so that part is not done."),
        ('escribe "hola" en e.txt y borra lo demás', "esa parte no la he hecho."),
    ):
        told = (await system.person().say(words)).reply.text
        assert part in told
        assert "done nothing" not in told
        assert "no he hecho nada" not in told
