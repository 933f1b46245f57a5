"""Recognition by examples: what shares mean, what they cost, and what the phrases hold."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest
from phylactery_agent.i18n.messages import is_message
from phylactery_agent.rules.recognition import intents
from phylactery_agent.rules.recognition.bayes import NaiveBayes
from phylactery_agent.rules.recognition.features import MAX_CHARS, features_of, words_of
from phylactery_agent.rules.recognition.recognizer import SURE, TEMPERATURE, model, needs_no_tool, phrases, recognize

from tests.support.effort import assert_within

FORMS = {"form_appointment", "form_complaint", "form_expense"}
KNOWN = intents.CHAT | intents.BEYOND | intents.READS | intents.EFFECTS | intents.TALK | intents.IN_FORMS | FORMS


def test_every_intent_has_phrases_and_a_place() -> None:
    found = Counter(name for name, _ in phrases())
    assert set(found) == KNOWN
    assert min(found.values()) >= 20
    groups = (intents.CHAT, intents.BEYOND, intents.READS, intents.EFFECTS, intents.TALK, intents.IN_FORMS, FORMS)
    assert sum(map(len, groups)) == len(KNOWN)


def test_no_phrase_has_two_intents() -> None:
    names: dict[tuple[str, ...], set[str]] = {}
    for name, phrase in phrases():
        names.setdefault(tuple(words_of(phrase)), set()).add(name)
    assert {words: found for words, found in names.items() if len(found) > 1} == {}


def test_what_is_beyond_the_agent_has_a_refusal() -> None:
    assert {name for name in intents.BEYOND if not is_message(f"cannot_{name}")} == set()
    assert {name for name in intents.READS | intents.EFFECTS if not is_message(f"near_{name}")} == set()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("¿Q HORA ES?", ["que", "hora", "es", "?"]),
        ("bórralo xfa", ["borralo", "porfa"]),
        ("read notes.txt at 9:30", ["read", "_file", "at", "_number"]),
        ("mail ana@example.org", ["mail", "_address"]),
        ("write “hello there”", ["write", "_quoted"]),
        ("jajajaja siiiii", ["haha", "si"]),
        ("what's up", ["whats", "up"]),
    ],
)
def test_words_are_the_same_however_they_are_spelled(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize("text", ["", "   ", "x" * (MAX_CHARS + 1), "read it " * 60])
def test_nothing_is_recognized_in_nothing_and_in_long_texts(text: str) -> None:
    assert recognize(text).intent == ""
    assert recognize(text).share == 0.0


def test_shares_are_shares() -> None:
    found = recognize("could you show me what is in my todo file").shares
    assert sum(one.share for one in found) == pytest.approx(1.0)
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)


def test_a_class_with_more_phrases_does_not_swallow_the_others() -> None:
    small = NaiveBayes([("a", ["x"])] * 90 + [("b", ["y"])] * 10, temperature=1.0)
    assert small.shares(["y"])[0].name == "b"
    assert small.shares(["z"]) == []


@pytest.mark.slow
def test_of_what_is_sure_few_are_wrong_on_phrases_kept_apart() -> None:
    # kept apart by the phrases themselves, so that a new one does not change which others are
    known = [(crc32(phrase.encode()) % 10, name, tuple(features_of(words_of(phrase)))) for name, phrase in phrases()]
    trained = NaiveBayes([(name, features) for part, name, features in known if part], temperature=TEMPERATURE)
    found = [(name, trained.shares(features)) for part, name, features in known if not part]
    sure = [name == shares[0].name for name, shares in found if shares and shares[0].share >= SURE]
    assert len(sure) > len(found) // 6
    assert sum(sure) / len(sure) >= 0.93


@pytest.mark.timing
def test_a_hundred_messages_take_a_fraction_of_a_second_and_the_model_is_built_once() -> None:
    assert model() is model()
    said = [phrase for _, phrase in phrases()][::200][:100]
    assert_within(2, lambda: [recognize(text) for text in said])


@pytest.mark.parametrize("text", ["do you have a pet", "tell me a joke please", "cuéntame un chiste", "cómo te llamas"])
def test_talk_needs_no_tool(text: str) -> None:
    assert needs_no_tool(recognize(text), surely=False)


@pytest.mark.parametrize("text", ["remind me to call Ana", "añade leche a la lista", "read my notes", "will it rain"])
def test_a_request_does(text: str) -> None:
    assert not needs_no_tool(recognize(text), surely=False)
