"""Kinds of values that people write, at least fifteen lines each: said whole at a question, or as a reminder's time.

Read is a value that the line means; asked, no value and a reply of its own, or any question where the line means none;
missed, no value and the reply to nothing; wrong, any other value, which is the costly one.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Final, Literal, cast
from zoneinfo import ZoneInfo

from phylactery_agent.rules.planner import read_request
from phylactery_agent.timeparse.phrases import WhenError, resolve
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_forms.stories.runner import Simulation
from phylactery_forms.values.model import Context, Language

from benchmarks.dialog.answers import NOW, Row, values_of
from benchmarks.dialog.corrections import form_of
from benchmarks.dialog.figures import failed, own_rows, percent

Outcome = Literal["read", "asked", "missed", "wrong"]
_ZONE: Final = ZoneInfo("Europe/Madrid")
_FIELDS: Final = {"date": "meeting_date", "time": "arrival_time", "number": "number_of_bags", "money": "amount"}
"""The name of the asked field, which tells its type."""
_NOTHING: Final = "mmm"


def run() -> None:
    """Print the lines."""
    tools = ToolRegistry()
    read = [(row, *(_reminder(row, tools) if row["type"] == "reminder" else _field(row))) for row in own_rows("kinds")]
    kinds = dict.fromkeys(row["kind"] for row, _, _ in read)
    for kind in ("", *kinds):
        count = Counter(outcome for row, outcome, _ in read if kind in {"", row["kind"]})
        name = f"kinds_{kind}" if kind else "kinds"
        wanted = {"read_or_asked": ">= 90", "wrong": "<= 1"} if not kind else {"read_or_asked": "", "wrong": ""}
        answered, of = count["read"] + count["asked"], count.total()
        percent(f"{name}_read_or_asked_pct", answered, of, read=count["read"], wanted=wanted["read_or_asked"])
        percent(f"{name}_wrong_pct", count["wrong"], of, wanted=wanted["wrong"])
    for row, outcome, got in read:
        if outcome in {"wrong", "missed"}:
            failed("kinds", outcome, row["kind"], said=row["text"], wanted=row["want"], got=got)


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


def _reminder(row: Row, tools: ToolRegistry) -> tuple[Outcome, str]:
    """Read a request of a reminder; return the outcome and the local time."""
    calls = [call for clause in read_request(row["text"], tools).clauses for call in clause]
    when = next((str(one.args["when"]) for one in calls if one.tool == "create_reminder"), "")
    if not when:
        return ("missed" if row["want"] else "asked"), ""
    try:
        due = resolve(when, where=_ZONE, now_us=int(NOW.timestamp() * 1_000_000))
    except WhenError:
        return "asked", ""
    value = datetime.fromtimestamp(due.due_us / 1_000_000, _ZONE).strftime("%Y-%m-%dT%H:%M")
    return ("read" if value in row["want"] else "wrong"), value
