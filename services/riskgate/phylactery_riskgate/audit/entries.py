"""The values beside an entry, as somebody may see them: sensitive ones never, and each with its salt."""

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
from phylactery_riskgate.store.audit_search import EVERYBODYS, NOBODYS, Bounds, FoundEntry

WORDS_SALT = "/words_salt"
"""Where the record of a task keeps the salt of its commitment to the user's words, which are kept nowhere."""
_WORDS = (PLAN_STEP, WORDS, WORDS_SALT)
"""Values that are nobody's argument."""
_UNBOUND = (RAW_ARGUMENTS, RAW_ARGS_HASH, CLAIMED_HASH)
"""Values that tell arguments as they came."""
OS_USER = "/os_user"
"""Where a change of the keys keeps the account that made it: of a person that most auditors have nothing to do with."""
SENSITIVE = "sensitive"
"""The name in a record under which it says which of its values the catalog of its day called sensitive."""


@dataclass(frozen=True, slots=True)
class ShownValue:
    """One value with the salt of its commitment; both are empty where it is withheld."""

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
    """Return the values of an entry that were opened, as they may be shown.

    An argument is withheld where the catalog of its day or of today calls any part of it sensitive, and where neither
    knows the tool. What sums arguments up is withheld where any of them is sensitive. Arguments that were never bound
    were judged by no catalog, so they are withheld too. An account of the machine is for who works on_the_machine.
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
    """Return where the values lie that hold anything sensitive for this tool, None where no catalog knows it."""
    return None if tool is None else list(_places_of(tool.sensitive))


@lru_cache(maxsize=1_024)
def _places_of(sensitive: tuple[str, ...]) -> tuple[str, ...]:
    names = {pointer.split("/")[1] for pointer in sensitive if pointer.startswith("/")}
    return tuple(sorted(ARGUMENTS + "/" + name for name in names))


_COLUMNS = ("kind", "subject", "run_id", "thread_id", "tool", "decision")
"""The names in a record that a filter looks at."""


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """An entry and its record; the record is empty where somebody altered it into no JSON object."""

    found: FoundEntry
    record: dict[str, Any]


class EntryFilter:
    """One tenant's question about entries."""

    def __init__(self, tenant: str, asked: FilterInput) -> None:
        self.tenant = tenant
        self._words = {name: str(wanted) for name in _COLUMNS if (wanted := getattr(asked, name))}
        # A canonical record holds these bytes if it fits, so that most others are passed over without reading them.
        self._bytes = [f'"{name}":{json.dumps(word)}'.encode() for name, word in self._words.items()]
        self.bounds = Bounds(asked.log, asked.kind, asked.subject, asked.start_us, asked.end_us)
        # What the index over time answers: a search bounded by these alone looks at so many entries, and no more.
        self.times = Bounds(start_us=asked.start_us, end_us=asked.end_us)

    def read(self, found: FoundEntry) -> ReadEntry | None:
        """Return the entry with its record, None where the filter does not want it."""
        data = found.stored.record
        if self.bounds.log not in ("", found.log) or not all(part in data for part in self._bytes):
            return None
        record = record_of(data)
        tenant = record.get("tenant", self.tenant)
        if tenant != self.tenant and not (tenant == NOBODYS and found.kind in EVERYBODYS):
            return None  # the row says one tenant and the record another: somebody altered the row
        if any(record.get(name) != word for name, word in self._words.items()):
            return None
        return ReadEntry(found, record)


def record_of(data: bytes) -> dict[str, Any]:
    """Return a record, an empty one where the bytes are no JSON object."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
