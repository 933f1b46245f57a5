"""Rendering of JSON outputs in a reply, for people, in both languages."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from phylactery_agent.i18n.messages import is_message, message
from phylactery_agent.ports import Language
from phylactery_agent.timeparse.recurrence import parse_rule


def printable(text: str) -> str:
    """Return the text with unprintable characters replaced, so that a name cannot begin a line."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def nothing_shown(language: Language) -> str:
    """Return the text for an output without entries."""
    return message("nothing_shown", language)


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
        return message("file_missing", language, path=path)
    changed = f"{datetime.fromisoformat(found['modified']):%Y-%m-%d %H:%M}"
    return message("file_found", language, path=path, size=found["size"], changed=changed)


def undone_shown(output: str, language: Language, title: Callable[[str], str]) -> str:
    """Return what undo_write did: to one file, or with everything that it took back, and what stays as it is."""
    undone = json.loads(output)
    if "undone" in undone:
        return _all_undone(undone, language, title)
    path = printable(undone["path"])
    return message("undone_removed" if undone["removed"] else "undone_restored", language, path=path)


_UNDONE: Final = frozenset({"write_file", "create_reminder", "cancel_reminder", "remember"})
"""Tools with words of their own for what is as it was before."""


def _all_undone(told: dict[str, Any], language: Language, title: Callable[[str], str]) -> str:
    lines: list[str] = []
    for one in told["undone"]:
        tool, name = one["tool"], printable(one.get("name", ""))
        key = f"back_{tool}" if tool in _UNDONE else "back_something"
        if key not in {"back_remember", "back_something"} and not name:
            key += "_unnamed"
        elif tool == "write_file" and one.get("removed"):
            key += "_removed"
        lines.append(message(key, language, name=name))
        lines += [message(key, language, name=printable(n)) for n in one.get("more", ())]
        lines += [message("back_cancel_reminder_missed", language, name=printable(n)) for n in one.get("missed", ())]
    for one in told["left"]:
        tool, name = one["tool"], printable(one.get("name", ""))
        own = tool in _UNDONE
        what = message(f"done_{tool}" + _unnamed(tool, name), language, name=name) if own else title(tool)
        why = f"error_{one['code']}"
        why = message(why if is_message(why) else "error_NOT_REVERSIBLE", language)
        lines.append(message("stays_as_it_is", language, what=what, why=why))
    if any(one.get("code") == "CHANGED_SINCE" for one in told["left"]):
        lines.append(message("ask_about_changed", language))
    return "\n".join(lines)


def _unnamed(tool: str, name: str) -> str:
    return "" if name or tool == "remember" else "_unnamed"


def matches_shown(output: str, language: Language) -> str:
    """Return the lines search_files found, one per line."""
    answer = json.loads(output)
    lines = [f"- {printable(one['path'])}:{one['line']}: {printable(one['text'])}" for one in answer["matches"]]
    return _whole(lines, language, complete=answer["complete"])


def _whole(lines: list[str], language: Language, *, complete: bool) -> str:
    if not complete:
        lines = [*lines, message("more_shown", language)]
    return "\n".join(lines) or nothing_shown(language)


def created_shown(output: str, language: Language) -> str:
    """Return the reminder create_reminder stored."""
    return _reminder(json.loads(output), language)


NO_MATCH: Final = "[0 that match the words]"
"""What recall answers where a query matches nothing."""


def memories_shown(output: str, language: Language) -> str:
    """Return the memories of recall, one per line, without the count that a model receives."""
    count, _, memories = output.partition("\n")
    return memories or (message("no_match_shown", language) if count == NO_MATCH else nothing_shown(language))


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
    shown = f"{message('weekday', language, day=due.weekday())} {due:%Y-%m-%d %H:%M} ({reminder['time_zone']})"
    again = f", {_repeated(reminder['repeat'], language)}" if reminder["repeat"] else ""
    return f"{shown}{again}: {printable(reminder['text'])}"


def _repeated(repeat: str, language: Language) -> str:
    """Return how a reminder repeats: weekdays by name, and the rule's end as written."""
    rule = parse_rule(repeat)
    words = message(f"repeats_{rule.frequency}", language, count=rule.interval)
    if rule.days:
        words += " (" + ", ".join(message("weekday", language, day=day) for day in rule.days) + ")"
    if rule.count:
        words += f", × {rule.count}"
    return words if rule.until is None else f"{words}, ≤ {rule.until}"
