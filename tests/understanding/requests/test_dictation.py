"""Dictated texts, and what is said alongside them to the assistant."""

from __future__ import annotations

import pytest
from phylactery_understanding.calls.proposal import Argument, Call, Level
from phylactery_understanding.calls.understanding import understand
from phylactery_understanding.language.lexicon import lexicon
from phylactery_understanding.language.text import tokenize
from phylactery_understanding.requests.dictation import said_beside
from phylactery_understanding.requests.parser import parse

from tests.support.cases import each_case


@each_case(
    ("text", "beside"),
    [
        ("hola y otro a bob@example.org diciendo chau", "y otro a bob@example.org"),
        ("hola, con copia a bob@example.org", "con copia a"),
        ("hi, cc bob@example.org", "cc"),
        ("eggs to shopping.txt and to groceries.txt", "and to groceries.txt"),
        ("eggs to shopping.txt and", "and"),
        ("huevos a compras.txt y", "y"),
        ("hola, pero mañana", "pero manana"),
        ("I am late but not before 9", "but not before"),
        ("hola en inglés", "en ingles"),
        ("hello in capitals", "in capitals"),
        ("hi, signed Tom", "signed"),
        ("what I wrote in todo.txt", "what i"),
        ("lo que quieras", "lo que"),
        ("today's date", "today's date"),
        ("my name", "my name"),
        ("mi lista de compras", "mi lista"),
        ("a poem about cats", "a poem"),
        ("something nice", "something"),
        ("5 lines", "5 lines"),
        ("también detergente", "tambien"),
        ("la palabra hola", "la palabra"),
    ],
)
def test_what_is_said_beside_a_text_is_found(text: str, beside: str) -> None:
    assert said_beside(tokenize(text), lexicon()) == beside


@each_case(
    "text",
    [
        "",
        "\n",
        "y",
        "pan y leche",
        "call me please",
        "the meeting is tomorrow at 9",
        "the report is in report.pdf",
        "something came up at work",
        "it's late but I'm fine",
        "no puedo ir pero gracias",
        "my name is Bob",
        "algo pasó con la caldera",
        "first aid kit",
    ],
)
def test_what_is_part_of_a_text_is_not(text: str) -> None:
    assert said_beside(tokenize(text), lexicon()) == ""


def _mail(body: str) -> Call:
    return Call(
        tool="send_email",
        effects=frozenset({"send", "email"}),
        phrases=(),
        nouns=frozenset({"emai", "corr", "mail"}),
        arguments=(
            Argument("to", "ana@example.org", "principal", control=True),
            Argument("body", body, "content"),
        ),
    )


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("send an email to ana@example.org saying hi in spanish", "hi in spanish"),
        ("send an email to ana@example.org saying hi, signed Tom", "hi, signed Tom"),
        ("manda un correo a ana@example.org diciendo hola, pero mañana", "hola, pero mañana"),
        (
            "manda un correo a ana@example.org diciendo hola y otro a bob@example.org diciendo chau",
            "hola y otro a bob@example.org diciendo chau",
        ),
    ],
)
def test_a_call_that_takes_it_for_the_text_is_not_understood(words: str, body: str) -> None:
    assert understand([parse(words)], _mail(body)).level is not Level.CLEAR


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ('send an email to ana@example.org saying "hi in spanish"', "hi in spanish"),
        ("send an email to ana@example.org saying I will be late", "I will be late"),
    ],
)
def test_a_call_with_the_text_is_understood(words: str, body: str) -> None:
    assert understand([parse(words)], _mail(body)).level is Level.CLEAR
