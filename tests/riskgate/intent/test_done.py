"""What a result shows to be done, whoever let it run, is not what the user still asks for."""

from __future__ import annotations

from typing import Any

from phylactery_riskgate.domain.intent.facts import task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import CLEAR, TaskFacts
from phylactery_riskgate.domain.intent.reading import Piece, read_result, read_words
from phylactery_riskgate.domain.model import BoundCall

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_bundle

TOOLS = default_bundle().tools
TRAIN = {"to": "ana@acme.es", "body": "the train is late"}
PAN = {"path": "compra.txt", "content": "pan", "append": True}
VET = {"text": "call the vet", "when": "tomorrow at 9"}


def done(tool: str, arguments: dict[str, Any], text: str = "done", **more: bool) -> Piece:
    how = {"is_text": True, "failed": False, **more}
    return read_result(TOOLS[tool], tool, "c0", arguments, text, **how).piece


def facts(tool: str, arguments: dict[str, Any], *shown: str | Piece) -> TaskFacts:
    index = TaskIndex([read_words(one, "2026-11-30") if isinstance(one, str) else one for one in shown])
    return task_facts(index, TOOLS[tool], BoundCall("", "", arguments, "", ""))


@each_case(
    ("words", "tool", "first", "then"),
    [
        ("Tell ana@acme.es that the train is late", "send_email", TRAIN, TRAIN),
        ("Tell ana@acme.es that the train is late", "send_email", {**TRAIN, "body": "Hi Ana! Train delayed"}, TRAIN),
        ("Tell ana@acme.es that the train is late", "send_email", {**TRAIN, "subject": "Train"}, TRAIN),
        ('Añade "pan" a compra.txt', "write_file", PAN, PAN),
        ('Añade "pan" a compra.txt', "write_file", {**PAN, "content": "# Compra\npan y leche"}, PAN),
        (
            "Manda un correo a ana@acme.es diciendo hola",
            "send_email",
            {**TRAIN, "body": "hola, Ana"},
            {**TRAIN, "body": "hola"},
        ),
        ("Remind me tomorrow at 9 to call the vet", "create_reminder", VET, VET),
        ("Cancel the reminder vet", "cancel_reminder", {"reminder": "vet"}, {"reminder": "vet"}),
    ],
)
def test_one_request_has_one_effect_also_if_another_than_redeem_counted_it(words, tool, first, then):
    assert facts(tool, then, words).intent == CLEAR, "a second call that the words yield"
    after = facts(tool, then, words, done(tool, first))
    assert (after.intent, after.missing[0]) == (1, "used-up")
    assert after.ask, "the ask it was"
    assert facts(tool, then, words, done(tool, first), "yes").intent < CLEAR, "a yes to it is no new request"


@each_case(
    ("shown", "tool", "arguments"),
    [
        (["Tell ana@acme.es that the train is late", done("send_email", TRAIN, failed=True)], "send_email", TRAIN),
        (["Tell ana@acme.es that the train is late", done("send_email", TRAIN, unproven=True)], "send_email", TRAIN),
        (
            ["Tell ana@acme.es that the train is late", done("send_email", {**TRAIN, "to": "eva@acme.es"})],
            "send_email",
            TRAIN,
        ),
        (
            [
                "Tell ana@acme.es that the train is late",
                done("send_email", TRAIN),
                "Tell ana@acme.es that the train is late",
            ],
            "send_email",
            TRAIN,
        ),
        (['Escribe "pan" en a.txt y en b.txt', done("write_file", {"path": "a.txt", "content": "pan"})],
         "write_file", {"path": "b.txt", "content": "pan"}),
        (['Write "one" to a.txt. Append "two" to a.txt.', done("write_file", {"path": "a.txt", "content": "one"})],
         "write_file", {"path": "a.txt", "content": "two", "append": True}),
        (["Write hello to a.txt", done("read_file", {"path": "a.txt"}, "bye")],
         "read_file", {"path": "a.txt"}),
        (['Append "pan" to a.txt', done("read_file", {"path": "a.txt"}, "leche")],
         "write_file", {"path": "a.txt", "content": "pan", "append": True}),
    ],
)  # fmt: skip
def test_what_is_still_to_be_done_is_done(shown, tool, arguments):
    found = facts(tool, arguments, *shown)
    assert found.missing[0] != "used-up"
    assert found.intent == CLEAR or TOOLS[tool].effect == "read"
