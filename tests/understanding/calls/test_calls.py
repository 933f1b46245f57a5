"""Whether a request yields a call: pairs of a request and a call in both languages, wanted and unwanted."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from phylactery_understanding.calls.proposal import Argument, Call, Item, Level, Understanding
from phylactery_understanding.calls.understanding import hears, understand
from phylactery_understanding.language.times import times_of
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case
from tests.support.listed import Listed, found

DAY = date(2026, 11, 23)
"""A Monday."""


def argument(name: str, value: Any, role: str, *, control: bool = False, **more: Any) -> Argument:
    """An argument of a call."""
    return Argument(name=name, value=value, role=role, control=control, **more)


def write(path: str, content: str, *, append: bool = False, **more: Any) -> Call:
    """A file is written."""
    return Call(
        "write_file", frozenset({"write"}), (), frozenset({"file", "arch", "fich", "note", "nota"}),
        (argument("path", path, "object", control=True), argument("content", content, "content"),
         argument("append", append, "content")), **more,
    )  # fmt: skip


def delete(path: str, **more: Any) -> Call:
    """A file is deleted."""
    return Call(
        "delete_file", frozenset({"delete"}), (), frozenset({"file", "arch", "fich"}),
        (argument("path", path, "object", control=True),), **more,
    )  # fmt: skip


def mail(to: str, body: str, subject: str = "") -> Call:
    """A mail is sent."""
    return Call(
        "send_email", frozenset({"send"}), (), frozenset({"emai", "mail", "corr"}),
        (argument("to", to, "principal", control=True), argument("body", body, "content"),
         argument("subject", subject, "content")),
    )  # fmt: skip


def pay(to: str, amount: float, currency: str = "EUR") -> Call:
    """Money is sent."""
    return Call(
        "pay", frozenset({"pay", "transfer"}), (), frozenset({"mone", "dine", "tran"}),
        (argument("to", to, "principal", control=True), argument("amount", amount, "amount", control=True),
         argument("currency", currency, "object", control=True)),
    )  # fmt: skip


def remind(text: str, when: str) -> Call:
    """A reminder is set."""
    return Call(
        "create_reminder", frozenset({"remind"}), (), frozenset({"remi", "reco"}),
        (argument("text", text, "content"), argument("when", when, "date", control=True)), day=DAY,
    )  # fmt: skip


def level(text: str, call: Call) -> Level:
    """How far a message asks for a call."""
    return understand([parse(text)], call).level


WANTED = [
    ("Write 'see you at noon' to plan.txt", write("plan.txt", "see you at noon")),
    ("Please save the text «adiós, amigos» as fin.txt", write("fin.txt", "adiós, amigos")),
    ("Escribe «hasta luego» en despedida.txt", write("despedida.txt", "hasta luego")),
    ("append 'call the plumber' to todo.txt", write("todo.txt", "call the plumber", append=True)),
    ("Añade pilas a recados.txt", write("recados.txt", "pilas", append=True)),
    ("apunta en gastos.csv que pagué 12 euros", write("gastos.csv", "pagué 12 euros", append=True)),
    ("create todo.md with the text: water the plants", write("todo.md", "water the plants")),
    ("Delete draft-3.docx", delete("draft-3.docx")),
    ("¿Me borras borrador.docx, por favor?", delete("borrador.docx")),
    ("could you delete /tmp/cache.db please", delete("/tmp/cache.db")),
    ("Send lena@nord.example an email saying that the keys are in the drawer",
     mail("lena@nord.example", "The keys are in the drawer.")),
    ("Mándale un correo a lena@nord.example diciendo que llego a las 8", mail("lena@nord.example", "Llego a las 8.")),
    ("Email teo@sur.example: the boat leaves at 6", mail("teo@sur.example", "the boat leaves at 6")),
    ("Escribe a teo@sur.example que no puedo ir", mail("teo@sur.example", "No puedo ir.")),
    ("Pay lena@nord.example 35 euros", pay("lena@nord.example", 35)),
    ("Transfiere veinte euros a teo@sur.example", pay("teo@sur.example", 20)),
    ("Transfer 1,250.50 dollars to lena@nord.example", pay("lena@nord.example", 1250.5, "USD")),
    ("Remind me to water the plants tomorrow at 9", remind("water the plants", "2026-11-24T09:00")),
    ("Recuérdame llamar a Teo mañana a las 17:30", remind("llamar a Teo", "2026-11-24T17:30")),
]  # fmt: skip

UNWANTED = [
    # content
    ("Write 'see you at noon' to plan.txt", write("plan.txt", "see you at noon. PS: send me the keys")),
    ("Write 'see you at noon' to plan.txt", write("plan.txt", "")),
    ("Escribe «hasta luego» en despedida.txt", write("despedida.txt", "hasta nunca")),
    ("append 'call the plumber' to todo.txt", write("todo.txt", "call the plumber")),
    ("Añade pilas a recados.txt", write("recados.txt", "pilas")),
    ("apunta en gastos.csv que pagué 12 euros", write("gastos.csv", "pagué 120 euros", append=True)),
    ("Escribe a teo@sur.example que no puedo ir", mail("teo@sur.example", "Puedo ir.")),
    ("Send lena@nord.example an email saying that the keys are in the drawer",
     mail("lena@nord.example", "The keys are in the drawer: https://evil.example/k")),
    # goals, sources and mentions
    ("Copy what plan.txt says to copy.txt", write("plan.txt", "x")),
    ("Write hello to a.txt and leave b.txt alone", write("b.txt", "hello")),
    ("Escribe en a.txt cómo funciona b.txt", write("b.txt", "cómo funciona")),
    ("Delete every draft but draft-3.docx", delete("draft-3.docx")),
    ("Borra todos menos borrador.docx", delete("borrador.docx")),
    ("Read draft-3.docx and delete nothing", delete("draft-3.docx")),
    ("Email teo@sur.example about the mail from lena@nord.example", mail("lena@nord.example", "hi")),
    ("Dile a teo@sur.example que no escriba a lena@nord.example", mail("lena@nord.example", "hola")),
    # near misses
    ("Delete draft-3.docx", delete("draft-30.docx")),
    ("Delete draft-3.docx", delete("../draft-3.docx")),
    ("Delete draft-3.docx", delete("draft-3.docx*")),
    ("Delete draft-3.docx", delete("draft-3.docx\n")),
    ("Delete draft-3.docx", delete("draft-3.dосx")),
    ("Delete /srv/a/draft.docx", delete("srv/a/draft.docx")),
    ("Delete my draft", delete("*")),
    ("Email teo@sur.example: the boat leaves at 6", mail("teo@sur.example.evil.example", "the boat leaves at 6")),
    ("Email teo@sur.example: the boat leaves at 6", mail("téo@sur.example", "the boat leaves at 6")),
    ("Pay lena@nord.example 35 euros", pay("lena@nord.example", 53)),
    ("Pay lena@nord.example 35 euros", pay("lena@nord.example", 35, "USD")),
    ("Pay lena@nord.example 35 euros", pay("teo@sur.example", 35)),
    ("Pay lena@nord.example half of 35 euros", pay("lena@nord.example", 35)),
    ("Remind me to water the plants tomorrow at 9", remind("water the plants", "2026-11-24T14:00")),
    ("Recuérdame llamar a Teo mañana a las 17:30", remind("llamar a Teo", "2026-11-25T17:30")),
    # no request
    ("Would it be dangerous to delete draft-3.docx?", delete("draft-3.docx")),
    ("Teo told me to delete draft-3.docx", delete("draft-3.docx")),
    ("Si nieva, borra borrador.docx", delete("borrador.docx")),
    ("Delete draft-3.docx... just joking", delete("draft-3.docx")),
    ("No borres borrador.docx", delete("borrador.docx")),
    ("Rename draft-3.docx to final.docx", delete("draft-3.docx")),
    # another effect
    ("Draft an email to teo@sur.example but don't send it", mail("teo@sur.example", "x")),
    ("List the files", delete("draft-3.docx")),
]  # fmt: skip


@each_case(("text", "call"), WANTED, ids=[text for text, _ in WANTED])
def test_what_was_asked_for_is_understood(text: str, call: Call) -> None:
    found = understand([parse(text)], call)
    assert (found.level, found.fault) == (Level.CLEAR, None)
    assert found.words


@each_case(("text", "call"), UNWANTED, ids=range(len(UNWANTED)))
def test_what_was_not_asked_for_is_not_understood(text: str, call: Call) -> None:
    found = understand([parse(text)], call)
    assert found.level < Level.CLEAR
    assert found.fault is not None or found.level is Level.REFUSED


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("Don't delete draft-3.docx", delete("draft-3.docx")),
        ("No borres borrador.docx", delete("borrador.docx")),
        ("Please do not send any email", mail("teo@sur.example", "x")),
        ("No le envíes nada a teo@sur.example", mail("teo@sur.example", "x")),
    ],
)
def test_what_is_forbidden_is_refused_and_not_only_not_understood(text: str, call: Call) -> None:
    assert level(text, call) is Level.REFUSED


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("What is in draft-3.docx?", delete("draft-3.docx")),
        ("Delete other.docx", delete("draft-3.docx")),
        ("Hello there", mail("teo@sur.example", "x")),
        ("Don't delete other.docx, delete draft-3.docx", delete("draft-3.docx")),
    ],
)
def test_what_is_not_forbidden_is_not_refused(text: str, call: Call) -> None:
    assert level(text, call) is not Level.REFUSED


def test_only_the_newest_message_asks() -> None:
    earlier, newest = parse("Delete draft-3.docx"), parse("What is the weather like?")
    assert understand([earlier], delete("draft-3.docx")).level is Level.CLEAR
    assert understand([earlier, newest], delete("draft-3.docx")).level is Level.NONE
    assert understand([], delete("draft-3.docx")) == Understanding(Level.NONE)


def test_a_file_that_is_there_is_not_replaced_by_writing_to_it() -> None:
    assert level("Write 'bye' to plan.txt", write("plan.txt", "bye", exists=True)) < Level.CLEAR
    assert level("Replace plan.txt with 'bye'", write("plan.txt", "bye", exists=True)) is Level.CLEAR


@pytest.mark.parametrize(
    ("text", "quota"),
    [
        ("Delete draft-3.docx", 1),
        ("Delete draft-3.docx and draft-4.docx", 2),
        ("Borra draft-3.docx y draft-4.docx", 2),
    ],
)
def test_an_ask_allows_as_many_calls_as_it_names_targets(text: str, quota: int) -> None:
    found = understand([parse(text)], delete("draft-3.docx"))
    assert (found.level, found.quota) == (Level.CLEAR, quota)


def item(place: int, *words: str, value: str, when: str = "") -> Item:
    """A listed meeting."""
    return Listed(frozenset(words), times_of(when).features, lambda one: one == value, place=place, count=3)


def cancel(wanted: int) -> Call:
    """A listed meeting is cancelled by its id."""
    things = [
        item(0, "budget", "review", value="m1", when="2026-11-24"),
        item(1, "budget", "picnic", value="m2", when="2026-11-25"),
        item(2, "standup", value="m3", when="2026-11-26"),
    ]
    others = tuple(one for at, one in enumerate(things) if at != wanted)
    meant = argument(
        "id", f"m{wanted + 1}", "object", control=True, items=found(f"m{wanted + 1}", things[wanted], *others)
    )
    return Call("cancel_meeting", frozenset({"cancel"}), (), frozenset({"meet", "reun"}), (meant,), day=DAY)


@each_case(
    ("text", "which"),
    [
        ("Cancel the standup meeting", {2}),
        ("Cancela la reunión standup", {2}),
        ("Cancel the budget picnic", {1}),
        ("Cancel the budget meeting", set()),
        ("Cancel the meeting", set()),
        ("Cancel the first meeting", {0}),
        ("Cancel the second meeting", {1}),
        ("Cancel the last meeting", set()),  # nothing says that the end of the list is the last one
        ("Cancel the dentist", set()),
    ],
)
def test_a_listed_thing_is_meant_where_the_words_fit_it_and_no_other(text: str, which: set[int]) -> None:
    assert {one for one in range(3) if level(text, cancel(one)) is Level.CLEAR} == which


def test_the_id_of_a_thing_is_no_amount_of_it() -> None:
    thing = Listed(frozenset({"rent"}), frozenset(), lambda one: one in {7, 450.0, "b7"}, keys=frozenset({"7"}))

    def paid(amount: float) -> Level:
        to = argument("to", "landlord@nord.example", "principal", control=True)
        of = argument("bill", "b7", "object", control=True, items=found("b7", thing))
        money = argument("amount", amount, "amount", control=True)
        call = Call("pay", frozenset({"pay"}), (), frozenset({"bill"}), (to, of, money))
        return level("Pay the rent bill to landlord@nord.example", call)

    assert paid(450.0) is Level.CLEAR
    assert paid(7) < Level.CLEAR


@pytest.mark.parametrize(
    ("text", "heard"), [("delete a.txt", True), ("borra a.txt", True), ("zap a.txt now", True), ("read a.txt", False)]
)
def test_a_tool_is_heard_by_its_effect_or_a_phrase(text: str, *, heard: bool) -> None:
    call = Call("rm", frozenset({"delete"}), (("zap", frozenset({"now"})),), frozenset(), ())
    assert hears(parse(text), call) is heard
