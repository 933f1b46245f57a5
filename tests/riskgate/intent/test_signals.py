"""Signals in a call's contents: private values in any notation, and contents too large to check."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest
from phylactery_riskgate.domain.facts.facts import NO_TOOL
from phylactery_riskgate.domain.intent.facts import MAX_LEAVES, task_facts
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.intent.origin.signals import MAX_CONTENT
from phylactery_riskgate.domain.intent.reading import read_result, read_words
from phylactery_riskgate.domain.model import Asks, BoundCall

from tests.support.cases import each_case

SEND = replace(
    NO_TOOL,
    name="send_email",
    effect="irreversible",
    controls=("/to",),
    roles={"/to": "principal", "/body": "content"},
    asks=Asks(phrases_en=("send * email",), phrases_es=("manda * correo",)),
)
ME = replace(NO_TOOL, name="me", outputs=(("/*", "private"),))
STREET = "Secret Street 12345"
ASKED = "Send an email to bob@corp.example, please"


def facts(body: Any, words: str = ASKED) -> TaskFacts:
    """The facts of an email to Bob, by somebody who lives in a secret street."""
    shown = read_result(ME, "me", "c0", {}, {"street": STREET}, is_text=False, failed=False)
    index = TaskIndex([read_words(words), shown.piece])
    return task_facts(index, SEND, BoundCall("", "", {"to": "bob@corp.example", "body": body}, "", ""))


@each_case(
    ("body", "wanted"),
    [
        ("I live in Secret Street 12345, come over", 2),
        ("secretstreet12345", 2),
        ("SecretStreet-12345", 2),
        ("s e c r e t s t r e e t 1 2 3 4 5", 2),
        (b64encode(b"I live in Secret Street 12345").decode(), 2),
        ("It is Secret street: no 12345", 1),
        ("Number 12345 of Secret Street", 1),
        ("A secret meeting, and 12345 people will stand in the street", 0),
        ("See you tomorrow", 0),
    ],
)
def test_a_private_value_is_found_however_it_is_written(body: str, wanted: int) -> None:
    found = facts(body)
    assert (max(wanted, found.signals), "something private: street" in found.signal_reasons) == (
        found.signals,
        wanted > 0,
    )


@pytest.mark.parametrize("words", ["Send an email with my street to Bob", "Manda un correo a Bob: Secret Street 12345"])
def test_a_private_value_the_user_asked_for_is_no_signal(words: str) -> None:
    assert facts("Secret Street 12345", words).signals == 0


@pytest.mark.slow
def test_a_text_of_which_not_all_is_looked_at_is_asked_about() -> None:
    long = facts("x " * (MAX_CONTENT // 2) + STREET)
    assert long.signals == 1
    assert "more text than is looked at" in long.signal_reasons
    assert facts("x " * (MAX_CONTENT // 2 - 20) + STREET).signals == 2


def test_words_that_are_no_encoding_hide_none_that_is() -> None:
    junk = " ".join("\u00ff".join(["x"] * 3) + f"zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz{n}" for n in range(20))
    assert facts(f"{junk} {b64encode(STREET.encode()).decode()}").signals == 2


def test_more_encodings_than_are_looked_at_are_asked_about() -> None:
    blobs = " ".join(b64encode(f"nothing at all to see {n}".encode()).decode() for n in range(20))
    assert "more text in an encoding than is looked at" in facts(blobs).signal_reasons


def test_a_list_of_which_not_all_is_looked_at_is_asked_about() -> None:
    found = facts(["x"] * MAX_LEAVES + [STREET])
    assert found.signals >= 1
    assert "more values than are looked at" in found.signal_reasons
