"""RiskGate's messages: the same in every language, and each named by the code."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.util.messages import read_messages
from phylactery_riskgate.cli.common import Texts
from phylactery_riskgate.domain.policy.reasons import reason, violation_reason
from phylactery_riskgate.notices.model import Event
from phylactery_riskgate.notices.wording import _FIELDS as FIELDS

from tests.support.packages.messages import MessageSet, words_in

EVENTS = [str(one).replace(".", "_") for one in Event]
SAID = read_messages("phylactery_riskgate.i18n", "en")
KEYWORDS = (
    *("required", "type", "additionalProperties", "pattern", "format", "enum", "const", "uniqueItems", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"),
)


def named(start: str, *packages: str) -> set[str]:
    """Return how the ids with this beginning go on, where it stands as a whole text in the code of a package."""
    return {word for package in packages for word in words_in(package) if f"{start}{word}" in SAID}


def names(enum: type, start: str) -> list[str]:
    """Return the names of a contract's words, without the unspecified one."""
    return [name.removeprefix(start) for name in enum.keys()[1:]]


@pytest.mark.slow
def test_every_language_has_the_same_messages_with_the_same_values_and_the_code_names_each():
    MessageSet(
        "phylactery_riskgate.i18n",
        {"reason": "reason_", "say": "approvals_"},
        {
            "reason_": named("reason_", "phylactery_riskgate")
            | {"FROZEN_TENANT", "FROZEN_USER", "FROZEN_TOOL", "FROZEN_ACTOR"},
            "violation_": (*KEYWORDS, "any", "null"),
            "budget_": ("calls", "amount", "recipients"),
            "why_": named("why_", "phylactery_riskgate"),
            **{f"notices_{event}": {""} for event in EVENTS if f"notices_{event}" in SAID},
            **{f"notices_{event}_": named(f"notices_{event}_", "phylactery_riskgate") for event in EVENTS},
            "notices_field_": FIELDS,
            "doubt_": named("doubt_", "phylactery_understanding", "phylactery_riskgate") | {"any"},
            "approvals_": names(types_pb2.ArgumentChange, "ARGUMENT_CHANGE_"),
            "approvals_origin_": names(types_pb2.ArgumentOrigin, "ARGUMENT_ORIGIN_"),
            "approvals_mark_": names(types_pb2.ArgumentMark, "ARGUMENT_MARK_"),
        },
        frozenset({"path"}),
    ).check()


def test_a_reason_has_a_sentence_in_both_languages_whatever_keyword_a_schema_uses():
    told = violation_reason("minLength", "/text", 3)
    assert (told.message, told.message_es) == ("Must have at least 3 characters.", "Debe tener al menos 3 caracteres.")
    assert violation_reason("contains", "/list", "").message == "Does not fit the tool's schema."
    assert reason("TOO_DEEP", limit=64).message == "The arguments are nested more than 64 levels deep."


@pytest.mark.parametrize(("count", "text"), [(1, "1 more argument is not"), (2, "2 more arguments are not")])
def test_arguments_left_out_are_counted_as_people_count(count: int, text: str):
    assert Texts("approvals", "en")("left_out", count=count).startswith(text)
