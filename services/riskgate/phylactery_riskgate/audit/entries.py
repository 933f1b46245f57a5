"""Values stored with an entry, as a reader may see them: sensitive ones withheld, the others with their salts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from phylactery_riskgate.audit.commitments import (
    ARGS_HASH,
    ARGUMENTS,
    CLAIMED_HASH,
    PLAN_STEP,
    RAW_ARGS_HASH,
    RAW_ARGUMENTS,
    WORDS,
)
from phylactery_riskgate.audit.requests import FilterInput
from phylactery_riskgate.domain.model import CatalogTool
from phylactery_riskgate.store.audit_search import GLOBAL_KINDS, SYSTEM_TENANT, Bounds, FoundEntry

WORDS_SALT = "/words_salt"
"""JSON Pointer of the salt for the commitment to the user's words in a task's record; the words are not stored."""
_WORDS = (PLAN_STEP, WORDS, WORDS_SALT)
"""Values that are not arguments."""
_UNBOUND = (RAW_ARGUMENTS, RAW_ARGS_HASH, CLAIMED_HASH)
"""Values that reveal the arguments as they came."""
OS_USER = "/os_user"
"""JSON Pointer of the account that changed the keys: personal data that most auditors need not see."""
SENSITIVE = "sensitive"
"""Field of a record that lists which of its values the catalog of that time called sensitive."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """One value with the salt of its commitment; both are empty if it is withheld."""

    path: str
    value_json: str
    salt: bytes
    withheld: bool


def shown_values(
    record: Mapping[str, Any],
    opened: Mapping[str, tuple[bytes, Any]],
    tools: Mapping[str, CatalogTool],
    *,
    on_the_machine: bool = False,
) -> list[ShownValue]:
    """Return the opened values of an entry as they may be shown.

    An argument is withheld if the catalog of its time or the current one calls any part of it sensitive, or if neither
    knows the tool. Values that summarize arguments are withheld if any argument is sensitive. Arguments that were never
    bound were checked by no catalog, so they are withheld too. An operating system account is shown only
    on_the_machine.
    """
    today, told = sensitive_values(tools.get(str(record.get("tool")))), record.get(SENSITIVE)
    known = today is not None or isinstance(told, list)
    concealed = {*(today or ()), *(told if isinstance(told, list) else ())}
    shown = []
    for path, (salt, value) in sorted(opened.items()):
        sums = concealed and not path.startswith(ARGUMENTS)
        unjudged = path in _UNBOUND and ARGS_HASH not in opened
        free = path in _WORDS or (path == OS_USER and on_the_machine)
        if not free and (not known or path in concealed or sums or unjudged):
            shown.append(ShownValue(path, "", b"", withheld=True))
        else:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            shown.append(ShownValue(path, text, salt, withheld=False))
    return shown


def sensitive_values(tool: CatalogTool | None) -> list[str] | None:
    """Return the places of a tool's sensitive values, or None if the tool is not in the catalog."""
    return None if tool is None else list(_places_of(tool.sensitive))


@lru_cache(maxsize=1_024)
def _places_of(sensitive: tuple[str, ...]) -> tuple[str, ...]:
    names = {pointer.split("/")[1] for pointer in sensitive if pointer.startswith("/")}
    return tuple(sorted(ARGUMENTS + "/" + name for name in names))


_COLUMNS = ("kind", "subject", "run_id", "thread_id", "tool", "decision")
"""Fields of a record that a filter compares."""


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry and its record; the record is empty if it was altered and is not a JSON object any more."""

    found: FoundEntry
    record: dict[str, Any]


class EntryFilter:
    """One tenant's query for entries."""

    def __init__(self, tenant: str, asked: FilterInput) -> None:
        self.tenant = tenant
        self._words = {name: str(wanted) for name in _COLUMNS if (wanted := getattr(asked, name))}
        # a matching canonical record contains these bytes, so most others are skipped without parsing
        self._bytes = [f'"{name}":{json.dumps(word)}'.encode() for name, word in self._words.items()]
        self.bounds = Bounds(asked.log, asked.kind, asked.subject, asked.start_us, asked.end_us)
        # bounds that the time index covers: a search by these alone reads a limited number of entries
        self.times = Bounds(start_us=asked.start_us, end_us=asked.end_us)

    def read(self, found: FoundEntry) -> ReadEntry | None:
        """Return the entry with its record, or None if the filter excludes it."""
        data = found.stored.record
        if self.bounds.log not in ("", found.log) or not all(part in data for part in self._bytes):
            return None
        record = record_of(data)
        tenant = record.get("tenant", self.tenant)
        if tenant != self.tenant and not (tenant == SYSTEM_TENANT and found.kind in GLOBAL_KINDS):
            return None  # row and record name different tenants: the row was altered
        if any(record.get(name) != word for name, word in self._words.items()):
            return None
        return ReadEntry(found, record)


def record_of(data: bytes) -> dict[str, Any]:
    """Return a record, empty if the bytes are not a JSON object."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


@dataclass(frozen=True, slots=True)
class SeenEntry:
    """An entry as its auditor sees it."""

    entry: ReadEntry
    values: tuple[ShownValue, ...] = ()
    erased: bool = False
    revoke_us: int = 0
    """When the decision it records was revoked, 0 where it was not."""

    @property
    def bytes(self) -> int:
        """Return the approximate size of the entry in a message."""
        return len(self.entry.found.stored.record) + sum(len(value.value_json) for value in self.values)


@dataclass(frozen=True, slots=True)
class SignedHead:
    """A signed head of a log."""

    log: str
    size: int
    root: bytes
    note: str
