"""Which entries a filter wants: what columns can say narrows the search, the record itself has the last word."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from phylactery_riskgate.requests.audit import FilterInput
from phylactery_riskgate.store.audit_search import EVERYBODYS, NOBODYS, Bounds, FoundEntry

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
        """Answers the entry with its record, None where the filter does not want it."""
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
    """Answers a record, an empty one where the bytes are no JSON object."""
    try:
        record = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
