"""Amounts written in words."""

from __future__ import annotations

import pytest
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.reading import read_words

from tests.support.cases import each_case


@each_case(
    ("words", "amount"),
    [
        ("Transfer twenty euros to Bob", "20"),
        ("Send thirty five dollars", "35"),
        ("Send thirty-five dollars", "35"),
        ("Pay two hundred and fifty euros", "250"),
        ("Pay one thousand two hundred euros", "1200"),
        ("Send 1.5k to ES9121000418450200051332", "1500"),
        ("Send 2 thousand to Bob", "2000"),
        ("Manda veinte euros a Marta", "20"),
        ("Manda treinta y cinco euros a Marta", "35"),
        ("Paga ciento veinte euros", "120"),
        ("Paga mil doscientos euros", "1200"),
        ("Paga dos mil quinientos euros", "2500"),
        ("Manda 2 mil a Marta", "2000"),
        ("Manda 1,5k a Marta", "1500"),
    ],
)
def test_an_amount_that_is_said_is_one_the_user_named(words: str, amount: str) -> None:
    said = TaskIndex([read_words(words)]).words
    assert amount in said.numbers
    assert amount in said.money


@pytest.mark.parametrize(
    "words", ["Send money once to Bob", "Send one email to Bob", "Mil gracias", "You and two friends", "Ask for a mil"]
)
def test_a_number_word_that_counts_no_money_is_no_amount(words: str) -> None:
    assert not TaskIndex([read_words(words)]).words.numbers


def test_the_parts_of_a_said_amount_are_none() -> None:
    assert TaskIndex([read_words("Pay two hundred and fifty euros")]).words.money == {"250"}
