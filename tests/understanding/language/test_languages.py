"""Requests and refusals in French, Portuguese, Italian, German and Catalan, each with its own lexicon."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.proposal import Argument, Call, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.language.lexicon import OPERATORS, SHARED, lexicon, lexicons
from phylactery_understanding.language.text import tokenize
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case

OTHERS = ("ca", "de", "fr", "it", "pt")
TO = "claire@mairie.example"


def _mail(body: str) -> Call:
    arguments = (Argument("to", TO, "principal", control=True), Argument("body", body, "content"))
    return Call("send_email", frozenset({"send"}), (), frozenset({"mail", "emai"}), arguments)


def _cancel(order: str) -> Call:
    arguments = (Argument("order_id", order, "resource", control=True),)
    return Call("cancel_order", frozenset({"cancel"}), (), frozenset({"orde"}), arguments)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (f"écris à {TO} que je viendrai jeudi", _mail("Bonjour, je viendrai jeudi.")),
        (f"scrivi a {TO} che arrivo giovedì", _mail("Ciao, arrivo giovedì.")),
        (f"schreib an {TO}, dass ich am Donnerstag komme", _mail("Hallo, ich komme am Donnerstag.")),
        (f"escreve a {TO} que chego na quinta", _mail("Olá, chego na quinta.")),
        (f"escriu a {TO} que arribo dijous", _mail("Hola, arribo dijous.")),
    ],
)
def test_a_clear_request_is_understood(words: str, call: Call) -> None:
    assert understand([parse(words)], call).level is Level.CLEAR


@each_case(
    ("words", "call"),
    [
        (f"n'écris pas à {TO} que je viendrai jeudi", _mail("Bonjour, je viendrai jeudi.")),
        (f"j'ai écrit à {TO} que je viendrai jeudi", _mail("Bonjour, je viendrai jeudi.")),
        (f"si Paul appelle, écris à {TO} que je viendrai jeudi", _mail("Bonjour, je viendrai jeudi.")),
        (f"non scrivere a {TO} che arrivo giovedì", _mail("Ciao, arrivo giovedì.")),
        (f"se piove scrivi a {TO} che arrivo giovedì", _mail("Ciao, arrivo giovedì.")),
        (f"schreib nicht an {TO}, dass ich am Donnerstag komme", _mail("Hallo, ich komme am Donnerstag.")),
        (f"wenn Paul anruft, schreib an {TO}, dass ich komme", _mail("Hallo, ich komme.")),
        (f"não escreva a {TO} que chego na quinta", _mail("Olá, chego na quinta.")),
        (f"se chover escreve a {TO} que chego na quinta", _mail("Olá, chego na quinta.")),
        (f"no escriguis a {TO} que arribo dijous", _mail("Hola, arribo dijous.")),
        (f"si plou escriu a {TO} que arribo dijous", _mail("Hola, arribo dijous.")),
        (f"écris à {TO} que je viendrai jeudi", _mail("Bonjour, je ne viendrai pas jeudi.")),
        (f"scrivi a {TO} che arrivo giovedì", _mail("Ciao, non arrivo giovedì.")),
        ("annulé la commande 4011", _cancel("4011")),
        ("Annulé : commande 4011", _cancel("4011")),
        ("annule tout sauf la commande 4011", _cancel("4011")),
        ("annulla tutto tranne l'ordine 4011", _cancel("4011")),
        ("storniere alles außer Bestellung 4011", _cancel("4011")),
        ("storniere die Bestellung 4012, nicht 4011", _cancel("4011")),
        ("cancela tudo menos o pedido 4011", _cancel("4011")),
        ("cancel·la-ho tot excepte la comanda 4011", _cancel("4011")),
        ("was passiert, wenn ich Bestellung 4011 storniere?", _cancel("4011")),
        ("o que acontece se eu cancelar o pedido 4011?", _cancel("4011")),
    ],
)
def test_a_refusal_a_condition_and_what_was_told_are_not(words: str, call: Call) -> None:
    assert understand([parse(words)], call).level is not Level.CLEAR


@pytest.mark.parametrize(
    "words", ["mandé el informe a ana@x.example", "agregué miel a a.txt", "borré a.txt", "pagué 3"]
)
def test_what_only_an_accent_tells_from_a_request_is_none(words: str) -> None:
    assert not parse(words).asks


@pytest.mark.parametrize("words", ["leé a.txt", "traé a.txt", "mande el informe a ana@x.example"])
def test_a_form_of_voseo_and_a_polite_one_are_requests(words: str) -> None:
    assert parse(words).asks


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_fills_every_operator_and_knows_those_people_mix_with_it(language: str) -> None:
    own = lexicons().by_language[language]
    assert all(own.phrases[name] for name in OPERATORS)
    assert own.holds("negation", "never")


def test_english_and_spanish_are_read_with_the_words_of_both_and_of_no_other() -> None:
    assert SHARED == ("en", "es")
    for words in ("write hola to a.txt", "escribe hello en a.txt", "borra a.txt", "a.txt", ""):
        assert lexicons().of(tokenize(words)) is lexicon()
    assert not lexicon().verb("storniere")
