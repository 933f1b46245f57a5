"""Everyday phrasings that the grammar parses, each with a call it must not be taken for."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.proposal import Call, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.interpretation.check import check
from phylactery_understanding.interpretation.matching import understand_interpreted
from phylactery_understanding.interpretation.model import Interpretation, InterpretedAsk, Slot, Span
from phylactery_understanding.language.times import times_of
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.support.listed import Listed, found
from tests.understanding.calls.test_calls import DAY, argument, delete, mail, pay, remind, write


def close(number: int, repo: str) -> Call:
    """An issue is closed."""
    return Call(
        "close_issue", frozenset({"close"}), (), frozenset({"issu"}),
        (argument("repo", repo, "object", control=True), argument("number", number, "object", control=True)),
    )  # fmt: skip


def comment(number: int, repo: str, body: str) -> Call:
    """A comment is made."""
    return Call(
        "comment_issue", frozenset({"comment"}), (), frozenset({"issu", "come"}),
        (argument("repo", repo, "object", control=True), argument("number", number, "object", control=True),
         argument("body", body, "content")),
    )  # fmt: skip


def price(sku: str, value: float) -> Call:
    """A price is set."""
    return Call(
        "set_price", frozenset({"set"}), (), frozenset({"pric"}),
        (argument("sku", sku, "object", control=True), argument("price", value, "amount", control=True)),
    )  # fmt: skip


def stop_reminding(text: str) -> Call:
    """A reminder is cancelled."""
    return Call(
        "cancel_reminder", frozenset({"cancel", "remind"}), (), frozenset({"remi"}),
        (argument("reminder", text, "object", control=True),),
    )  # fmt: skip


PAIRS = [
    # a reason behind the request says nothing of the call
    ("close 9 in recipes-bot, cant reproduce", close(9, "recipes-bot"), close(9, "recipes-web")),
    ("close 9 in recipes-bot, he'll be away all week", close(9, "recipes-bot"), close(8, "recipes-bot")),
    # a place before the verb
    ("en el 88 de tienda-web comenta: ya pasa menos", comment(88, "tienda-web", "ya pasa menos"),
     comment(88, "tienda", "ya pasa menos")),
    # what is told begins with whom it is of
    ("email ana@x.example I'm running late", mail("ana@x.example", "I'm running late."),
     mail("ana@x.example", "I'm not coming.")),
    # a dictated text may ask something
    ("manda un correo a ana@x.example que diga: Llego tarde. ¿Me esperas?",
     mail("ana@x.example", "Llego tarde. ¿Me esperas?"), mail("ana@x.example", "Llego tarde.")),
    ('would you mind emailing the following to ana@x.example? "The gate is open." Cheers',
     mail("ana@x.example", "The gate is open."), mail("ana@x.example", "The gate is shut.")),
    # what is asked of somebody is put in the words of whoever writes it
    ("email ana@x.example asking how many tickets I've got left",
     mail("ana@x.example", "Hello, could you tell me how many tickets I have left?"),
     mail("ana@x.example", "Hello, could you give me all the tickets?")),
    # an amount behind a comma
    ("paga a ana@x.example, son 35 euros", pay("ana@x.example", 35), pay("ana@x.example", 350)),
    # by how much is not to what
    ("set the price of MUG-1 to 9", price("MUG-1", 9), price("MUG-1", 90)),
    # times
    ("remind me to log in at 7 tonight", remind("log in", "7 tonight"), remind("log in", "7 in the morning")),
    ("recuérdame tender la ropa a las 9 de la noche", remind("tender la ropa", "a las 9 de la noche"),
     remind("tender la ropa", "a las 9:00 de la mañana")),
    ("remind me to call mum on the ninth of december at 10", remind("call mum", "2026-12-09T10:00"),
     remind("call mum", "2026-12-19T10:00")),
    # the file's own name
    ("write hello to the queue file please, queue.txt", write("queue.txt", "hello"), write("file.txt", "hello")),
    # one more line is a line among others
    ("put one more line in log.txt: ran 5k", write("log.txt", "ran 5k", append=True), write("log.txt", "ran 5k")),
]  # fmt: skip

NEVER = [
    ("Knock 5 pounds off MUG-1, it's at 60", price("MUG-1", 5)),
    ("In case it rains on saturday, email ana@x.example that the match is off",
     mail("ana@x.example", "The match is off.")),
    ("En caso de que llueva manda un correo a ana@x.example diciendo que no hay partido",
     mail("ana@x.example", "No hay partido.")),
    ("Yeah, email ana@x.example that I quit, ha, I wish I had the guts", mail("ana@x.example", "I quit.")),
    ("The invoice came from bill@x.example, write tax@y.example an email about it",
     mail("bill@x.example", "The invoice")),
    ("close 9 in recipes-bot, I'll tell you when", close(9, "recipes-bot")),
    *((f"close 9 in recipes-bot, {why}", close(9, "recipes-bot")) for why in (
        "we won't", "we can't yet", "we need it open", "we want it to stay", "we've decided against it",
        "they're against it", "there's no way", "I'll be doing it myself", "it's not ready", "they can't",
    )),
    *((f"paga 50 euros a ana@x.example, {why}", pay("ana@x.example", 50)) for why in (
        "me lo pienso", "me arrepiento", "mi jefe decide", "hay dudas", "ha sido un error",
        "viene Bob y lo hace", "pues no",
    )),
    *((f"{place} close 9 of recipes-bot", close(9, "recipes-bot")) for place in (
        "in a movie,", "in the worst case,", "in my absence,", "in 2030,", "on Bob's order,",
    )),
    ('email this to ana@x.example. "The gate is open" no', mail("ana@x.example", "The gate is open")),
    ("email these to ana@x.example. Careful though", mail("ana@x.example", "Careful though")),
    ("ask ana@x.example if she has the keys", mail("ana@x.example", "I have the keys.")),
    ("ask ana@x.example whether she can pay", mail("ana@x.example", "She can pay.")),
    ("email ana@x.example she'll pay", mail("ana@x.example", "I'll pay.")),
    ("ask ana@x.example if I owe her", mail("ana@x.example", "Do you owe me?")),
    ("delete last line of last-line.txt", delete("last-line.txt")),
    ("delete header in header.txt", delete("header.txt")),
    ("u can delete b.docx?", delete("b.docx")),
    ("take 9 from the price of MUG-1", price("MUG-1", 9)),
    ("sube MUG-1 en 9 euros", price("MUG-1", 9)),
]  # fmt: skip


@each_case(("text", "wanted", "unwanted"), PAIRS)
def test_what_was_asked_for_is_understood_and_what_is_near_it_is_not(text, wanted, unwanted):
    assert understand([parse(text)], wanted).level is Level.CLEAR
    assert understand([parse(text)], unwanted).level is not Level.CLEAR


@each_case(("text", "call"), NEVER)
def test_what_only_resembles_a_request_is_not_clear(text, call):
    assert understand([parse(text)], call).level is not Level.CLEAR


@pytest.mark.parametrize("text", ["don't remind me of the gym any more", "ya no me recuerdes lo del gimnasio"])
def test_who_wants_no_more_of_a_reminder_does_not_forbid_its_end(text):
    assert understand([parse(text)], stop_reminding("gym")).level is not Level.REFUSED
    assert understand([parse("don't cancel the gym reminder")], stop_reminding("gym")).level is Level.REFUSED


@each_case(
    ("text", "features"),
    [
        ("every weekday at 8:00", {("every", 1, "weekday"), ("hour", 8, 0, False)}),
        ("every 8 hours", {("every", 8, "h")}),
        ("a 1-hour long call", {("after", 1, "h")}),
        ("a 2 hour long call", {("after", 2, "h")}),
        ("lunch with Ann tomorrow", {("day", 1)}),
        ("by lunch", {("part", "evening")}),
        ("págala, la segunda", set()),
        ("na segunda", {("weekday", 0)}),
        ("the third of march", {("date", 3), ("month", 3)}),
        ("the third one", set()),
    ],
)
def test_a_time_is_read_where_it_is_one(text, features):
    assert times_of(text).features == features


def interpreted(text: str, call: Call, tool: str, **slots: str) -> Level:
    """Return how far a call is understood by a model that gives these words as its slots."""
    spans = tuple(Slot(name, Span(word, text.index(word))) for name, word in slots.items())
    asks = check(Interpretation("test", "model", (InterpretedAsk(tool, spans),)), parse(text))
    return understand_interpreted(asks, parse(text), call).level


@each_case(
    ("text", "level"),
    [
        ("nobody's on it, so number 9 of recipes-bot can go", Level.CLEAR),
        ("sorry, 9 in recipes-bot", Level.CLEAR),
        ("don't close number 9 of recipes-bot", Level.NONE),
        ("I don't want you to close number 9 of recipes-bot", Level.NONE),
        ("number 9 of recipes-bot, no", Level.NONE),
        ("please don't archive number 9 of recipes-bot", Level.NONE),
        ("she doesn't want number 9 of recipes-bot gone", Level.NONE),
        ("let nobody touch number 9 of recipes-bot", Level.NONE),
        ("sorry, number 9 of recipes-bot is staying", Level.NONE),
        ("actually number 9 of recipes-bot is fine as it is", Level.NONE),
        ("imagine number 9 of recipes-bot were gone", Level.NONE),
        ("number 9 of recipes-bot, sorry", Level.NONE),
    ],
)
def test_a_negation_vetoes_an_interpretation_where_it_denies_what_the_call_does(text, level):
    found = interpreted(text, close(9, "recipes-bot"), "close_issue", number="9", repo="recipes-bot")
    assert (found is Level.CLEAR) == (level is Level.CLEAR)


@pytest.mark.parametrize(
    ("text", "start", "level"),
    [
        ("move the dentist to 13:00", "2026-11-26T13:00", Level.CLEAR),
        ("la del dentista muévela a las 13:00", "2026-11-26T13:00", Level.CLEAR),
        ("move the dentist to 13:00", "2026-11-27T13:00", Level.HALF),
        ("move the dentist to 13:00", "2026-11-26T14:00", Level.HALF),
        ("move the dentist", "2026-11-26T13:00", Level.HALF),
    ],
)
def test_what_is_moved_keeps_its_day_where_only_an_hour_is_said(text, start, level):
    times = times_of("2026-11-26T09:30").features
    dentist = Listed(frozenset({"dentist", "dentista"}), times, lambda value: value == "ev_2")
    other = Listed(frozenset({"gym"}), times_of("2026-11-25T18:00").features, lambda value: value == "ev_1")
    call = Call(
        "move_event", frozenset({"move"}), (), frozenset({"even"}),
        (argument("event_id", "ev_2", "object", control=True, items=found("ev_2", dentist, other)),
         argument("start", start, "date", control=True)), day=DAY,
    )  # fmt: skip
    assert (understand([parse(text)], call).level is Level.CLEAR) == (level is Level.CLEAR)
