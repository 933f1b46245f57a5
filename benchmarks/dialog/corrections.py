"""Labelled turns that change an earlier answer, or do not, each in the state of the form it was said in.

The English ones are published (Schema-Guided Dialogue, MultiDoGO, STAR) and lie outside the project, the Spanish ones
beside it in ``data/dialog``. Half of them is fitted to (``fit_corrections``); the figures are of the other half.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import yaml
from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.dialogue.correction import correction_in
from phylactery_forms.dialogue.reading import accepted
from phylactery_forms.dialogue.state import ConversationState, new_conversation, put
from phylactery_forms.values.model import Context, Language, value_type

from benchmarks.measure import emit

Row = Mapping[str, Any]
Half = Literal["fit", "score"]
CONTEXT: Final = Context("en", datetime(2019, 3, 1, 10, 0, tzinfo=UTC), "US")
_CONTEXT_OF_OWN: Final = Context("es", datetime(2026, 11, 28, 10, 0, tzinfo=UTC), "ES")
_OWN: Final = Path(__file__).resolve().parents[1] / "data" / "dialog"
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
MARKERS: Final = re.compile(
    r"(?i)^\W*(?:no|nope|actually|sorry|wait|i meant|i mean)\b|\b(?:actually|instead|rather|change|i meant)\b"
    r"|\b(?:perd[oó]n|perdona|en realidad|mejor|me equivoqu[eé]|quise decir|espera|cambia\w*|corrig\w+|sino)\b"
)
"""The floor: a list of markers."""


@dataclass(frozen=True, slots=True)
class Case:
    """A turn, and whether it changes an answer; ``field`` is the one it changes, empty for none."""

    text: str
    form: Form
    conversation: ConversationState
    context: Context
    field: str
    half: Half
    kind: str
    """Where it is from, and whether a field was asked or answers were read back."""


def run(home: Path) -> None:
    """Print the lines."""
    for language, cases in (("en", list(english(home))), ("es", list(spanish()))):
        for half in ("fit", "score"):
            _shares(language, half, [one for one in cases if one.half == half])


def _shares(language: str, half: str, cases: Sequence[Case]) -> None:
    read = [(one, correction_in(one.form, one.conversation, one.text, one.context)) for one in cases]
    said = [(one, found) for one, found in read if one.field]
    name = f"dialog/corrections_{language}_{half}"
    floor = sum(bool(MARKERS.search(one.text)) for one, _ in said)
    emit(
        f"{name}_recall",
        _share(found is not None for _, found in said),
        "share",
        cases=len(said),
        floor=round(floor / len(said), 4),
        wanted=">= 0.85",
    )
    emit(
        f"{name}_field",
        _share(found is not None and found.field == one.field for one, found in said),
        "share",
        cases=len(said),
        what="of the right field at once; for others the person is asked which field they mean",
    )
    wrong = _share(found is not None and found.field not in {None, one.field} for one, found in said)
    emit(f"{name}_wrong_field", wrong, "share", cases=len(said))
    for state in ("asked", "review"):
        others = [(one, found) for one, found in read if not one.field and one.kind.endswith(state)]
        emit(
            f"{name}_false_{state}",
            _share(found is not None for _, found in others),
            "share",
            cases=len(others),
            floor=round(_share(bool(MARKERS.search(one.text)) for one, _ in others), 4),
            wanted="<= 0.02",
        )


def _share(hits: Iterable[bool]) -> float:
    some = list(hits)
    return sum(some) / len(some) if some else 0.0


# ---- English -------------------------------------------------------------------


def english(home: Path) -> Iterator[Case]:
    """Return the published turns: after a confirmation as in a review, first answers as asked."""
    for row in rows(home, "sgd_corrections"):
        review = row["label"] == "correction"
        form, state = slot_state(row, review=review)
        field = str(row["slot"]) if review else ""
        kind = f"sgd_{'review' if review else 'asked'}"
        yield Case(row["user"], form, state, CONTEXT, field, _half(str(row["dialogue"])), kind)
    for row in rows(home, "multidogo_test"):
        if row["intent"] in {"confirmation", "rejection", "thankyou", "closinggreeting", "openinggreeting"}:
            yield _said_in_review(row["text"], str(row["conv"]), "multidogo_review")
    for row in rows(home, "star_ask_reply"):
        if row["label"] == "off_topic":
            yield _said_in_review(row["user"], str(row["dialogue"]), "star_review")
            continue
        slot = re.sub(r"[^a-z0-9_]", "_", str(row["asked"]).lower())
        form, state = slot_state({"slot": slot}, review=False)
        yield Case(row["user"], form, state, CONTEXT, "", _half(str(row["dialogue"])), "star_asked")


def _said_in_review(text: str, of: str, kind: str) -> Case:
    form = form_of("topic", "booking_place", "party_email")
    values = {"topic": "history", "booking_place": "Oslo", "party_email": "ana@example.com"}
    return Case(text, form, reviewed(form, values), CONTEXT, "", _half(of), kind)


def slot_state(row: Row, *, review: bool) -> tuple[Form, ConversationState]:
    """Return a form with the slot of a row and two more fields, in the state in which the turn was said."""
    slot = str(row["slot"])
    form = form_of(slot, "booking_place", "party_email")
    values = {"booking_place": "Oslo", "party_email": "ana@example.com"}
    if not review:
        conversation = reviewed(form, values)
        return form, {**conversation, "status": "collecting", "asked": slot}
    return form, reviewed(form, {slot: str((row["old"] or ["?"])[0]), **values})


def form_of(*slots: str) -> Form:
    """Return a form with fields of the types their names tell."""
    return _form(tuple(_field(slot) for slot in slots))


def _form(fields: tuple[Field, ...]) -> Form:
    texts: Mapping[Language, str] = {"es": "x", "en": "x"}
    return Form("bench", 1, "", texts, texts, {}, fields)


def _field(slot: str) -> Field:
    kind = next((name for name, pattern in _KINDS if re.search(pattern, slot)), "text")
    label: Mapping[Language, str] = {"es": slot.replace("_", " "), "en": slot.replace("_", " ")}
    return Field(slot, value_type(kind), label, label)


def reviewed(form: Form, values: Mapping[str, str], context: Context = CONTEXT) -> ConversationState:
    """Return the state in which the given values are read back."""
    conversation = new_conversation(form, context)
    for number, (name, value) in enumerate(values.items()):
        found = accepted(form.by_id[name], value, context)
        conversation = put(conversation, name, value if found is None else found.value, str(number))
    return {**conversation, "status": "review", "asked": None}


def rows(home: Path, name: str) -> Sequence[Row]:
    """Return the rows of a file of the data."""
    return [json.loads(line) for line in (home / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() if line]


def _half(of: str) -> Half:
    """Return the half of a dialogue, all of whose turns are in it."""
    return "fit" if zlib.crc32(of.encode()) % 2 else "score"


# ---- the project's own -----------------------------------------------------------


def spanish() -> Iterator[Case]:
    """Return the Spanish turns; of the scenes with a question, and of the reviews, every second one is fitted to."""
    seen = {True: 0, False: 0}
    for scene, cases in _scenes("corrections_es"):
        review = scene.get("asked") is None
        seen[review] += 1
        for one in cases:
            yield replace(one, half="fit" if seen[review] % 2 else "score", kind=_kind("spanish", review=review))


def fitted() -> Iterator[Case]:
    """Return the further turns, which are fitted to only."""
    for scene, cases in _scenes("corrections_fit"):
        yield from (replace(one, kind=_kind("own", review=scene.get("asked") is None)) for one in cases)


def _kind(name: str, *, review: bool) -> str:
    return f"{name}_{'review' if review else 'asked'}"


def _scenes(name: str) -> Iterator[tuple[Row, list[Case]]]:
    data = yaml.safe_load((_OWN / f"{name}.yaml").read_text(encoding="utf-8"))
    forms = {of: _form(tuple(_own_field(*one) for one in fields.items())) for of, fields in data["forms"].items()}
    for scene in data["scenes"]:
        form, asked = forms[scene["form"]], scene.get("asked")
        context = replace(_CONTEXT_OF_OWN, language=scene.get("language", "es"))
        state = reviewed(form, scene["filled"], context)
        if asked:
            state = {**state, "status": "collecting", "asked": asked}
        turns = [*scene["corrections"], *(("", text) for text in scene["others"])]
        yield scene, [Case(text, form, state, context, field, "fit", "") for field, text in turns]


def _own_field(name: str, raw: Row) -> Field:
    options = {"choices": raw["choices"]} if "choices" in raw else {}
    label: Mapping[Language, str]
    label = raw["label"] if isinstance(raw["label"], dict) else {"es": raw["label"], "en": name.replace("_", " ")}
    return Field(name, value_type(raw["type"], options), label, label)
