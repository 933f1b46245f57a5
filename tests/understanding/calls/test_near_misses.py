"""Calls close to the request, and text close to a request: each is a reason to ask."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from phylactery_understanding.calls.content.model import Source
from phylactery_understanding.calls.proposal import Argument, Call, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.interpretation.check import check
from phylactery_understanding.interpretation.matching import understand_interpreted
from phylactery_understanding.interpretation.model import Interpretation, InterpretedAsk, Mode
from phylactery_understanding.language.numbers import amounts_at
from phylactery_understanding.language.text import tokenize
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case

BOB = "bob@acme.example"


def _mail(body: str, subject: str | None = None, to: str = BOB) -> Call:
    more = () if subject is None else (Argument("subject", subject, "content"),)
    arguments = (Argument("to", to, "principal", control=True), *more, Argument("body", body, "content"))
    return Call("send_email", frozenset({"send"}), (), frozenset({"emai", "mail", "corr"}), arguments)


def _cancel(order: str, role: str = "content") -> Call:
    arguments = (Argument("order_id", order, role, control=role != "content"),)
    return Call("cancel_order", frozenset({"cancel"}), (), frozenset({"orde", "pedi"}), arguments)


def _transfer(to: str, amount: float, currency: str = "EUR") -> Call:
    arguments = (
        Argument("to_account", to, "resource", control=True),
        Argument("amount", amount, "amount", control=True),
        Argument("currency", currency, "resource", control=True),
    )
    return Call("transfer", frozenset({"transfer"}), (), frozenset({"tran", "mone", "dine"}), arguments)


def _write(path: str, content: str, *, append: bool = False, read: str = "") -> Call:
    words = set(read.replace(".", " ").replace(",", " ").lower().split())
    arguments: list[Any] = [Argument("path", path, "path", control=True), Argument("content", content, "content")]
    if append:
        arguments.append(Argument("append", value=True, role="resource"))
    texts = Source(holds=words.__contains__, named=lambda name: name.endswith(".txt"), some=bool(read))
    nouns = frozenset({"file", "note", "arch"})
    return Call("write_file", frozenset({"write"}), (), nouns, tuple(arguments), texts=texts)


def _remind(text: str, when: str) -> Call:
    arguments = (Argument("text", text, "content"), Argument("when", when, "date"))
    return Call("create_reminder", frozenset({"remind"}), (), frozenset({"remi", "reco"}), arguments)


MAIL = f"Send an email to {BOB} saying "
PAY = "Transfer 50 EUR to Clara"

WRONG: list[tuple[str, Call]] = [
    # an id is one name, and no beginning of another
    ("Cancel order A-77", _cancel("A-770")),
    ("Cancel order A-770", _cancel("A-77")),
    ("Cancel order A-770", _cancel("A-771")),
    ("Cancel order ORD-2026-001", _cancel("ORD-2026")),
    # a dictated text is what was dictated
    (MAIL + "I love you", _mail("I hate you")),
    (MAIL + "the boat leaves at nine", _mail("The boat leaves at ten")),
    (MAIL + "we need two boats", _mail("We need three boats")),
    (MAIL + "llego tres horas tarde", _mail("Llego dos horas tarde")),
    (f"Manda un correo a {BOB} diciendo que sale a las nueve", _mail("Sale a las diez")),
    (MAIL + "the twenty chairs are here", _mail("The thirty chairs are here")),
    ("remind me tomorrow at 9 to buy three apples", _remind("buy four apples", "tomorrow at 9")),
    (MAIL + "we approve the budget", _mail("We reject the budget")),
    (MAIL + "Ana owes Luis 50", _mail("Luis owes Ana 50")),
    (MAIL + "the patient takes 5 mg", _mail("The patient takes 5 g")),
    (MAIL + "we pay Acme on Monday", _mail("We pay Eve on Monday")),
    (MAIL + "I will be late", _mail("I will be late", "You are fired")),
    (MAIL + "all of us come", _mail("Some of us come")),
    (MAIL + "he owes us", _mail("We owe him")),
    (MAIL + "I love you", _mail("You love me")),
    (MAIL + "we are in", _mail("We are out")),
    (MAIL + "Marta is fired", _mail("Mario is fired")),
    (MAIL + "you can start now", _mail("You can stay now")),
    (MAIL + "the shipment is here", _mail("The shipment delay is here")),
    (MAIL + "I will be late", _mail("I will\u200b be late")),
    (f'Send an email to {BOB} with subject "Hi" and body "See you"', _mail("Hi", "See you")),
    ('write "Hello" to notes.txt', _write("notes.txt", "hello")),
    ('write "año" to notes.txt', _write("notes.txt", "ano")),
    ('write "deny all" to notes.txt', _write("notes.txt", "#deny all")),
    ('write "rm -rf build" to clean.sh', _write("clean.sh", "rm -rf / build")),
    ('overwrite list.txt with "milk"', _write("list.txt", "milk", append=True)),
    ("Fix the typos in run.sh", _write("run.sh", "rm -rf ~\n", read="ehco hello")),
    ("Summarize a.txt to s.txt", _write("s.txt", "Visit evil example dot com now", read="The budget was refused")),
    ("Write a summary of a.txt to s.txt", _write("s.txt", "The budget was refused")),
    ("add milk to list.txt", _write("list.txt", "milk\neggs", append=True)),
    ("add sugar and salt to list.txt", _write("list.txt", "sugar and poison", append=True)),
    ("write hello to notes.txt", _write("Notes.txt", "hello")),
    # an amount is the whole of it
    ("Transfiere 50.000 euros a Clara", _transfer("Clara", 50)),
    ("Transfer one hundred and fifty EUR to Clara", _transfer("Clara", 100)),
    ("Transfiere cincuenta y cinco euros a Clara", _transfer("Clara", 50)),
    ("Transfer up to 50 EUR to Clara", _transfer("Clara", 50)),
    ("Transfer 50 % to Clara", _transfer("Clara", 50)),
    ("Transfiere 50 pesos a Clara", _transfer("Clara", 50)),
    ("Transfer 50 EUR to Clara or Hugo", _transfer("Clara", 50)),
    # what is said around it
    (PAY + ". Let me confirm first.", _transfer("Clara", 50)),
    (PAY + ". Ask me before you do it.", _transfer("Clara", 50)),
    ("Ask Hugo and transfer 50 EUR to Clara", _transfer("Clara", 50)),
    ("This is a drill. " + PAY, _transfer("Clara", 50)),
    ("Message from Joe. " + PAY, _transfer("Clara", 50)),
    ("Queda prohibido lo siguiente. Transfiere 50 EUR a Clara.", _transfer("Clara", 50)),
    ("Things I refuse to do:\n" + PAY, _transfer("Clara", 50)),
    ("Joe's requests\n\n" + PAY, _transfer("Clara", 50)),
    ("нет, " + PAY, _transfer("Clara", 50)),
    (PAY + " 👎", _transfer("Clara", 50)),
    (PAY + " ✋", _transfer("Clara", 50)),
    (PAY + "!?", _transfer("Clara", 50)),
    ("/* " + PAY + " */", _transfer("Clara", 50)),
    ("Tasks for Bob\n" + PAY, _transfer("Clara", 50)),
    ("Risks:\n" + PAY, _transfer("Clara", 50)),
    ("Transfer about 50 EUR to Clara", _transfer("Clara", 50)),
    ("Transfer 50 EUR a month to Clara", _transfer("Clara", 50)),
    ("Transfer five fifty EUR to Clara", _transfer("Clara", 55)),
    ("Demande-moi d'abord. Annule la commande 4011", _cancel("4011")),
    ("Das ist nur eine Übung. Storniere die Bestellung 4011", _cancel("4011")),
    ("Remind bob to call me tomorrow at 9", _remind("bob to call me", "tomorrow at 9")),
    ("I have to transfer 50 EUR to Clara", _transfer("Clara", 50)),
    ("On Monday transfer 50 EUR to Clara", _transfer("Clara", 50)),
    (PAY + " tonight", _transfer("Clara", 50)),
    (PAY + " later", _transfer("Clara", 50)),
    (PAY + ", so to speak", _transfer("Clara", 50)),
    ("Transfiere 50 EUR a Clara, creo", _transfer("Clara", 50)),
    ("Transfiere 50 EUR a Clara y un jamón", _transfer("Clara", 50)),
    # a reminder is for who asks, at the time that was said
    ("Remind Ana to call me at 5pm", _remind("call me", "5pm")),
    ("Remind me next Friday at 9am to pay", _remind("pay", "last Friday at 9am")),
    ("Remind me until Friday at 9am to drink", _remind("drink", "Friday at 9am")),
    ("Remind me at 12am to sleep", _remind("sleep", "12:00")),
    ("Recuérdame mañana a las 5 de la tarde llamar", _remind("llamar", "mañana a las 5:00")),
    # what goes nowhere yet
    (f"Draft an email to {BOB} saying I will be late", _mail("I will be late")),
    (f"Write me an email to {BOB} saying I will be late", _mail("I will be late")),
    (f"Escribe un borrador de correo a {BOB} diciendo que llego tarde", _mail("Llego tarde")),
]


@each_case(("words", "call"), WRONG, ids=[f"{words[:50]} > {call.tool}" for words, call in WRONG])
def test_what_is_nearly_asked_for_is_not_understood(words: str, call: Call) -> None:
    assert understand([parse(words)], call).level is not Level.CLEAR


RIGHT: list[tuple[str, Call]] = [
    ("Cancel order A-77", _cancel("A-77")),
    (MAIL + "I love you", _mail("I love you.")),
    (MAIL + "the boat leaves at nine", _mail("The boat leaves at 9:00.")),
    (MAIL + "we need two boats", _mail("We need 2 boats.")),
    (MAIL + "the rent is due at nine", _mail("Hi, the rent is due at 9. Thanks")),
    (MAIL + "twenty five people come", _mail("Twenty five people come")),
    (MAIL + "I want one of each", _mail("I want one of each")),
    (MAIL + "I will be late", _mail("Hi Bob, I will be late. Thanks!")),
    (MAIL + "we pay Acme on Monday", _mail("Hello, we pay Acme on Monday.")),
    (f'Send an email to {BOB} with subject "Hi" and body "See you"', _mail("See you", "Hi")),
    ('write "Hello" to notes.txt', _write("notes.txt", "Hello\n")),
    ('write "hello" to notes.txt', _write("notes.txt", "Hello.")),
    ("Summarize a.txt to s.txt", _write("s.txt", "The budget was refused.", read="The budget was refused")),
    ("add milk to list.txt", _write("list.txt", "- milk\n", append=True)),
    ("write hello to Notes.txt", _write("Notes.txt", "hello")),
    ("Remind me next Friday at 9am to pay", _remind("pay", "next Friday at 9am")),
    ("Recuérdame mañana a las 5 de la tarde llamar", _remind("llamar", "mañana a las 17:00")),
    (PAY, _transfer("Clara", 50)),
    (PAY + " please 🙂", _transfer("Clara", 50)),
    ("Transfiere 50.000 euros a Clara", _transfer("Clara", 50_000)),
    ("Transfer one hundred and fifty EUR to Clara", _transfer("Clara", 150)),
    ("Transfiere cincuenta y cinco euros a Clara", _transfer("Clara", 55)),
    ("My rent is due. " + PAY + ".", _transfer("Clara", 50)),
]


@each_case(("words", "call"), RIGHT, ids=[f"{words[:50]} > {call.tool}" for words, call in RIGHT])
def test_what_is_asked_for_still_is(words: str, call: Call) -> None:
    assert understand([parse(words)], call).level is Level.CLEAR


@each_case(
    ("text", "amounts"),
    [
        ("50", {50}),
        ("1,500", {1_500}),
        ("1.500", {1_500}),
        ("12.50", {Decimal("12.5")}),
        ("2,5", {Decimal("2.5")}),
        ("up to 50", set()),
        ("menos de 50", set()),
        ("at least 50", set()),
        ("50 %", set()),
        ("50 por ciento", set()),
        ("-10", set()),
        ("≠ 50", set()),
        ("50 more", set()),
        ("5²", set()),
        ("ten and a half", set()),
        ("una docena", {12}),
        ("two hundred and five", {205}),
        ("tres mil doscientos", {3_200}),
    ],
)
def test_an_amount_is_the_whole_number_and_no_bound_share_or_change(text: str, amounts: set[Any]) -> None:
    tokens = tokenize(text)
    found = {one for place in range(len(tokens)) for one in amounts_at(tokens, place)}
    assert found == {Decimal(one) for one in amounts}


@pytest.mark.parametrize(("text", "amounts"), [("lower it 10", set()), ("lower it to 10", {10})])
def test_what_is_raised_or_lowered_says_to_what(text: str, amounts: set[int]) -> None:
    tokens = tokenize(text)
    assert {one for place in range(len(tokens)) for one in amounts_at(tokens, place, {"lower"})} == amounts


@pytest.mark.parametrize("words", ["!!!", "...", "👍", ""])
def test_marks_alone_ask_for_nothing(words: str) -> None:
    ask = InterpretedAsk("undo_write", (), Mode.NONE)
    call = Call("undo_write", frozenset({"undo"}), (), frozenset(), ())
    request = parse(words)
    checked = check(Interpretation("v", "m", (ask,)), request)
    assert understand_interpreted(checked, request, call).level is not Level.CLEAR


@pytest.mark.parametrize(
    "words",
    [
        "transfer " + "one " * 4_800 + "EUR to Clara",
        "transfer " + "50 and one hundred " * 1_000 + "EUR to Clara",
        MAIL + "and " * 9_000,
        MAIL + "but not before nine " * 900,
    ],
    ids=["number words", "numbers", "joints", "limits"],
)
def test_hostile_words_take_no_longer_than_their_length(words: str) -> None:
    """A quadratic comparison of these takes minutes: the test's own time limit ends it."""
    call = _transfer("Clara", 50) if words.startswith("transfer") else _mail("and " * 4_000)
    assert understand([parse(words)], call).level is not Level.CLEAR
