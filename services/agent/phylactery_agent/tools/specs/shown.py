"""How a reply quotes an output that is JSON: for a person, in both languages."""

from __future__ import annotations

import json
from typing import Any, Final

from phylactery_agent.ports import Language

_EMPTY: Final[dict[Language, str]] = {"es": "(No hay nada.)", "en": "(There is nothing.)"}
_MORE: Final[dict[Language, str]] = {"es": "… (Hay más.)", "en": "… (There is more.)"}


def printable(text: str) -> str:
    """Answers the text with everything that is no letter, mark or space made visible: a name cannot begin a line."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def folder_shown(output: str, language: Language) -> str:
    """Answers the entries of list_dir, one a line."""
    answer = json.loads(output)
    lines = [f"- {_entry(entry)}" for entry in answer["entries"]]
    return _whole(lines, language, complete=answer["complete"])


def _entry(entry: dict[str, Any]) -> str:
    name = printable(entry["name"])
    if entry["kind"] == "folder":
        return f"{name}/"
    return f"{name} ({entry['size']} B)" if entry["kind"] == "file" else name


def matches_shown(output: str, language: Language) -> str:
    """Answers the lines search_files found, one a line."""
    answer = json.loads(output)
    lines = [f"- {printable(one['path'])}:{one['line']}: {printable(one['text'])}" for one in answer["matches"]]
    return _whole(lines, language, complete=answer["complete"])


def _whole(lines: list[str], language: Language, *, complete: bool) -> str:
    if not complete:
        lines = [*lines, _MORE[language]]
    return "\n".join(lines) or _EMPTY[language]
