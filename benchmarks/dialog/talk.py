"""Corrections and messages off the topic: how many are recognised, and how many answers are taken for one.

The costly errors are an answer thrown away as off topic, and an answer that changes another field. The floor of
corrections is a list of markers, that of the topic a list of greetings and questions, on the same cases.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.dialogue.correction import correction_in
from phylactery_forms.dialogue.off_topic import is_off_topic
from phylactery_forms.dialogue.state import ConversationState, new_conversation, put
from phylactery_forms.values.model import Context, value_type

from benchmarks.measure import emit

Row = Mapping[str, Any]
_CONTEXT: Final = Context("en", datetime(2019, 3, 1, 10, 0, tzinfo=UTC), "US")
_MARKERS: Final = re.compile(
    r"(?i)^\W*(?:no|nope|actually|sorry|wait|i meant|i mean)\b|\b(?:actually|instead|rather|change|i meant)\b"
)
_GREETINGS: Final = re.compile(r"(?i)^\W*(?:hi|hello|hey|thanks|thank you|good (?:morning|evening))\b|\?\s*$")
_KINDS: Final = (
    ("date", r"(?:^|_)(?:date|day)(?:_|$)|check_in|check_out"),
    ("time", r"(?:^|_)time(?:_|$)"),
    ("number", r"number|party_size|seats|passengers|group_size|travelers|num_|beds|bedrooms|rooms|stay_length|size"),
    ("money", r"amount|budget|balance"),
    ("phone", r"phone|contact_number"),
    ("email", r"email"),
    ("person_name", r"(?:^|_)name$|receiver|recipient|customer_name"),
)
"""The type of a field by the name of its slot, the first that fits; any other is a text."""


def run(home: Path) -> None:
    """Print the lines."""
    _corrections(home)
    _disfluent(home)
    _answers(home)
    _contents(home)


@dataclass(frozen=True, slots=True)
class _Shares:
    hits: int
    cases: int

    @property
    def share(self) -> float:
        return self.hits / self.cases if self.cases else 0.0


def _corrections(home: Path) -> None:
    """Print how many corrections after a confirmation are recognised, and how many first answers are taken for one."""
    rows = _rows(home, "sgd_corrections")
    said = [row for row in rows if row["label"] == "correction"]
    first = [row for row in rows if row["label"] == "answer"]
    found = _Shares(sum(_is_correction(row, review=True) for row in said), len(said))
    right = _Shares(sum(_is_correction(row, review=True, of=str(row["slot"])) for row in said), len(said))
    false = _Shares(sum(_is_correction(row, review=False) for row in first), len(first))
    floor = _Shares(sum(bool(_MARKERS.search(row["user"])) for row in said), len(said))
    floor_false = _Shares(sum(bool(_MARKERS.search(row["user"])) for row in first), len(first))
    emit("dialog/corrections_recall", found.share, "share", cases=found.cases, floor=floor.share, wanted=">= 0.85")
    emit(
        "dialog/corrections_field",
        right.share,
        "share",
        cases=right.cases,
        what="of the right field at once; for the rest the person is asked which field they mean",
    )
    emit("dialog/corrections_false", false.share, "share", cases=false.cases, floor=floor_false.share, wanted="<= 0.02")


def _is_correction(row: Row, *, review: bool, of: str = "") -> bool:
    """Return True if a turn is recognised in the state it was said in, as a correction of a field if one is given.

    After a confirmation the form has the old value, and two more fields; a first answer meets a form that has those
    two and asks for its slot.
    """
    slot = str(row["slot"])
    form = _form(slot, "booking_place", "party_email")
    conversation = new_conversation(form, _CONTEXT)
    conversation = put(conversation, "booking_place", "Oslo", "1")
    conversation = put(conversation, "party_email", "ana@example.com", "2")
    if review:
        conversation = put(conversation, slot, str((row["old"] or ["?"])[0]), "3")
    changes: Any = {"status": "review" if review else "collecting", "asked": None if review else slot}
    found = correction_in(form, {**conversation, **changes}, row["user"], _CONTEXT)
    return found is not None and (not of or found.field == of)


def _disfluent(home: Path) -> None:
    """Print how many questions with a correction in them have a marker, and how many without are taken to have one."""
    rows = _rows(home, "disflqa_devtest")
    form = _form("topic", "booking_place", "party_email")
    conversation = _reviewed(form, {"topic": "history", "booking_place": "Oslo", "party_email": "ana@example.com"})
    found = sum(correction_in(form, conversation, row["disfluent"], _CONTEXT) is not None for row in rows)
    false = sum(correction_in(form, conversation, row["original"], _CONTEXT) is not None for row in rows)
    floor = sum(bool(_MARKERS.search(row["disfluent"])) for row in rows)
    emit(
        "dialog/corrections_in_a_sentence",
        found / len(rows),
        "share",
        cases=len(rows),
        false=false / len(rows),
        floor=floor / len(rows),
        what="questions that correct themselves, read in a review",
    )


def _answers(home: Path) -> None:
    """Print how many answers to a question are thrown away, and how much beside the topic is recognised."""
    rows = _rows(home, "star_ask_reply")
    answers = [row for row in rows if row["label"] == "other"]
    away = [row for row in rows if row["label"] == "off_topic"]
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
    rows = [row for row in _rows(home, "multidogo_test") if row["intent"] == "contentonly"]
    false = sum(_off(_slot_of(row), row["text"]) for row in rows)
    floor = sum(bool(_GREETINGS.search(row["text"])) for row in rows)
    emit(
        "dialog/false_off_topic_multidogo",
        false / len(rows),
        "share",
        cases=len(rows),
        floor=floor / len(rows),
        wanted="<= 0.01",
    )


def _slot_of(row: Row) -> str:
    return next((slot for slot in str(row["slots"]).split() if slot != "O"), "content")


def _off(slot: str, text: str) -> bool:
    """Return True if a message to a form that asks for a slot is off its topic."""
    name = re.sub(r"[^a-z0-9_]", "_", slot.lower())
    form = _form(name)
    conversation: ConversationState = {**new_conversation(form, _CONTEXT), "asked": name}
    return is_off_topic(form, conversation, name, text, _CONTEXT)


def _form(*slots: str) -> Form:
    fields = tuple(_field(slot) for slot in slots)
    texts: Any = {"es": "x", "en": "x"}
    return Form("bench", 1, "", texts, texts, {}, fields)


def _field(slot: str) -> Field:
    kind = next((name for name, pattern in _KINDS if re.search(pattern, slot)), "text")
    label: Any = {"es": slot.replace("_", " "), "en": slot.replace("_", " ")}
    return Field(slot, value_type(kind), label, label)


def _reviewed(form: Form, values: Mapping[str, str]) -> ConversationState:
    conversation = new_conversation(form, _CONTEXT)
    for number, (name, value) in enumerate(values.items()):
        conversation = put(conversation, name, value, str(number))
    return {**conversation, "status": "review", "asked": None}


def _rows(home: Path, name: str) -> Sequence[Row]:
    return [json.loads(line) for line in (home / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() if line]
