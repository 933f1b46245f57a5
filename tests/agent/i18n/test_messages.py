"""The agent's messages: the same in every language, named by the code, and quick to format."""

from __future__ import annotations

from typing import get_args

import pytest
from phylactery_agent.graph.llm import asking, claims
from phylactery_agent.i18n import help as help_texts
from phylactery_agent.i18n.messages import is_message, message
from phylactery_agent.i18n.texts import error_text, is_unknown, say
from phylactery_agent.ports import Language
from phylactery_agent.rules.doubts import KINDS
from phylactery_agent.rules.recognition import intents
from phylactery_agent.runtime.guests.shares import Kind
from phylactery_agent.runtime.turn import canned_replies
from phylactery_agent.tools.registry import DisabledReason
from phylactery_agent.tools.specs import BUILTIN_SPECS, CANCEL_REMINDER, CREATE_REMINDER, REMEMBER, WRITE_FILE

from tests.support.effort import assert_within
from tests.support.packages.messages import MessageSet, words_in

UNDONE = (WRITE_FILE.name, CREATE_REMINDER.name, CANCEL_REMINDER.name)
"""Tools whose effects are named where they are told or taken back."""
APPROVAL_STATES = ("PENDING", "APPROVED", "REDEEMED", "REJECTED", "EXPIRED", "CANCELLED", "UNKNOWN", "UNASKED")


def codes() -> set[str]:
    """Return every error code that has a sentence and stands as a whole text in the code of a service."""
    named = words_in("phylactery_agent") | words_in("phylactery_riskgate")
    return {code for code in named if is_message(f"error_{code}")}


@pytest.mark.slow
def test_every_language_has_the_same_messages_with_the_same_values_and_the_code_names_each():
    MessageSet(
        "phylactery_agent.i18n",
        {"say": "", "message": "", "in_each_language": ""},
        {
            "doubt_": KINDS,
            "claim_": (*claims.KINDS, "unsure", "again"),
            "state_": APPROVAL_STATES,
            "help_": (*help_texts.TOPICS, "ask"),
            "topic_": help_texts.TOPICS,
            "stays_": (WRITE_FILE.name, CREATE_REMINDER.name),
            "off_": get_args(DisabledReason),
            "ahead_": ("approved", "rejected"),
            "share_": {*get_args(Kind)} - {"tokens"},
            "model_": {*asking.OUTAGES.values(), *asking._OF_TURN.values(), "unusable", "still_away"},
            "done_": (*UNDONE, *(f"{name}_unnamed" for name in UNDONE), REMEMBER.name),
            "back_": (*UNDONE, *(f"{name}_unnamed" for name in UNDONE), f"{WRITE_FILE.name}_removed", REMEMBER.name),
            "repeats_": ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"),
            "ended_": {one for name, one in vars(canned_replies).items() if name.isupper() and isinstance(one, str)},
            "form_": ("submitted", "in_doubt"),
            "error_": codes(),
            "tool_": {spec.name for spec in BUILTIN_SPECS},
            "near_": intents.READS | intents.EFFECTS,
            "cannot_": intents.BEYOND,
        },
    ).check()


@pytest.mark.timing
@pytest.mark.parametrize("language", get_args(Language))
def test_a_message_is_formatted_in_less_than_twenty_microseconds(language: Language):
    def format_many() -> None:
        for _ in range(1_000):
            say("waits", language, count=3, actions="a; b; c")
            message("unknown", language, clause="x" * 5_000)

    assert_within(0.04, format_many, tries=20)  # twenty microseconds for each


def test_a_number_has_its_own_form_in_both_languages():
    assert say("code_wrong", "en", left=1) == "The code is wrong. You have 1 try left, or say “cancel”."
    assert say("code_wrong", "es", left=1) == "El código no es correcto. Te queda 1 intento, o di «cancela»."
    assert "Te quedan 4 intentos" in say("code_wrong", "es", left=4)


def test_an_error_without_a_sentence_is_told_by_its_code():
    assert error_text("SOMETHING_NEW", "es") == "SOMETHING_NEW"
    assert error_text("PATH_OUTSIDE_SANDBOX", "es") == "solo puedo usar archivos de mi carpeta"


@pytest.mark.parametrize("language", get_args(Language))
def test_a_note_about_words_that_were_not_understood_is_recognised(language: Language):
    assert is_unknown(say("unknown", language, clause="«x»"), language)
    assert not is_unknown(say("fine", language), language)
