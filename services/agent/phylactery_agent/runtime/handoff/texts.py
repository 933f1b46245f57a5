"""What is said in an escalation: for whoever has it while it lasts, and emptied in the transaction of its end.

The columns seal it. The transcript is memory's and the user's own. An emptied entry keeps a hash, sealed as the text
was, by which a request that is repeated later is told from another one.
"""

from __future__ import annotations

import hashlib
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.db.sealed import in_clear
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.handoff.status import ACTIVE, EntryKind, EscalationStatus
from phylactery_agent.runtime.storage.schema import ESCALATION_ENTRIES, ESCALATIONS, to_bytes, to_text

_GONE: Final = b"\x00gone1\x00"
_COLUMNS: Final = ("reason", "form_state", "summary")
_SAID: Final = (EntryKind.MESSAGE, EntryKind.REPLY, EntryKind.NOTE)
"""Entries whose text is for the handler who has the claim."""
_PAGE: Final = 200

_log = get_logger("handoff")


def read(stored: bytes) -> str:
    """Return the text of an entry, '' if it was emptied."""
    return "" if stored.startswith(_GONE) else to_text(stored)


ENTRY_TEXT: Final = Form(read, to_bytes)


def is_same(stored: bytes, text: str) -> bool:
    """Return True if the text of an entry, emptied or not, is this one."""
    return stored in (_gone(to_bytes(text)), to_bytes(text))


def reads(viewer: str, kind: EntryKind, status: EscalationStatus, handler: str) -> bool:
    """Return True if a handler of the tenant reads an entry: what is said under another's claim is not theirs."""
    return kind not in _SAID or status is not EscalationStatus.CLAIMED or handler == viewer


def empty(connection: Connection, escalation_id: str) -> None:
    """Empty every text of an escalation."""
    this = ESCALATION_ENTRIES.c.escalation_id == escalation_id
    entries = sa.select(ESCALATION_ENTRIES.c.tenant, ESCALATION_ENTRIES.c.sequence, ESCALATION_ENTRIES.c.text)
    for row in connection.execute(entries.where(this, ESCALATION_ENTRIES.c.text != b"")).all():
        key = (ESCALATION_ENTRIES.c.tenant == row.tenant, ESCALATION_ENTRIES.c.sequence == row.sequence)
        left = row.text if not row.text or row.text.startswith(_GONE) else _gone(row.text)
        connection.execute(sa.update(ESCALATION_ENTRIES).where(*key).values(text=left))
    of_it = ESCALATIONS.c.escalation_id == escalation_id
    connection.execute(sa.update(ESCALATIONS).where(of_it).values(dict.fromkeys(_COLUMNS, b"")))


def empty_former(database: Database) -> None:
    """Empty what an earlier version left in clear of escalations that have ended; say so in the log.

    Several agents may do it at once, and one that was killed is followed by the next start.
    """
    done = last = database.write_sync(_empty_page)
    while last:
        last = database.write_sync(_empty_page)
        done += last
    if done:
        _log.warning("texts of ended escalations that were stored in clear are emptied now", escalations=done)


def _empty_page(connection: Connection) -> int:
    clear_entry = sa.exists().where(
        ESCALATION_ENTRIES.c.escalation_id == ESCALATIONS.c.escalation_id, in_clear(ESCALATION_ENTRIES.c.text)
    )
    clear = sa.or_(*(in_clear(ESCALATIONS.c[name]) for name in _COLUMNS), clear_entry)
    ended = sa.select(ESCALATIONS.c.escalation_id).where(ESCALATIONS.c.status.not_in(ACTIVE), clear)
    found = connection.execute(ended.limit(_PAGE).with_for_update()).scalars().all()
    for escalation_id in found:
        empty(connection, escalation_id)
    if found:
        note_removed(connection)
    return len(found)


def _gone(text: bytes) -> bytes:
    return _GONE + hashlib.sha256(text).digest()
