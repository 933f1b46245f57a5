"""Expressions stay within their memory, and RE2 writes nothing of its own to standard error."""

from __future__ import annotations

import random

import pytest
from phylactery_agent.rules.expressions import detect_language, expression
from phylactery_agent.rules.plain_replies import asks_time, plain_reply
from phylactery_agent.rules.planner import read_request
from phylactery_agent.tools.registry import ToolRegistry

TOOLS = ToolRegistry()
LETTERS = "aábcdeéfghiíjklmnñoópqrstuúvwxyzäöüßçžšåøДмитрий李雷αβγ’-' "
GREETINGS = (
    "hello {}",
    "hi {}!",
    "hola {}, ¿qué tal?",
    "good morning, {}",
    "buenos días, {}",
    "thanks {}",
    "gracias, {}",
)


@pytest.mark.slow
def test_greetings_by_name_leave_standard_error_empty(capfd: pytest.CaptureFixture[str]) -> None:
    chosen = random.Random(7)
    for number in range(60):
        name = "".join(chosen.choices(LETTERS, k=chosen.randint(1, 60)))
        text = GREETINGS[number % len(GREETINGS)].format(name.title())
        for read in (plain_reply, asks_time, detect_language):
            read(text)
        read_request(text, TOOLS)
    assert capfd.readouterr().err == ""


def test_an_expression_beyond_its_memory_still_answers_and_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    large = expression(r"(?i)^(?:\pL|\s){1,40}(?:[\pL\s]{1,20}x){3}$")
    chosen = random.Random(7)
    for _ in range(20):
        assert large.match("".join(chosen.choices(LETTERS, k=900)) + "!") is None
    assert capfd.readouterr().err == ""


def test_an_expression_that_is_none_is_still_an_error() -> None:
    with pytest.raises(Exception, match="missing"):
        expression("(")
