"""Requests are planned however they are spelled in a chat, and what they say is kept as it was typed."""

from __future__ import annotations

from typing import Any

import pytest
from phylactery_agent.rules.expressions import detect_language
from phylactery_agent.rules.plain_replies import asks_time, is_beyond, plain_reply
from phylactery_agent.rules.planner import read_request
from phylactery_agent.rules.spelling import chat_expression, named_groups, unaccented
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.cases import each_case

TOOLS = ToolRegistry()


def planned(text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(found[0].tool, found[0].args) for found in read_request(text, TOOLS).clauses]


@each_case(
    ("text", "tool", "args"),
    [
        ("q recordatorios tengo?", "list_reminders", {}),
        ("do i have any reminders?", "list_reminders", {}),
        ("tenes algun archivo?", "list_dir", {}),
        ("q pone en prueba.txt", "read_file", {"path": "prueba.txt"}),
        ("quisiera q me leas compras.txt", "read_file", {"path": "compras.txt"}),
        ("ok now read a.txt", "read_file", {"path": "a.txt"}),
        (
            "avisame en 5 minutos q apague el horno",
            "create_reminder",
            {"text": "apague el horno", "when": "en 5 minutos"},
        ),
        ("remind me tmrw at 8 am to call mom", "create_reminder", {"text": "call mom", "when": "tmrw at 8 am"}),
        ("wake me up in 20 mins", "create_reminder", {"text": "wake up", "when": "in 20 mins"}),
        ("despertame mañana a las 7 am", "create_reminder", {"text": "despertar", "when": "mañana a las 7 am"}),
        (
            "recordame el jueves a las 5 d la tarde pagar la luz",
            "create_reminder",
            {"text": "pagar la luz", "when": "el jueves a las 5 d la tarde"},
        ),
        ("borra el de mamá", "cancel_reminder", {"reminder": "mamá"}),
        ("cancel the one about mom", "cancel_reminder", {"reminder": "mom"}),
        (
            "could you jot down 'buy stamps' in notes.txt pls",
            "write_file",
            {"content": "buy stamps", "path": "notes.txt", "append": True},
        ),
        ("me mostras lo q hay en compras.txt?", "read_file", {"path": "compras.txt"}),
        ("any reminders?", "list_reminders", {}),
        ("set an alarm for 6:30 am", "create_reminder", {"text": "alarm", "when": "6:30 am"}),
        ("set a timer for 10 minutes", "create_reminder", {"text": "alarm", "when": "in 10 minutes"}),
        ("poneme una alarma para las 7", "create_reminder", {"text": "alarma", "when": "a las 7"}),
        ("guardá esto en gastos.txt: 200 super", "write_file", {"content": "200 super", "path": "gastos.txt"}),
        ("add to list.txt: milk", "write_file", {"content": "milk", "path": "list.txt", "append": True}),
        (
            "buscá café con leche en mis archivos",
            "search_files",
            {"pattern": "café con leche", "literal": True, "ignore_case": True},
        ),
    ],
)
def test_a_request_is_planned_as_it_is_typed(text: str, tool: str, args: dict[str, Any]) -> None:
    assert planned(text) == [(tool, args)]


def test_accents_and_short_words_stay_in_what_is_dictated() -> None:
    assert planned("añadí q llegué tardé x la lluvia a día.txt") == [
        ("write_file", {"content": "q llegué tardé x la lluvia", "path": "día.txt", "append": True})
    ]


def test_the_groups_of_a_match_are_the_words_as_typed() -> None:
    assert named_groups(chat_expression(r"qu[eé]\s+(?P<what>.+)"), "q línea") == {"what": "línea"}
    assert len(unaccented("ñandú, pingüino")) == len("ñandú, pingüino")


def test_a_file_named_without_its_extension_is_the_second_thing_that_is_read() -> None:
    [readings] = read_request("whats in list1", TOOLS).clauses
    assert [one.args["path"] for one in readings] == ["list1", "list1.txt"]
    [readings] = read_request("read notes.txt", TOOLS).clauses
    assert len(readings) == 1


@pytest.mark.parametrize("text", ["borra el de a.txt", "mostrame el partido", "cancel the one in b.txt"])
def test_what_names_no_reminder_and_no_file_is_not_guessed(text: str) -> None:
    assert planned(text) == []


@pytest.mark.parametrize("text", ["q hora es??", "y q dia es hoy", "and what time is it"])
def test_the_time_is_asked_for_in_a_chat_too(text: str) -> None:
    assert asks_time(text)


@pytest.mark.parametrize(
    "text", ["como esta el tiempo en madrid", "contame un chiste", "will it rain tomorrow", "cuanto es 12 x 8"]
)
def test_what_nobody_can_do_here_is_said(text: str) -> None:
    assert is_beyond(text)
    assert not planned(text)


@pytest.mark.parametrize("text", ["no tengo tiempo", "rain.txt", "write rain to a.txt", "me gusta la lluvia"])
def test_anything_else_is_not_taken_for_it(text: str) -> None:
    assert not is_beyond(text)


@each_case(
    ("text", "key"),
    [
        ("dont write anything to notes.txt", "rejected"),
        ("no escribas nada en ideas.txt", "rejected"),
        ("olvidate de mi nombre", "cannot_forget"),
        ("forget my birthday", "cannot_forget"),
        ("cambiale el nombre a saludo.txt", "cannot_files"),
        ("actually make it 30", ""),
        ("no, perdona, el jueves", ""),
        ("don't forget to call", ""),
    ],
)
def test_refusals_and_wishes_have_their_own_replies(text: str, key: str) -> None:
    assert plain_reply(text) == key


@each_case(
    ("text", "language"),
    [("nevermind", "en"), ("scratch that", "en"), ("despertame mañana", "es"), ("y tmb azucar", "es")],
)
@each_case("fallback", ["es", "en"])
def test_the_lexicon_tells_the_language_of_rarer_words(text: str, language: str, fallback: Any) -> None:
    assert detect_language(text, fallback) == language
