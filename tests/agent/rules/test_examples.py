"""Which pathway a message takes by what it resembles: the tools' own examples, or conversation."""

from __future__ import annotations

import pytest
from phylactery_agent.rules.examples import MAX_CHARS, likeness
from phylactery_agent.rules.intents import FAST_PATHWAY, TASK, TOOL_PATHWAY, classify
from phylactery_agent.tools.registry import ToolRegistry

from tests.support.cases import each_case
from tests.support.effort import assert_within

TOOLS = ToolRegistry()


@each_case(
    "text",
    [
        "are you a robot or a person?",
        "¿Eres un robot o una persona?",
        "who was it that made you",
        "¿quién te ha hecho?",
        "tell me a funny joke",
        "cuéntame un chiste",
        "WHAT IS THE MEANING OF LIFE???",
        "cual es el sentido de la vida",
    ],
)
def test_conversation_is_served_without_tools_and_still_answered(text: str) -> None:
    found = classify(text, TOOLS)
    assert (found.intent, found.pathway, found.reasons) == (TASK, FAST_PATHWAY, ("TALK_EXAMPLE",))


@each_case(
    "text",
    [
        "could I get a reminder about the dentist sometime",
        "me vendría bien un recordatorio para lo del dentista",
        "book a flight to Rome",
        "¿qué ha escrito Marta en el informe?",
        "what did the supplier say about the price?",
        "tell me what the contract says",
        "cuéntame qué dice el contrato",
        "send something funny to Marta",
        "cuenta dos cosas",
        "and tomorrow?",
        "y el otro",
    ],
)
def test_anything_else_keeps_its_tools(text: str) -> None:
    assert classify(text, TOOLS).pathway == TOOL_PATHWAY


@each_case(
    "text",
    [
        "what is my favorite color?",
        "¿cuál es mi color favorito?",
        "where do I live?",
        "¿dónde vivo?",
        "how old am I?",
        "¿cuántos años tengo?",
        "what is my name?",
        "¿cómo me llamo?",
    ],
)
def test_what_people_ask_about_themselves_is_looked_up(text: str) -> None:
    assert classify(text, TOOLS).pathway == TOOL_PATHWAY


def test_every_example_of_every_tool_is_nearest_to_its_own_tool_and_no_talk() -> None:
    for spec in TOOLS.offered():
        for example in spec.examples:
            like = likeness(example.text, TOOLS)
            assert (like.tool_score > 0.99, like.is_talk) == (True, False), example.text
            assert classify(example.text, TOOLS).pathway == TOOL_PATHWAY


def test_values_case_and_accents_change_nothing() -> None:
    scores = {
        likeness(text, TOOLS).talk
        for text in ("¿Quién te programó?", "quien te programo", "QUIÉN TE PROGRAMÓ", "  ¿quién te programó?!  ")
    }
    assert len(scores) == 1
    one, other = (likeness(f'write "{said}" to {name}', TOOLS) for said, name in (("a", "b.txt"), ("xyz", "notas.md")))
    assert one == other


@pytest.mark.timing
@pytest.mark.parametrize(
    "text", ["", "\x00", "🎉🎉🎉", "\u202ewho are you\u202c" * 40, "a" * 100_000, "who are you " * 9_000]
)
def test_odd_messages_resemble_nothing_and_cost_nothing(text: str) -> None:
    likeness("warm", TOOLS)
    assert_within(0.05, lambda: likeness(text, TOOLS))
    like = likeness(text, TOOLS)
    assert len(text) <= MAX_CHARS or (like.talk, like.tool_score) == (0.0, 0.0)


def test_a_tool_without_examples_is_known_by_its_description() -> None:
    [spec, *_] = TOOLS.offered()
    assert likeness(next(iter(spec.descriptions.values())), TOOLS).tool_score > 0
