"""Labelled answers to a form: two hundred ordinary ones that are easily misread, and sixty plain ones.

A turn is said at a question, or at the review, after honest answers to the fields before it. What changed is compared
with what its speaker wants: right; asked, where nothing unwanted changed; or wrong, where a value, another field or the
end of the form came about that the speaker does not want, which is the costly one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from phylactery_forms.definitions.model import Form
from phylactery_forms.definitions.reading import read_forms
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context

from benchmarks.dialog.corrections import reviewed
from benchmarks.dialog.figures import OWN, failed, own_rows, percent

Outcome = Literal["right", "asked", "wrong"]
Row = Mapping[str, Any]
NOW: Final = datetime.fromisoformat("2026-12-02T10:00:00+01:00")
SENT: Final = frozenset({"submitting", "submitted"})
_ENDS: Final = SENT | {"cancelled", "escalated"}


@dataclass(frozen=True, slots=True)
class Told:
    """A turn, what it changed, and the reply."""

    row: Row
    changes: Mapping[str, str]
    ends: str
    """How the form ended, empty while it goes on."""
    reply: str

    @property
    def outcome(self) -> Outcome:
        """Return what came of it."""
        wanted = self.row.get("want", {})
        if self.ends == self.row.get("status", "") and any(
            _same(self.changes, one) for one in (wanted, *self.row.get("may", ()))
        ):
            return "right"
        partly = all(field in wanted and _equal(value, wanted[field]) for field, value in self.changes.items())
        return "asked" if partly and not self.ends else "wrong"


def run() -> None:
    """Print the lines."""
    told = play("answers")
    hostile = [one for one in told if one.row["kind"] != "plain"]
    plain = [one for one in told if one.row["kind"] == "plain"]
    count = Counter(one.outcome for one in hostile)
    wrong = [one for one in hostile if one.outcome == "wrong"]
    percent("answers_wrong_silently_pct", len(wrong), len(hostile), wanted="<= 1", not_done=count["asked"])
    for kind in dict.fromkeys(one.row["kind"] for one in hostile):
        of_kind = [one for one in hostile if one.row["kind"] == kind]
        percent(f"answers_wrong_silently_{kind}_pct", sum(one in wrong for one in of_kind), len(of_kind))
    acted = [one for one in hostile if one.row["do"] in {"value", "correction", "command"}]
    percent("answers_hostile_done_pct", sum(one.outcome == "right" for one in acted), len(acted))
    taken = sum(one.outcome == "right" for one in plain)
    percent("answers_plain_right_pct", taken, len(plain), wrong=sum(one.outcome == "wrong" for one in plain))
    second, third = play("answers_second"), play("answers_third")
    for name, some in (("second", second), ("third", third)):
        hard = [one for one in some if one.row["kind"] != "plain"]
        percent(f"answers_{name}_wrong_silently_pct", sum(one.outcome == "wrong" for one in hard), len(hard))
        honest = [one for one in some if one.row["kind"] == "plain"]
        percent(f"answers_{name}_plain_right_pct", sum(one.outcome == "right" for one in honest), len(honest))
    for one in (*told, *second, *third):
        if one.outcome == "wrong" or (one.outcome == "asked" and one.row["kind"] == "plain"):
            failed("answers", one.outcome, one.row["kind"], **_shown(one))


def play(name: str) -> list[Told]:
    """Return what every turn of a file changed."""
    lines = own_rows(name)
    filled = {row["form"]: row["filled"] for row in (*own_rows("answers"), *lines) if "filled" in row}
    forms = read_forms(OWN / "forms")
    return [_told(forms[row["form"]], filled[row["form"]], row) for row in lines if "text" in row]


def _told(form: Form, filled: Mapping[str, str], row: Row) -> Told:
    spoken = Context("es", NOW, "ES")  # the earlier answers are in Spanish, whatever the turn is in
    asked = row["asked"]
    names = [field.id for field in form.fields]
    before = names[: names.index(asked)] if asked else names
    said = Simulation(form, Context(row["lang"], NOW, "ES"))
    state = reviewed(form, {name: filled[name] for name in before}, spoken)
    said.conversation = {**state, "language": row["lang"]}
    if asked:
        said.conversation = {**said.conversation, "status": "collecting", "asked": asked}
    old = values_of(said)
    reply = said.say(row["text"]).turn["response"]
    new, status = values_of(said), said.conversation["status"]
    ends = "sent" if status in SENT else status if status in _ENDS else ""
    changes = {name: new.get(name, "") for name in {*old, *new} if old.get(name) != new.get(name)}
    return Told(row, {} if ends in {"cancelled", "escalated"} else changes, ends, reply)


def values_of(said: Simulation) -> dict[str, str]:
    """Return the canonical values of a conversation."""
    return {name: one["value"] for name, one in said.conversation["values"].items()}


def _same(changes: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return changes.keys() == wanted.keys() and all(_equal(value, wanted[field]) for field, value in changes.items())


def _equal(value: str, wanted: str) -> bool:
    """Return True for the wanted value; ``*`` is any."""
    return (wanted == "*" and bool(value)) or value == wanted


def _shown(one: Told) -> Mapping[str, object]:
    row = one.row
    at = f"{row['form']}.{row['asked'] or 'review'}"
    wanted = row.get("status") or row.get("want", {}) or row["do"]
    return {"at": at, "said": row["text"], "wanted": wanted, "got": one.ends or one.changes, "reply": one.reply}
