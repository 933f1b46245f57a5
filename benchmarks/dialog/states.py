"""Answers, affirmations and corrections of published dialogues, each in the state of the form in which it was said.

An answer that has its value in its words is taken if the asked field gets it; it overwrites if a given answer changes
that it does not mean. An affirmation is sent by a yes with nothing beside it; with a question beside it (``more``)
nothing may be sent or changed. A correction is marked if it has a word of regret or change, or names its field. It is
said in the review and while fields of four types are asked; what answers those questions must not count as one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from phylactery_forms.definitions.model import SUBMIT_FORM, Field, Form, Submission
from phylactery_forms.dialogue.reading import accepted
from phylactery_forms.dialogue.state import ConversationState
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import value_type

from benchmarks.dialog.answers import SENT, values_of
from benchmarks.dialog.corrections import CONTEXT, MARKERS, Row, form_of, reviewed, rows
from benchmarks.dialog.figures import failed, line, percent

_YES: Final[Mapping[str, str]] = {"True": "yes", "False": "no"}
_ASKED: Final[Mapping[str, tuple[str, str]]] = {
    "text": ("remark", ""),
    "date": ("meeting_date", ""),
    "number": ("number_of_bags", ""),
    "time": ("arrival_time", ""),
}
"""The field that is asked while a correction is said, by its type."""
_BESIDE: Final = re.compile(r"[?.,!].*\w|\?")
"""More than one clause."""
_NOTHING: Final = ("mmm", "what is the weather?", "some other words of mine")
"""What corrects nothing: the replies to it are those of a message that was not heard."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a message did to a form."""

    before: Mapping[str, str]
    after: Mapping[str, str]
    status: str
    asked: str | None
    reply: str
    corrects: bool

    @property
    def changed(self) -> frozenset[str]:
        """Return the fields with another value than before."""
        return frozenset(name for name in {*self.before, *self.after} if self.before.get(name) != self.after.get(name))


def run(home: Path) -> None:
    """Print the lines."""
    states = rows(home, "sgd_states")
    flags = frozenset(
        slot for row in states for slot, value in row.get("after", row.get("slots", {})).items() if value in _YES
    )
    first_answers = [row for row in states if row["kind"] == "answer_while_collecting"]
    affirmations = [row for row in states if row["kind"] == "affirmation_in_review"]
    false = _answers(first_answers, flags)
    false["review"] = _affirmations(affirmations, flags)
    _corrections(rows(home, "sgd_corrections"), false)


def _answers(found: Sequence[Row], flags: frozenset[str]) -> dict[str, list[bool]]:
    """Print what becomes of answers; return by the type of the asked field whether each counted as a correction."""
    taken = Counter[str]()
    overwrites = framed = 0
    corrects = defaultdict[str, list[bool]](list)
    for row in found:
        asked = row["asked_slot"]
        form = _form((*row["filled"], asked), flags)
        said = _say(form, _state(form, row["filled"], asked), row["user"])
        over = said.changed - {asked, *row["informed"]}
        of = form.by_id[asked].type.name
        overwrites += bool(over)
        corrects[of].append(said.corrects or bool(over))
        if over:
            failed("states", "overwritten", asked, asked=row["asked"], said=row["user"], got=sorted(over))
        if row["informed"] == [asked] and (of != "text" or row["after"][asked].casefold() in row["user"].casefold()):
            right = _means(form.by_id[asked], said.after.get(asked, ""), row["after"][asked])
            outcome = "taken" if right else "wrong" if said.after.get(asked) else "asked"
            taken[outcome] += 1
            framed += right and said.after[asked] == row["user"] != row["after"][asked]
            if outcome != "taken":
                wants = row["after"][asked]
                got = said.after.get(asked, "")
                failed("states", outcome, asked, asked=row["asked"], said=row["user"], wanted=wants, got=got)
    plain = taken.total()
    percent(
        "answers_taken_pct", taken["taken"], plain, wanted=">= 85", wrong=taken["wrong"], asked=taken["asked"],
        whole_sentences=framed,
    )  # fmt: skip
    percent("answers_overwrite_pct", overwrites, len(found), wanted="<= 0.3")
    return corrects


def _affirmations(found: Sequence[Row], flags: frozenset[str]) -> list[bool]:
    """Print what becomes of affirmations; return whether each plain one counted as a correction."""
    sent = plain = with_more = 0
    wrong = Counter[str]()
    corrects: list[bool] = []
    for row in found:
        form = _form(tuple(row["slots"]), flags)
        said = _say(form, _state(form, row["slots"]), row["user"])
        ends = "sent" if said.status in SENT else said.status
        bad = "changed" if said.changed else ends if ends in {"cancelled", "escalated"} else ""
        if row["more"] and not _BESIDE.search(row["user"]):
            continue  # the data has a question here, the words have none
        if row["more"]:
            with_more += 1
            bad = bad or ("sent" if ends == "sent" else "")
        else:
            plain += 1
            sent += ends == "sent" and not said.changed
            corrects.append(said.corrects or bool(said.changed))
            if ends != "sent":
                failed("states", "not sent", "affirmation", said=row["user"], reply=said.reply)
        if bad:
            wrong[bad] += 1
            failed("states", bad, "affirmation", said=row["user"], more=row["more"], got=sorted(said.changed))
    percent("affirmations_sent_pct", sent, plain, wanted=">= 90")
    line("affirmations_wrong", wrong.total(), "cases", of=plain + with_more, wanted="0", **wrong, with_more=with_more)
    return corrects


def _corrections(found: Sequence[Row], false: Mapping[str, list[bool]]) -> None:
    """Print how many corrections are heard, and how many answers in the same states count as one."""
    heard = defaultdict[str, list[tuple[bool, bool, bool]]](list)
    for row in found:
        if row["label"] != "correction" or not row["old"] or not row["new"]:
            continue
        slot = str(row["slot"])
        words = slot.split("_")
        named = re.search(rf"(?i)\b(?:{' '.join(words)}|{words[-1]})\b", row["user"]) is not None
        marked = bool(MARKERS.search(row["user"])) or named
        for state in (*_ASKED, "review"):
            heard[state].append((marked, *_heard(row, slot, state)))
    for state, of_state in heard.items():
        marks = [one for one in of_state if one[0]]
        right = sum(done for _, done, _ in marks)
        recall = sum(done or back for _, done, back in marks)
        bare = [one for one in of_state if not one[0]]
        percent(
            f"corrections_marked_recall_{state}_pct", recall, len(marks), unmarked=len(bare),
            unmarked_heard=sum(done or back for _, done, back in bare),
        )  # fmt: skip
        percent(f"corrections_marked_right_{state}_pct", right, len(marks))
        percent(f"corrections_false_{state}_pct", sum(false.get(state, ())), len(false.get(state, ())))
    marks = [one for of_state in heard.values() for one in of_state if one[0]]
    percent("corrections_marked_recall_pct", sum(one[1] or one[2] for one in marks), len(marks), wanted=">= 90")
    percent("corrections_marked_right_pct", sum(one[1] for one in marks), len(marks), wanted=">= 80")
    others = [one for state in (*_ASKED, "review") for one in false.get(state, ())]
    percent("corrections_false_pct", sum(others), len(others), wanted="<= 1")


def _heard(row: Row, slot: str, state: str) -> tuple[bool, bool]:
    """Return whether a correction was made at once, and whether the agent asked about it."""
    asked = _ASKED[state][0] if state in _ASKED else ""
    form = _form((slot, "booking_place", "party_email", *([asked] if asked else [])))
    given = {slot: str(row["old"][0]), "booking_place": "Oslo", "party_email": "ana@example.com"}
    begun = _state(form, given, asked)
    said = _say(form, begun, row["user"])
    done = said.changed == {slot} and any(_means(form.by_id[slot], said.after[slot], new) for new in row["new"])
    unheard = {(one.reply, one.asked) for one in (_say(form, begun, text) for text in _NOTHING)}
    back = not said.changed and said.status not in SENT and (said.reply, said.asked) not in unheard
    if not done and not back:
        got = {name: said.after.get(name) for name in sorted(said.changed)}
        failed("states", "not heard", f"correction:{state}", slot=slot, said=row["user"], new=row["new"], got=got)
    return done, back


def _form(slots: Iterable[str], flags: frozenset[str] = frozenset()) -> Form:
    """Return a form that is reviewed and submitted, its fields of the types that their names tell.

    What the data has as true or false is a yes or no.
    """
    form = form_of(*slots)
    fields = tuple(replace(one, type=value_type("yes_no")) if one.id in flags else one for one in form.fields)
    return replace(form, fields=fields, submit=Submission(SUBMIT_FORM, {}, fields=tuple(form.by_id)))


def _state(form: Form, given: Mapping[str, str], asked: str = "") -> ConversationState:
    state = reviewed(form, {name: _YES.get(value, value) for name, value in given.items()})
    return {**state, "status": "collecting", "asked": asked} if asked else state


def _say(form: Form, state: ConversationState, text: str) -> Said:
    said = Simulation(form, CONTEXT)
    said.conversation = state
    before = values_of(said)
    turn = said.say(text).turn
    found = said.conversation
    return Said(before, values_of(said), found["status"], found["asked"], turn["response"], turn["is_correction"])


def _means(of: Field, value: str, wanted: str) -> bool:
    """Return True if a value is the wanted one: a text contains it, any other reads alike where it can be read."""
    text = _YES.get(wanted, wanted)
    if of.type.name in {"text", "person_name"}:
        return text.casefold() in value.casefold()
    read = accepted(of, text, CONTEXT)
    return bool(value) and (read is None or value == read.value)
