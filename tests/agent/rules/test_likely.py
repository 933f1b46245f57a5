"""What follows from words that no pattern reads: a request, an offer, a reply; and what never follows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from phylactery_agent.rules.likely import NOTHING, Said, likely, said_in
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.slots import file_named, item_in, reminded_of, told_time, topic_in
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.agent.system import Person, System, open_system
from tests.support.cases import each_case

TOOLS = ToolRegistry()
SHOWN = Said(files=("groceries.txt",), shown=("groceries.txt", "ideas.txt"), reminders=("call the plumber",))


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("what have I got saved in here?", "list_dir"),
        ("let's have a look at the ideas one", "read_file"),
        ("a ver qué tengo guardado por aquí", "list_dir"),
        ("stick oat milk on there too", "write_file"),
        ("could you give me a nudge tomorrow at 9 am about the plumber", "create_reminder"),
        ("just so you know, I'm allergic to peanuts", "remember"),
        ("does anything in my files mention rent?", "search_files"),
    ],
)
def test_an_unseen_wish_becomes_a_request_that_the_patterns_read(text, tool):
    meant = likely(text, SHOWN, TOOLS)
    assert [one[0].tool for one in read_request(meant.request, TOOLS).clauses] == [tool]


def test_the_name_of_the_file_is_no_part_of_the_text_that_goes_into_it(subtests):
    for text, request in (
        ("Make a packing note with socks and a hat in trip.txt", 'write "socks and a hat" to trip.txt'),
        ("create a note with ideas for June in the file garden.txt", 'write "ideas for June" to garden.txt'),
        ("make a packing note with socks from trip.txt and a hat", ""),
    ):
        with subtests.test(text):
            assert likely(text, SHOWN, TOOLS).request == request


@each_case(
    "text",
    [
        "I deleted that file yesterday",
        "no quiero que borres nada de mis archivos",
        "my mum said read the letter first",
        "if you had read my notes you would know",
        "ayer mi jefe borró todas mis notas",
        "she told me to write it down in a list",
        "don't send anything to anybody",
        "my boss sent an email to ana@x.com saying the deal is off",
        "I hate when people remind me of the dentist at 5pm",
        "the app reminds me to drink water at 9am",
        "mom asked me to remind her about the dentist tomorrow at 5pm",
    ],
)
def test_a_mention_a_denial_or_a_report_does_nothing(text):
    meant = likely(text, SHOWN, TOOLS)
    assert not meant.request or meant.offered


@pytest.mark.parametrize("text", ["read notes.txt", "yes", "no", "", "x" * 500, "hola"])
def test_what_is_read_already_is_not_asked_about(text):
    assert likely(text, SHOWN, TOOLS) is NOTHING or likely(text, SHOWN, TOOLS).key == "greeting"


def test_what_no_tool_does_is_refused_with_the_nearest_possible_thing():
    assert likely("will I need an umbrella tomorrow", Said(), TOOLS).key in {"cannot_weather", "beyond", "unknown_near"}
    assert likely("cuéntame un chiste de los tuyos", Said(), TOOLS).key == "cannot_joke"


def test_a_reminder_that_cannot_repeat_so_is_told_how_one_repeats_and_no_word_of_its_text_is_lost():
    for text in ("recuérdame cada 3 horas beber agua", "remind me on the first monday of every month to pay rent"):
        assert likely(text, Said(), TOOLS).key == "ask_repeat"
    assert likely("remind me to drink water", Said(), TOOLS).key == "ask_when"
    for text in ("take vitamin d", "drop by", "look around"):
        for asked in (f"remind me at 8pm to {text}", f"remind me to {text} at 8pm"):
            assert [one[0].args["text"] for one in read_request(asked, TOOLS).clauses] == [text]
    for left in (
        *("remind me in two days n a half to call", "recuérdame en dos días y medio mirar el correo"),
        *("remind me on christmas at 8am to open presents", "remind me on 12/15 at 9am to pay taxes"),
        *("recuérdame en navidad a las 8 de la mañana abrir regalos", "remind me at five fifteen to pick up Sam"),
        *("recuérdame en 1 hora 30 colada", "remind me in 2 hours 15 to move the car"),
        *("remind me every other tuesday night about bins", "remind me first thing tomorrow to call the GP"),
        *("recuérdame mañana a primera hora llamar al banco", "recuérdame el lunes temprano llamar al banco"),
        *("remind me at 8pm before dinner to take pills", "remind me to call mom tomorrw at 9 am"),
    ):
        assert not read_request(left, TOOLS).clauses
        assert not likely(left, Said(), TOOLS).request


def test_a_file_is_named_by_what_was_shown_and_never_made_up():
    assert file_named("the groceries one", SHOWN.shown) == "groceries.txt"
    assert file_named("the grocery list", ("a.txt",)) == ""
    assert file_named("open it", ("a.txt", "b.txt")) == "a.txt"
    assert file_named("compare a.txt and b.txt", ()) == ""
    assert file_named("the budget file", (), guessed=True) == "budget"
    assert file_named("the notes of ana", ("ana.txt", "ana.md")) == ""


def test_slots():
    assert item_in("stick oat milk on there too") == "oat milk"
    assert item_in("pon también aceite y sal") == "aceite y sal"
    assert told_time("could you remind me tomorrow at 9 am about the plumber") == "tomorrow at 9 am"
    assert told_time("remind me about the plumber") == ""
    assert reminded_of("avísame mañana a las 8 am de sacar la basura", "mañana a las 8 am") == "sacar la basura"
    assert topic_in("does any file mention rent?") == "rent"


def test_a_turn_is_known_by_its_request_or_by_the_one_file_of_its_reply():
    said = said_in(
        [("read it", "Contents of “b.txt”: milk"), ("read a.txt", "…"), ("files?", "- c.txt\n- d.txt")], TOOLS
    )
    assert said.files == ("b.txt", "a.txt")
    assert said.shown == ("b.txt", "c.txt", "d.txt")


@pytest.fixture
async def talking(tmp_path: Path) -> AsyncIterator[System]:
    async with open_system(tmp_path) as system:
        yield system


@pytest.fixture
def ana(talking: System) -> Person:
    return talking.person()


async def test_an_offer_is_done_after_a_yes_that_comes_right_after_it(talking, ana):
    offer = next(text for text in UNSURE if likely(text, Said(), TOOLS, "en").offered)
    request = likely(offer, Said(), TOOLS, "en").request
    assert f"“{request}”" in (await ana.say(offer)).reply.text
    await ana.say("yes", "t2")
    assert (await ana.say("yes")).reply.text != "Nothing is waiting for your answer here."
    assert f"“{request}”" in (await ana.say(offer, "t3")).reply.text
    await ana.say("hello", "t3")
    assert (await ana.say("yes", "t3")).reply.text == "Nothing is waiting for your answer here."


UNSURE = (
    "so what am I being reminded of now?",
    "anything on for me?",
    "maybe something about my reminders",
    "what's there that I saved once",
    "which things did I keep",
)
"""Words that are near a request, but not surely one."""


async def test_a_reminder_moves_by_an_hour(talking, ana):
    assert "Reminder created" in (await ana.say("remind me to call Ana on 2027-03-01 at 09:00")).reply.text
    turn = await ana.say("an hour earlier")
    assert turn.HasField("pending_approval") or "08:00" in turn.reply.text


async def test_a_reminder_that_would_be_over_is_not_moved_and_not_lost(talking, ana):
    assert "Reminder created" in (await ana.say("remind me to call Ana in 50 minutes")).reply.text
    moved = await ana.say("an hour earlier")
    assert not moved.HasField("pending_approval")
    assert "call Ana" in (await ana.say("what reminders do I have?")).reply.text


async def test_what_was_done_is_told(talking, ana):
    assert "changed nothing" in (await ana.say("what have you done so far?")).reply.text
    await ana.say("remember that I prefer tea")
    assert "remember something about you" in (await ana.say("what have you done so far?")).reply.text
