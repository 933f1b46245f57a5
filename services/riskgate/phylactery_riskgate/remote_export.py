"""Exporting one log to an auditor elsewhere, as lines of the format of audit_export.

The auditor sees the records of their tenant, and of every other entry the leaf hash alone, which tells nothing: so the
whole tree is verified by whoever holds the file, and no tenant reads another's records.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from phylactery_chassis.auth.identity import Principal
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit_export import entry_line, hidden_line, log_lines
from phylactery_riskgate.checkpoint import Checkpoint, NoteError
from phylactery_riskgate.core import Core
from phylactery_riskgate.entry_filter import EntryFilter, ReadEntry
from phylactery_riskgate.permits import encode
from phylactery_riskgate.requests.audit import ExportInput, FilterInput
from phylactery_riskgate.store import audit as log_rows
from phylactery_riskgate.store import audit_search

if TYPE_CHECKING:
    from phylactery_riskgate.auditing import SeenEntry, SignedHead

_AT_ONCE = 500
_AT_ONCE_WITH_VALUES = 16
"""Entries read at once: their values may be a megabyte each."""
_CHUNK_BYTES = 256 * 1024

Seen = Callable[..., "SeenEntry"]


async def exported(
    core: Core, who: Principal, asked: ExportInput, head: SignedHead, seen: Seen
) -> AsyncGenerator[bytes]:
    """Yield the bytes of an export of one log up to a signed head, a part at a time."""
    ring, step = core.keys.ring, _AT_ONCE_WITH_VALUES if asked.include_values else _AT_ONCE

    def begin(connection: Connection) -> list[bytes]:
        notes = [*log_rows.checkpoints(connection, head.log), head.note]
        return list(log_lines(head.log, ring.public, (note for note in notes if _size(note) <= head.size)))

    for part in _parts(await core.database.read(begin)):
        yield part
    for first in range(0, head.size, step):
        read = partial(_page, who=who, asked=asked, log=head.log, first=first, end=min(first + step, head.size))
        for part in _parts(await core.database.read(partial(read, seen=seen))):
            yield part


def _page(
    connection: Connection, *, who: Principal, asked: ExportInput, log: str, first: int, end: int, seen: Seen
) -> list[bytes]:
    """Return the lines of the entries from one index to before another."""
    wanted = EntryFilter(who.tenant, FilterInput())
    visible = {
        one.stored.index: wanted.read(one) for one in audit_search.following(connection, who.tenant, log, first, end)
    }
    lines = []
    for index, leaf in audit_search.leaves_of(connection, log, first, end):
        entry = visible.get(index)
        if entry is None:
            lines.append(hidden_line(index, leaf))
        else:
            values = _values(connection, entry, seen) if asked.include_values else {}
            lines.append(entry_line(entry.found.stored, values))
    return lines


def _values(connection: Connection, entry: ReadEntry, seen: Seen) -> dict[str, Any]:
    shown = seen(connection, entry, values=True).values
    return {
        one.path: {"value": json.loads(one.value_json), "salt": encode(one.salt)} for one in shown if not one.withheld
    }


def _size(note: str) -> int:
    """Return the size of a signed head, 0 of one that is damaged: verify says of it that it is."""
    try:
        return Checkpoint.parse(note.partition("\n\n")[0] + "\n").size
    except NoteError:
        return 0


def _parts(lines: list[bytes]) -> list[bytes]:
    """Return lines as parts of no more than so many bytes, wherever that cuts them."""
    whole = b"".join(lines)
    return [whole[at : at + _CHUNK_BYTES] for at in range(0, len(whole), _CHUNK_BYTES)]
