"""Rendering of JSON outputs in a reply, for people, in both languages."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from typing import Any, Final

from phylactery_agent.ports import Language
from phylactery_agent.timeparse.recurrence import parse_rule

EMPTY: Final[dict[Language, str]] = {"es": "(No hay nada.)", "en": "(There is nothing.)"}
WEEKDAYS: Final[dict[Language, tuple[str, ...]]] = {
    "es": ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
_FREQUENCIES: Final[dict[Language, dict[str, tuple[str, str]]]] = {
    "es": {
        "DAILY": ("cada día", "cada {} días"),
        "WEEKLY": ("cada semana", "cada {} semanas"),
        "MONTHLY": ("cada mes", "cada {} meses"),
        "YEARLY": ("cada año", "cada {} años"),
    },
    "en": {
        "DAILY": ("every day", "every {} days"),
        "WEEKLY": ("every week", "every {} weeks"),
        "MONTHLY": ("every month", "every {} months"),
        "YEARLY": ("every year", "every {} years"),
    },
}
_MORE: Final[dict[Language, str]] = {"es": "… (Hay más.)", "en": "… (There is more.)"}


def printable(text: str) -> str:
    """Return the text with unprintable characters replaced, so that a name cannot begin a line."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def folder_shown(output: str, language: Language) -> str:
    """Return the entries of list_dir, one per line."""
    answer = json.loads(output)
    lines = [f"- {_entry(entry)}" for entry in answer["entries"]]
    return _whole(lines, language, complete=answer["complete"])


def _entry(entry: dict[str, Any]) -> str:
    name = printable(entry["name"])
    if entry["kind"] == "folder":
        return f"{name}/"
    return f"{name} ({entry['size']} B)" if entry["kind"] == "file" else name


def file_shown(output: str, language: Language) -> str:
    """Return the result of file_info."""
    found = json.loads(output)
    path = printable(found["path"])
    if not found["exists"]:
        return {"es": f"No existe «{path}».", "en": f"There is no “{path}”."}[language]
    changed = {"es": "último cambio", "en": "last change"}[language]
    return f"{path} ({found['size']} B), {changed}: {datetime.fromisoformat(found['modified']):%Y-%m-%d %H:%M} UTC"


def undone_shown(output: str, language: Language) -> str:
    """Return what undo_write did to the file."""
    undone = json.loads(output)
    path = printable(undone["path"])
    if undone["removed"]:
        return {
            "es": f"He quitado «{path}», porque ese cambio lo había creado.",
            "en": f"I removed “{path}”, because that change had created it.",
        }[language]
    return {
        "es": f"«{path}» vuelve a estar como antes.",
        "en": f"“{path}” is as it was before.",
    }[language]


def matches_shown(output: str, language: Language) -> str:
    """Return the lines search_files found, one per line."""
    answer = json.loads(output)
    lines = [f"- {printable(one['path'])}:{one['line']}: {printable(one['text'])}" for one in answer["matches"]]
    return _whole(lines, language, complete=answer["complete"])


def _whole(lines: list[str], language: Language, *, complete: bool) -> str:
    if not complete:
        lines = [*lines, _MORE[language]]
    return "\n".join(lines) or EMPTY[language]


def created_shown(output: str, language: Language) -> str:
    """Return the reminder create_reminder stored."""
    return _reminder(json.loads(output), language)


def memories_shown(output: str, language: Language) -> str:
    """Return the memories of recall, one per line, without the count that a model receives."""
    _, _, memories = output.partition("\n")
    return memories or EMPTY[language]


def reminders_shown(output: str, language: Language) -> str:
    """Return the reminders of list_reminders, one per line; ids only where the words are ambiguous."""
    answer = json.loads(output)
    texts = Counter(one["text"].casefold() for one in answer["reminders"])
    lines = [
        f"- {_reminder(one, language)}" + (f" [{one['id']}]" if texts[one["text"].casefold()] > 1 else "")
        for one in answer["reminders"]
    ]
    return _whole(lines, language, complete=not answer.get("more", False))


def _reminder(reminder: dict[str, str], language: Language) -> str:
    due = datetime.fromisoformat(reminder["due"])
    shown = f"{WEEKDAYS[language][due.weekday()]} {due:%Y-%m-%d %H:%M} ({reminder['time_zone']})"
    again = f", {_repeated(reminder['repeat'], language)}" if reminder["repeat"] else ""
    return f"{shown}{again}: {printable(reminder['text'])}"


def _repeated(repeat: str, language: Language) -> str:
    """Return how a reminder repeats: weekdays by name, and the rule's end as written."""
    rule = parse_rule(repeat)
    one, many = _FREQUENCIES[language][rule.frequency]
    words = one if rule.interval == 1 else many.format(rule.interval)
    if rule.days:
        words += " (" + ", ".join(WEEKDAYS[language][day] for day in rule.days) + ")"
    if rule.count:
        words += f", × {rule.count}"
    return words if rule.until is None else f"{words}, ≤ {rule.until}"
