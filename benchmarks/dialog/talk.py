"""Corrections and messages off the topic: how many are recognised, and how many answers are taken for one.

The costly errors are an answer thrown away as off topic, and an answer that changes another field. The floor of
corrections is a list of markers, that of the topic a list of greetings and questions, on the same cases.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from phylactery_forms.dialogue.correction import correction_in
from phylactery_forms.dialogue.off_topic import is_off_topic
from phylactery_forms.dialogue.state import ConversationState, new_conversation

from benchmarks.dialog import corrections
from benchmarks.dialog.corrections import CONTEXT, MARKERS, Row, form_of, reviewed, rows
from benchmarks.measure import emit

_GREETINGS: Final = re.compile(r"(?i)^\W*(?:hi|hello|hey|thanks|thank you|good (?:morning|evening))\b|\?\s*$")


def run(home: Path) -> None:
    """Print the lines."""
    corrections.run(home)
    _disfluent(home)
    _answers(home)
    _contents(home)


def _disfluent(home: Path) -> None:
    """Print how many questions with a correction in them have a marker, and how many without are taken to have one."""
    turns = rows(home, "disflqa_devtest")
    form = form_of("topic", "booking_place", "party_email")
    conversation = reviewed(form, {"topic": "history", "booking_place": "Oslo", "party_email": "ana@example.com"})
    found = sum(correction_in(form, conversation, row["disfluent"], CONTEXT) is not None for row in turns)
    false = sum(correction_in(form, conversation, row["original"], CONTEXT) is not None for row in turns)
    floor = sum(bool(MARKERS.search(row["disfluent"])) for row in turns)
    emit(
        "dialog/corrections_in_a_sentence",
        found / len(turns),
        "share",
        cases=len(turns),
        false=false / len(turns),
        floor=floor / len(turns),
        what="questions that correct themselves, read in a review",
    )


def _answers(home: Path) -> None:
    """Print how many answers to a question are thrown away, and how much beside the topic is recognised."""
    replies = rows(home, "star_ask_reply")
    answers = [row for row in replies if row["label"] == "other"]
    away = [row for row in replies if row["label"] == "off_topic"]
    false = [row for row in answers if _off(str(row["asked"]), row["user"])]
    right = sum(_off(str(row["asked"]), row["user"]) for row in away)
    floor = sum(bool(_GREETINGS.search(row["user"])) for row in answers)
    emit(
        "dialog/false_off_topic_star",
        len(false) / len(answers),
        "share",
        cases=len(answers),
        floor=floor / len(answers),
        wanted="<= 0.01",
    )
    emit("dialog/off_topic_recall_star", right / len(away), "share", cases=len(away))


def _contents(home: Path) -> None:
    """Print how many turns that only give a value are thrown away."""
    turns = [row for row in rows(home, "multidogo_test") if row["intent"] == "contentonly"]
    false = sum(_off(_slot_of(row), row["text"]) for row in turns)
    floor = sum(bool(_GREETINGS.search(row["text"])) for row in turns)
    emit(
        "dialog/false_off_topic_multidogo",
        false / len(turns),
        "share",
        cases=len(turns),
        floor=floor / len(turns),
        wanted="<= 0.01",
    )


def _slot_of(row: Row) -> str:
    return next((slot for slot in str(row["slots"]).split() if slot != "O"), "content")


def _off(slot: str, text: str) -> bool:
    """Return True if a message to a form that asks for a slot is off its topic."""
    name = re.sub(r"[^a-z0-9_]", "_", slot.lower())
    form = form_of(name)
    conversation: ConversationState = {**new_conversation(form, CONTEXT), "asked": name}
    return is_off_topic(form, conversation, name, text, CONTEXT)
