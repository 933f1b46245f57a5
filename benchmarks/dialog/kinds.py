"""Kinds of values that people write, at least fifteen lines each: said whole at a question, or as a reminder's time.

Read is a value that the line means; asked, no value and a reply of its own, or any question where the line means none;
missed, no value and the reply to nothing; wrong, any other value, which is the costly one.
"""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal, cast
from zoneinfo import ZoneInfo

from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context, Language

from benchmarks.dialog.answers import NOW, Row, values_of
from benchmarks.dialog.corrections import form_of
from benchmarks.dialog.figures import OWN, failed, own_rows, percent
from benchmarks.dialog.served import Speaker, served

Outcome = Literal["read", "asked", "missed", "wrong"]
_HERE: Final = "Europe/Madrid"
_SET: Final = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) \(([\w/]+)\)")
_LATE: Final = timedelta(minutes=3)
"""How much later than a message its reminder may be counted from."""
_FIELDS: Final = {"date": "meeting_date", "time": "arrival_time", "number": "number_of_bags", "money": "amount"}
"""The name of the asked field, which tells its type."""
_NOTHING: Final = "mmm"


def run() -> None:
    """Print the lines."""
    rows = own_rows("kinds")
    read = [(row, *_field(row)) for row in rows if row["type"] != "reminder"]
    with served(OWN / "forms", AGENT_TIME_ZONE=_HERE) as running:
        for number, row in enumerate(one for one in rows if one["type"] == "reminder"):
            read.append((row, *_reminder(row, running.speaker(f"k{number}"))))
    _print("kinds", [outcome for _, outcome, _ in read], read=">= 90", wrong="<= 1")
    for kind in dict.fromkeys(row["kind"] for row in rows):
        _print(f"kinds_{kind}", [outcome for row, outcome, _ in read if row["kind"] == kind])
    for row, outcome, got in read:
        if outcome in {"wrong", "missed"}:
            failed("kinds", outcome, row["kind"], said=row["text"], wanted=row["want"], got=got)


def _print(name: str, outcomes: list[Outcome], **wanted: str) -> None:
    count = Counter(outcomes)
    bars = {key: {"wanted": bar} for key, bar in wanted.items()}
    answered = count["read"] + count["asked"]
    percent(f"{name}_read_or_asked_pct", answered, len(outcomes), read=count["read"], **bars.get("read", {}))
    percent(f"{name}_wrong_pct", count["wrong"], len(outcomes), **bars.get("wrong", {}))


def _field(row: Row) -> tuple[Outcome, str]:
    """Say a line where its type is asked; return the outcome and the value."""
    name = _FIELDS[row["type"]]
    said, nothing = (_said(name, row["lang"], text) for text in (row["text"], _NOTHING))
    value = values_of(said).get(name, "")
    if value:
        return ("read" if value in row["want"] else "wrong"), value
    same = said.said[-1].turn["response"] == nothing.said[-1].turn["response"]
    return ("missed" if same and row["want"] else "asked"), ""


def _said(name: str, language: str, text: str) -> Simulation:
    said = Simulation(form_of(name), Context(cast("Language", language), NOW, "US" if language == "en" else "ES"))
    said.say(text)
    return said


def _reminder(row: Row, speaker: Speaker) -> tuple[Outcome, str]:
    """Ask for a reminder, and say yes to its card; return the outcome and what was set."""
    asked_at = datetime.now(UTC)
    reply = speaker.say(row["text"]).text
    if speaker.shown:
        reply = speaker.say("yes" if row["lang"] == "en" else "sí").text
    match = _SET.search(reply)
    if match is None:
        return ("asked" if "?" in reply or not row["want"] else "missed"), ""
    due = datetime.fromisoformat(match[1]).replace(tzinfo=ZoneInfo(match[2]))
    right = any(timedelta() <= due - _due(want, asked_at) + timedelta(minutes=1) <= _LATE for want in row["want"])
    return ("read" if right else "wrong"), match[0]


def _due(want: str, asked_at: datetime) -> datetime:
    """Return the moment of ``+90 min``, or of ``+1 09:00 Asia/Tokyo``: a day of the person, a time of that zone."""
    ahead, at, *zone = want.split()
    if not zone:
        return asked_at + timedelta(minutes=int(ahead))
    day: date = (asked_at.astimezone(ZoneInfo(_HERE)) + timedelta(days=int(ahead))).date()
    return datetime.fromisoformat(f"{day}T{at}").replace(tzinfo=ZoneInfo(zone[0]))
