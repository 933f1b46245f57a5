"""Sealing, once, of what earlier versions stored in clear, before anybody is served from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed, scrub_removed
from phylactery_chassis.db.sealed import SealedBytes, SealedText, in_clear
from phylactery_chassis.db.statements import RowInsert
from phylactery_chassis.errors import DataLoss
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection, Row

from phylactery_agent.checkpoints.serializer import NotPlainError, unpack
from phylactery_agent.checkpoints.tables import BLOBS, CHECKPOINTS
from phylactery_agent.runtime.runs.status import ACTIVE
from phylactery_agent.runtime.storage.schema import (
    FORM_SESSIONS,
    FORM_SUBMISSIONS,
    MARKS,
    METADATA,
    OUTBOX,
    RUNS,
    TOOL_CALLS,
)
from phylactery_agent.runtime.storage.sealing import Sealer, SealError

_MARK: Final = "sealed"
"""The mark that holds the fingerprint of the key under which everything is sealed."""
_AT_ONCE: Final = 200
_EMPTIED: Final = {"payload": "{}", "steps": "[]", "card": "[]"}
"""What a text that cannot be unsealed is replaced by; every other such column takes NULL or no bytes."""
_AS_IT_IS: Final = object()
_SET_MARK: Final = RowInsert(
    MARKS, "name", "value", otherwise="ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
"""One statement, because several agents note it at once."""
_log = get_logger("sealing")


async def seal_clear_texts(database: Database, sealer: Sealer) -> int:
    """Seal what is in clear, empty the outputs of runs that have ended, and return how many values changed.

    A process that is killed in it begins again, so nothing stays in clear; several may do it at once. Where an operator
    gave up an old key, what it sealed is emptied, since nothing can open it. Raise Unavailable STORE_UNAVAILABLE.
    """
    read = sa.select(MARKS.c.value).where(MARKS.c.name == _MARK)
    known = await database.read(lambda connection: connection.execute(read).scalar())
    if known == sealer.fingerprint:
        return 0
    changed = await database.write(_empty_outputs)
    for table in METADATA.sorted_tables:
        for column in table.columns:
            if isinstance(column.type, SealedBytes | SealedText):
                which = in_clear(column) if known is None else column.is_not(None)
                changed += await _sweep(database, column, partial(_opened, column), which)
    for table in (CHECKPOINTS, BLOBS):
        changed += await _sweep(database, table.c.body, partial(_covered, sealer), sa.true())
    if known is not None:
        changed += await database.write(partial(_give_up, sealer))
    if changed:
        await database.write(note_removed)
    await scrub_removed(database)  # also where a killed process changed everything and did not come to this
    await database.write(partial(_note, value=sealer.fingerprint))
    if changed:
        _log.warning("texts that an earlier version kept in clear are sealed now, or emptied", values=changed)
    return changed


async def _sweep(
    database: Database,
    column: sa.Column[Any],
    change: Callable[[Any, sa.Dialect], Any],
    which: sa.ColumnElement[bool],
) -> int:
    """Write a column anew, page by page in the order of its table's key, and return how many values changed."""
    table, keys = column.table, list(column.table.primary_key)
    kind = column.type.impl_instance if isinstance(column.type, sa.TypeDecorator) else column.type
    stored = sa.type_coerce(column, kind)
    query = sa.select(*keys, stored.label("stored")).where(which).order_by(*keys).limit(_AT_ONCE)

    def page(connection: Connection, last: Sequence[Any]) -> tuple[int, Sequence[Any]]:
        of_page = query.where(sa.tuple_(*keys) > sa.tuple_(*map(sa.literal, last))) if last else query
        rows, changed = connection.execute(of_page).all(), 0
        for row in rows:
            new = change(row, connection.dialect)
            if new is not _AS_IT_IS:
                # as it was read: another process may have emptied it since
                this = sa.and_(*(key == value for key, value in zip(keys, row, strict=False)), stored == row.stored)
                changed += connection.execute(sa.update(table).where(this).values({column: new})).rowcount
        return changed, tuple(rows[-1][:-1]) if len(rows) == _AT_ONCE else ()

    changed, last = await database.write(partial(page, last=()))
    while last:
        more, last = await database.write(partial(page, last=last))
        changed += more
    return changed


def _opened(column: sa.Column[Any], row: Row[Any], dialect: sa.Dialect) -> Any:
    """Return a value to be stored anew by its column, an empty one if it cannot be unsealed."""
    assert isinstance(column.type, SealedBytes | SealedText), "only such columns are looked at"
    try:
        return column.type.process_result_value(row.stored, dialect)
    except DataLoss:
        return None if column.nullable else _EMPTIED.get(column.name, b"")


def _covered(sealer: Sealer, row: Row[Any], _dialect: sa.Dialect) -> Any:
    """Return a checkpoint's data covered, _AS_IT_IS where it is."""
    with contextlib.suppress(NotPlainError):
        unpack(row.stored)
        return sealer.cover(bytes(row.stored), of=row.thread_id)
    return _AS_IT_IS


def _give_up(sealer: Sealer, connection: Connection) -> int:
    """Settle what waits for the other services without its text, and remove the answers that cannot be opened.

    Otherwise the one would be tried for ever, and whoever reads the other would only be told of an internal error.
    """
    waiting = sa.select(OUTBOX.c.outbox_id, OUTBOX.c.payload).where(OUTBOX.c.state == "waiting")
    lost = [row.outbox_id for row in connection.execute(waiting) if row.payload == _EMPTIED["payload"]]
    if lost:
        refused = sa.update(OUTBOX).where(OUTBOX.c.outbox_id.in_(lost))
        connection.execute(refused.values(state="refused", refusal="KEY_LOST", settled_us=OUTBOX.c.created_us))
    done = len(lost)
    for key, answers in (
        (FORM_SESSIONS.c.session_id, FORM_SESSIONS.c.state),
        (FORM_SUBMISSIONS.c.submission_id, FORM_SUBMISSIONS.c.answers),
    ):
        for row in connection.execute(sa.select(key.label("id"), answers.label("sealed")).where(answers.is_not(None))):
            try:
                sealer.uncover(bytes(row.sealed), of=row.id)
            except SealError:
                done += connection.execute(sa.delete(key.table).where(key == row.id)).rowcount
    return done


def _empty_outputs(connection: Connection) -> int:
    live = sa.select(RUNS.c.run_id).where(RUNS.c.run_id == TOOL_CALLS.c.run_id, RUNS.c.status.in_(ACTIVE))
    kept = sa.update(TOOL_CALLS).where(TOOL_CALLS.c.output.is_not(None), sa.not_(sa.exists(live)))
    return connection.execute(kept.values(output=None)).rowcount


def _note(connection: Connection, *, value: str) -> None:
    _SET_MARK.run(connection, [(_MARK, value)])
