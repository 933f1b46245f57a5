"""Turns of people, hostile and honest, over four forms: what is said is taken as it was meant, or asked back."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import parse_form, read_forms, sample_folder
from phylactery_forms.dialogue.state import ConversationState, given_values
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context

from tests.support.agent.forms import NOW

TURNS = Path(__file__).with_name("turns")
MOVING = parse_form((TURNS / "moving.yaml").read_bytes(), "moving.yaml")
FORMS = {**read_forms(sample_folder()), MOVING.id: MOVING}
DATA: dict[str, Any] = yaml.safe_load((TURNS / "turns.yaml").read_text(encoding="utf-8"))
ENDS = {"cancel": "cancelled", "person": "escalated", "send": "submitting"}


@cache
def asking(name: str, asked: str, language: Any) -> ConversationState:
    """Return a conversation in which every field before the asked one is answered."""
    form = FORMS[name]
    run = Simulation(form, Context(language, NOW, "ES"))
    while run.conversation["asked"] != asked and run.conversation["status"] == "collecting":
        of = run.conversation["asked"]
        run.say("yes" if of is None else DATA["forms"][name][of])
    assert asked in {run.conversation["asked"], run.conversation["status"]}
    return run.conversation


def outcome(form: Form, asked: str, said: str, language: Any, wants: str) -> str:
    """Return what became of a turn: right, asked (back), or wrong."""
    run = Simulation(form, Context(language, NOW, "ES"))
    run.conversation = before = asking(form.id, asked, language)
    turn, after = run.say(said).turn, run.conversation
    given = given_values(form, before)
    changed = {name: value for name, value in given_values(form, after).items() if given.get(name) != value}
    if changed:
        return "right" if changed in [wanted(one, asked) for one in wants.split(" | ")] else f"wrong: {changed}"
    if after["status"] not in {before["status"], "review"}:
        return "right" if after["status"] == ENDS.get(wants) else f"wrong: {after['status']}"
    if asked in after["skipped"]:
        return "right" if wants == "skip" else "wrong: skipped"
    if wants == "stay" and after["attempts"] != before["attempts"]:
        return f"asked, and an attempt is counted: {turn['response']}"
    return "right" if wants == "stay" or "ask" in wants.split(" | ") else f"asked: {turn['response']}"


def wanted(wants: str, asked: str) -> dict[str, str]:
    pairs = [one.partition("=") for one in wants.split(";")]
    return {name.strip() or asked: value.strip() for name, sign, value in pairs if sign}


def outcomes(kind: str) -> dict[str, str]:
    """Return the outcome of each turn of a kind."""
    return {
        f"{language} {name} {asked}: {said} -> {wants}": outcome(FORMS[name], asked, said, language, wants)
        for language, of in DATA[kind].items()
        for name, rows in of.items()
        for asked, said, wants in rows
    }


def test_hostile_turns_are_taken_as_they_were_meant_or_asked_back() -> None:
    wrong = {turn: became for turn, became in outcomes("hostile").items() if became.startswith("wrong")}
    assert wrong == {}


def test_plain_answers_are_taken() -> None:
    missed = {turn: became for turn, became in outcomes("honest").items() if became != "right"}
    assert len(missed) <= 1, missed


def test_what_was_asked_back_is_settled_by_a_yes_a_place_or_a_part_of_the_day() -> None:
    for name, asked, said, told, answer, value in (
        ("appointment", "day", "maybe the 4th", "Shall I put Friday, 4 December 2026?", "yes", "2026-12-04"),
        ("appointment", "day", "the 4th or the 5th", "Which one do you mean", "the second one", "2026-12-05"),
        ("moving", "hour", "at 5", "5:00 am or 5:00 pm?", "in the afternoon", "17:00"),
    ):
        run = Simulation(FORMS[name], Context("en", NOW, "ES"))
        run.conversation = asking(name, asked, "en")
        assert told in run.say(said).turn["response"]
        assert run.conversation["attempts"] == {}
        run.say(answer)
        assert given_values(FORMS[name], run.conversation)[asked] == value


def test_the_third_doubt_in_a_row_counts_as_an_attempt_and_a_no_asks_again() -> None:
    run = Simulation(FORMS["appointment"], Context("en", NOW, "ES"))
    run.conversation = asking("appointment", "day", "en")
    run.say("maybe the 4th")
    assert "Which day suits you?" in run.say("no").turn["response"]
    assert run.conversation["attempts"] == {}
    for said in ("maybe the 4th", "maybe the 7th", "maybe the 8th"):
        run.say(said)
    assert run.conversation["attempts"] == {"day": 1}
