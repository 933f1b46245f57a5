"""What is said in an escalation: sealed while it lasts, read by who has it, emptied in the transaction of its end.

The transcript is memory's and the user's own. An emptied entry keeps a keyed hash, by which a request that is repeated
later is told from another one.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.handoff.status import ACTIVE, EntryKind, EscalationStatus
from phylactery_agent.runtime.storage.schema import ESCALATION_ENTRIES, ESCALATIONS, to_bytes, to_text
from phylactery_agent.runtime.storage.sealing import SealError, sealer_of

_SEALED: Final = b"\x00seal1\x00"
_GONE: Final = b"\x00gone1\x00"
_COLUMNS: Final = ("reason", "form_state", "summary")
_SAID: Final = (EntryKind.MESSAGE, EntryKind.REPLY, EntryKind.NOTE)
"""Entries whose text is for the handler who has the claim."""
_PAGE: Final = 200

_log = get_logger("handoff")


def seal(connection: Connection, text: str, escalation_id: str) -> bytes:
    """Return a text as the row of an escalation that has not ended holds it."""
    return _SEALED + sealer_of(connection).cover(to_bytes(text), of=escalation_id) if text else b""


def read(connection: Connection, stored: bytes, escalation_id: str) -> str:
    """Return a stored text, '' if it was emptied or cannot be opened."""
    stored = bytes(stored)
    if stored.startswith(_GONE):
        return ""
    if not stored.startswith(_SEALED):
        return to_text(stored)  # of an agent of before that still runs
    try:
        return to_text(sealer_of(connection).uncover(stored.removeprefix(_SEALED), of=escalation_id))
    except SealError as error:
        _log.error("a text of an escalation cannot be read", escalation_id=escalation_id, error=str(error))
        return ""


def is_same(connection: Connection, stored: bytes, text: str, escalation_id: str) -> bool:
    """Return True if a stored text, emptied or not, is this one."""
    stored = bytes(stored)
    if stored.startswith(_GONE):
        return stored == _gone(connection, text)
    return read(connection, stored, escalation_id) == text


def reads(viewer: str, kind: EntryKind, status: EscalationStatus, handler: str) -> bool:
    """Return True if a handler of the tenant reads an entry: what is said under another's claim is not theirs."""
    return kind not in _SAID or status is not EscalationStatus.CLAIMED or handler == viewer


def empty(connection: Connection, escalation_id: str) -> int:
    """Empty every text of an escalation; return how many there were."""
    this = ESCALATION_ENTRIES.c.escalation_id == escalation_id
    entries = sa.select(ESCALATION_ENTRIES.c.tenant, ESCALATION_ENTRIES.c.sequence, ESCALATION_ENTRIES.c.text)
    gone = sa.func.substr(ESCALATION_ENTRIES.c.text, 1, len(_GONE)) == _GONE
    rows = connection.execute(entries.where(this, ESCALATION_ENTRIES.c.text != b"", ~gone)).all()
    for row in rows:
        key = (ESCALATION_ENTRIES.c.tenant == row.tenant, ESCALATION_ENTRIES.c.sequence == row.sequence)
        left = _gone(connection, read(connection, row.text, escalation_id))
        connection.execute(sa.update(ESCALATION_ENTRIES).where(*key).values(text=left))
    of_it = ESCALATIONS.c.escalation_id == escalation_id
    connection.execute(sa.update(ESCALATIONS).where(of_it).values(dict.fromkeys(_COLUMNS, b"")))
    return len(rows)


def seal_former(database: Database) -> None:
    """Seal the texts of escalations that stand in clear, and empty those of escalations that ended; say so in the log.

    Several agents may do it at once, and one that was killed is followed by the next start.
    """
    done = last = database.write_sync(_seal_page)
    while last:
        last = database.write_sync(_seal_page)
        done += last
    if done:
        _log.warning("texts of escalations that were stored in clear are sealed or emptied now", escalations=done)


def _seal_page(connection: Connection) -> int:
    clear_entry = sa.exists().where(
        ESCALATION_ENTRIES.c.escalation_id == ESCALATIONS.c.escalation_id, _in_clear(ESCALATION_ENTRIES.c.text)
    )
    clear = sa.or_(*(_in_clear(ESCALATIONS.c[name]) for name in _COLUMNS), clear_entry)
    rows = connection.execute(sa.select(ESCALATIONS).where(clear).limit(_PAGE).with_for_update()).all()
    for row in rows:
        if EscalationStatus(row.status) not in ACTIVE:
            empty(connection, row.escalation_id)
            continue
        values = {name: _sealed(connection, getattr(row, name), row.escalation_id) for name in _COLUMNS}
        this = ESCALATIONS.c.escalation_id == row.escalation_id
        connection.execute(sa.update(ESCALATIONS).where(this).values(values))
        entries = sa.select(ESCALATION_ENTRIES).where(
            ESCALATION_ENTRIES.c.escalation_id == row.escalation_id, _in_clear(ESCALATION_ENTRIES.c.text)
        )
        for entry in connection.execute(entries).all():
            key = (ESCALATION_ENTRIES.c.tenant == entry.tenant, ESCALATION_ENTRIES.c.sequence == entry.sequence)
            sealed = _sealed(connection, entry.text, row.escalation_id)
            connection.execute(sa.update(ESCALATION_ENTRIES).where(*key).values(text=sealed))
    if rows:
        note_removed(connection)
    return len(rows)


def _sealed(connection: Connection, stored: bytes, escalation_id: str) -> bytes:
    return seal(connection, read(connection, stored, escalation_id), escalation_id)


def _in_clear(column: sa.ColumnElement[bytes]) -> sa.ColumnElement[bool]:
    return (column != b"") & sa.func.substr(column, 1, len(_SEALED)).not_in((_SEALED, _GONE))


def _gone(connection: Connection, text: str) -> bytes:
    return _GONE + sealer_of(connection).body_hash(to_bytes(text)).encode()
