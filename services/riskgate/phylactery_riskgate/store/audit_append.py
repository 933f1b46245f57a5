"""Entries a unit of work appends to one log: collected as rows, and written with one move of the log's head.

The head is not locked in advance: it moves only from the position this process knows, so a log never forks. Processes
that share a name by mistake, or during a takeover, retry their jobs instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import sqlalchemy as sa
from phylactery_chassis.db.statements import RowInsert, Update
from phylactery_chassis.db.unit import ConflictError
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.merkle import Frontier
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store.tables import audit_entries, audit_logs, audit_values

Sign: TypeAlias = Callable[[Connection, Frontier], str]
"""Function that returns the signed note of a head; raises if it must not be signed."""

Settled: TypeAlias = "Callable[[rows.Head | None, str], None]"
"""Callback with the head after the unit (None if unknown) and the note signed in it, or an empty string."""

_Mark: TypeAlias = "tuple[int, int, Frontier, int, int | None]"

_MOVE_HEAD = Update(
    sa.update(audit_logs)
    .where(audit_logs.c.name == sa.bindparam("log"), audit_logs.c.size == sa.bindparam("expected"))
    .values(size=sa.bindparam("size"), frontier=sa.bindparam("frontier"), last_us=sa.bindparam("last_us"))
)
_ADD_ENTRIES = RowInsert(
    audit_entries, "log", "position", "leaf", "record", "tenant", "subject", "kind", "time_us", "decision_id"
)
_ADD_VALUES = RowInsert(audit_values, "log", "position", "tenant", "sealed")


class PendingEntries:
    """The entries one unit adds to one log."""

    def __init__(self, name: str, head: rows.Head, *, sign: Sign, settled: Settled) -> None:
        """Continue from a head; settled is called with the outcome of the unit."""
        self._name, self._head, self._sign, self._settled = name, head, sign, settled
        self._signed_size = head.signed_size
        self._entries: list[tuple[Any, ...]] = []
        self._values: list[tuple[Any, ...]] = []
        self._sign_us: int | None = None
        self._note = ""
        self.frontier, self.last_us = head.frontier, head.last_us

    @property
    def unsigned(self) -> int:
        """Return how many entries no signed head covers."""
        return self.frontier.size - self._signed_size

    def add(self, entry: rows.StoredEntry, label: rows.Label) -> None:
        """Append an entry."""
        self.frontier = self.frontier.append(entry.leaf)
        self.last_us = label.time_us
        self._entries.append(
            (
                self._name,
                entry.index,
                entry.leaf,
                entry.record,
                label.tenant,
                label.subject,
                label.kind,
                label.time_us,
                label.decision_id,
            )
        )

    def keep_values(self, tenant: str, index: int, sealed: bytes) -> None:
        """Add sealed values of an entry."""
        self._values.append((self._name, index, tenant, sealed))

    def find_values(self, tenant: str, index: int) -> bytes | None:
        """Return the sealed values of an entry that is not written yet."""
        return next((sealed for _, at, whose, sealed in self._values if (at, whose) == (index, tenant)), None)

    def find_entry(self, tenant: str, index: int) -> rows.StoredEntry | None:
        """Return an entry of a tenant that is not written yet."""
        found = (row for row in self._entries if (row[1], row[4]) == (index, tenant))
        return next((rows.StoredEntry(row[1], row[2], row[3]) for row in found), None)

    def sign_at_end(self, now_us: int) -> None:
        """Request a signature of the head at the end of the unit."""
        self._sign_us = now_us

    def mark(self) -> _Mark:
        """Return a savepoint for undo."""
        return len(self._entries), len(self._values), self.frontier, self.last_us, self._sign_us

    def undo(self, mark: _Mark) -> None:
        """Discard everything after the mark."""
        entries, values, self.frontier, self.last_us, self._sign_us = mark
        del self._entries[entries:]
        del self._values[values:]

    def flush(self, connection: Connection) -> None:
        """Move the head and write every row. Raise ConflictError if the head has moved meanwhile.

        Raise also what prevents the head from being signed: then none of the unit's entries are written.
        """
        if self._entries:
            moved = {
                "log": self._name,
                "expected": self._head.frontier.size,
                "size": self.frontier.size,
                "frontier": self.frontier.to_bytes(),
                "last_us": self.last_us,
            }
            if _MOVE_HEAD.run(connection, moved) != 1:
                raise ConflictError
            _ADD_ENTRIES.run(connection, self._entries)
            _ADD_VALUES.run(connection, self._values)
        if self._sign_us is not None and self.frontier.size:
            self._note = self._sign(connection, self.frontier)
            rows.add_checkpoint(connection, self._name, self.frontier.size, self._note, self._sign_us)
            self._signed_size = self.frontier.size

    def settle(self, *, committed: bool) -> None:
        """Report the new head after a commit, or that it is unknown."""
        head = rows.Head(self.frontier, self._signed_size, self._head.data_key_id, self.last_us)
        self._settled(*((head, self._note) if committed else (None, "")))
