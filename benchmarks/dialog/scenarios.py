"""Whole dialogues with the running services, without a model, in both languages.

A person who knows what they want answers what is asked, says what the scenario lets them say at its place, and sends at
the review. A scenario is passed if the form ends as wanted with exactly the wanted values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import yaml
from phylactery.agent.v1 import form_pb2

from benchmarks.dialog.figures import OWN, failed, line
from benchmarks.dialog.served import Served, Speaker, served

Row = Mapping[str, Any]
_DAY: Final = re.compile(r"<\+(\d+)>")
_MONTHS: Final[Mapping[str, Sequence[str]]] = {
    "en": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "es": (
        *("enero", "febrero", "marzo", "abril", "mayo", "junio"),
        *("julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"),
    ),
}
_OPEN: Final = {form_pb2.FORM_STATUS_COLLECTING, form_pb2.FORM_STATUS_REVIEW, form_pb2.FORM_STATUS_SUBMITTING}
_ENDS: Final[Mapping[int, str]] = {
    form_pb2.FORM_STATUS_SUBMITTED: "submitted",
    form_pb2.FORM_STATUS_CANCELLED: "cancelled",
    form_pb2.FORM_STATUS_ESCALATED: "escalated",
}
_WANTED: Final = ">= 32 of 36"
_MOST, _TWICE = 40, 2
FILES: Final[Mapping[str, str]] = {"notes.txt": "oat milk\n"}


@dataclass
class Dialogue:
    """One scenario in one language, as it is played."""

    row: Row
    data: Row
    language: str
    speaker: Speaker
    turns: list[tuple[str, str]] = field(default_factory=list)
    fault: str = ""

    @property
    def answers(self) -> Mapping[str, str]:
        """Return what is said to each question."""
        own: Mapping[str, str] = self.row.get("answers", {}).get(self.language, {})
        return {**self.data["forms"][self.row["form"]]["answers"][self.language], **own}

    @property
    def values(self) -> Mapping[str, str]:
        """Return what is to be submitted: a text as it was said."""
        known = {**self.data["forms"][self.row["form"]]["values"], **self.row.get("values", {})}
        return {name: _dated(known.get(name, said)) for name, said in self.answers.items()}

    def play(self) -> None:
        """Say everything, until the form has ended or a fault is found."""
        triggers = self.row.get("triggers", self.data["triggers"][self.row["form"]])
        self._say(triggers[self.language])
        asked = Counter[str]()
        events = list(self.row.get("events", ()))
        while not self.fault and len(self.turns) < _MOST:
            state = self.speaker.form()
            if state is None:
                self.fault = "the form did not begin"
            elif state.status not in _OPEN:
                break
            elif events and events[0]["at"] in {_place(state), "any"}:
                self._event(events.pop(0))
            elif asked[_place(state)] == _TWICE:
                self.fault = f"asked for a third time: {_place(state)}"
            else:
                asked[_place(state)] += 1
                self._say(self._answer(_place(state)))
        if not self.fault:
            self.fault = self._fault(events)

    def _answer(self, place: str) -> str:
        if place == "review":
            said: str = self.row.get("send", {"en": "yes", "es": "sí"})[self.language]
            return said
        return self.answers[place]

    def _event(self, event: Row) -> None:
        reply = self._say(event[self.language])
        known = event.get("reply", "")
        text = known if isinstance(known, str) else known[self.language]
        if text.casefold() not in reply.casefold():
            self.fault = f"the reply to “{event[self.language]}” lacks “{text}”"
        wants = {name: _dated(value) for name, value in event.get("want", {}).items()}
        done = self._done(wants)
        if wants and not any(done):
            self._say(event["then"][self.language])
            done = self._done(wants)
        if not self.fault and not all(done):
            self.fault = (
                f"“{event[self.language]}” is half done" if any(done) else f"“{event[self.language]}” is not done"
            )

    def _done(self, wants: Mapping[str, str]) -> list[bool]:
        """Return of each wanted value whether it is there."""
        state = self.speaker.form()
        values = {one.field: one.value for one in state.values} if state else {}
        return [values.get(name) == value for name, value in wants.items()]

    def _fault(self, unsaid: Sequence[Row]) -> str:
        state = self.speaker.form()
        ends = _ENDS.get(state.status, "open") if state else "none"
        wanted = self.row.get("ends", "submitted")
        if ends != wanted:
            return f"the form is {ends}, not {wanted}"
        if unsaid:
            return f"never at {unsaid[0]['at']}"
        found = self.speaker.submissions()
        right = [self.values] if wanted == "submitted" else []
        if [_folded(one) for one in found] == [_folded(one) for one in right]:
            return ""
        differs = [
            f"{name} is {one.get(name)!r}, not {value!r}"
            for one, values in zip(found, right, strict=False)
            for name, value in values.items()
            if _folded(one).get(name) != value.casefold()
        ]
        return "; ".join(differs) or f"{len(found)} submissions"

    def _say(self, text: str) -> str:
        said = _written(text, self.language)
        reply = self.speaker.say(said).text
        self.turns.append((said, reply))
        return reply


def run() -> None:
    """Print the lines."""
    with served(OWN / "forms", AGENT_HANDOFF="on") as running:
        played = list(play(running))
    for language in ("en", "es"):
        own = [one for one in played if one.language == language]
        passed = [one for one in own if not one.fault]
        kinds = Counter(one.row["kind"] for one in passed)
        all_of = Counter(one.row["kind"] for one in own)
        of_kinds = {kind: f"{kinds[kind]} of {number}" for kind, number in all_of.items()}
        line(f"scenarios_{language}", len(passed), "scenarios", of=len(own), wanted=_WANTED, **of_kinds)
        sent = [one for one in passed if one.row.get("ends", "submitted") == "submitted"]
        said = sum(len(one.turns) for one in sent) / max(len(sent), 1)
        asked = sum(len(one.answers) for one in sent) / max(len(sent), 1)
        line(f"turns_per_completed_form_{language}", said, "turns", fields=asked, forms=len(sent))
    for one in played:
        if one.fault:
            failed("scenarios", one.fault, one.row["kind"], name=one.row["name"], lang=one.language, turns=one.turns)


def play(running: Served) -> Iterator[Dialogue]:
    """Play every scenario in both languages."""
    data = yaml.safe_load((OWN / "scenarios.yaml").read_text(encoding="utf-8"))
    for number, row in enumerate(data["scenarios"]):
        for language in ("en", "es"):
            dialogue = Dialogue(row, data, language, running.speaker(f"s{number}{language}", FILES))
            dialogue.play()
            yield dialogue


def _place(state: form_pb2.FormState) -> str:
    """Return the field that is asked, or the review."""
    return state.asked_field if state.status == form_pb2.FORM_STATUS_COLLECTING and state.asked_field else "review"


def _day(days: str) -> date:
    return (datetime.now(UTC) + timedelta(days=int(days))).date()


def _written(text: str, language: str) -> str:
    """Return a text with its days written out."""

    def out(match: re.Match[str]) -> str:
        day = _day(match[1])
        month = _MONTHS[language][day.month - 1]
        return f"{day.day} {month} {day.year}" if language == "en" else f"{day.day} de {month} de {day.year}"

    return _DAY.sub(out, text)


def _dated(value: str) -> str:
    return _DAY.sub(lambda match: _day(match[1]).isoformat(), value)


def _folded(values: Mapping[str, str]) -> Mapping[str, str]:
    return {name: value.casefold() for name, value in values.items()}
