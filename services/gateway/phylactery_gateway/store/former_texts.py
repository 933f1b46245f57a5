"""Texts of a gateway that stored them in clear, or of a lost key: sealed or emptied when the gateway starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.telemetry.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Delivery
from phylactery_gateway.store import outbox as outgoing
from phylactery_gateway.store import texts
from phylactery_gateway.store.backlog import place_of
from phylactery_gateway.store.inbox import MessageState
from phylactery_gateway.store.outbox import State
from phylactery_gateway.store.sealing import SEALED, forget_key, sealer_of
from phylactery_gateway.store.turns import TurnState
from phylactery_gateway.tables import NEVER_US, backlog, conversations, media, messages, outbox, turns

_PAGE: Final = 500
_OPEN: Final = (State.PENDING, State.SENDING, State.UNCERTAIN, State.WINDOW)

_log = get_logger("sealing")


def seal_former(database: Database) -> None:
    """Seal every text that is still needed, and empty the others, a page in each transaction; say so in the log.

    Each row tells whether it is sealed, so a start that was interrupted goes on, and several may start at once.
    """
    done = {}
    for work in (_messages, _media, _turns, _outbox, _backlog):
        count = last = database.write_sync(_noted(work))
        while last:
            last = database.write_sync(_noted(work))
            count += last
        done[work.__name__.removeprefix("_")] = count
    if any(done.values()):
        _log.warning("texts that were stored in clear are sealed or emptied now", **done)


def forget_sealed(database: Database) -> int:
    """Empty every sealed text, for a key that is lost; return how many messages are given up because of it.

    The person's messages that the agent does not have, and what was to be sent, are lost.
    """

    def work(connection: Connection) -> int:
        lost = 0
        waits = (messages.c.state == MessageState.WAITING,)
        lost += connection.execute(sa.select(sa.func.count()).select_from(messages).where(*waits)).scalar_one()
        texts.settle_messages(connection, waits, state=MessageState.NOTED)
        is_open = turns.c.state == TurnState.OPEN
        lost += connection.execute(sa.update(turns).where(is_open).values(state=TurnState.REFUSED, body=b"")).rowcount
        unsent = sa.update(outbox).where(outbox.c.state.in_(_OPEN))
        lost += connection.execute(unsent.values(state=State.FAILED, error_code="KEY_LOST")).rowcount
        connection.execute(sa.update(outbox).values(body=b"", emptied=True))
        lost += connection.execute(sa.delete(backlog)).rowcount
        connection.execute(sa.update(conversations).values(turn_owner="", turn_until_us=0, work_us=NEVER_US))
        forget_key(connection)
        note_removed(connection)
        return lost

    return database.write_sync(work)


def _noted(work: Callable[[Connection], int]) -> Callable[[Connection], int]:
    def noted(connection: Connection) -> int:
        count = work(connection)
        if count:
            note_removed(connection)  # copies of it are in free pages of the file
        return count

    return noted


def _in_clear(column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    return (column != b"") & (sa.func.substr(column, 1, len(SEALED)) != SEALED)


def _messages(connection: Connection) -> int:
    settled = (messages.c.state != MessageState.WAITING, (messages.c.text != b"") | (messages.c.passed_on != b""))
    emptied = connection.execute(sa.select(messages.c.message_id).where(*settled).limit(_PAGE)).scalars().all()
    if emptied:
        of_them = messages.c.message_id.in_(emptied)
        connection.execute(sa.update(messages).where(of_them).values(text=b"", passed_on=b""))
    clear = _in_clear(messages.c.text) | _in_clear(messages.c.passed_on)
    rows = connection.execute(sa.select(messages).where(clear).limit(_PAGE).with_for_update()).all()
    for row in rows:
        values = {
            name: sealer_of(connection).seal(bytes(one), texts.message_place(name, row.message_id))
            for name, one in (("text", row.text), ("passed_on", row.passed_on))
            if one is not None and not bytes(one).startswith(SEALED)
        }
        connection.execute(sa.update(messages).where(messages.c.message_id == row.message_id).values(**values))
    return len(emptied) + len(rows)


def _media(connection: Connection) -> int:
    waits = sa.select(messages.c.message_id).where(messages.c.state == MessageState.WAITING)
    gone = sa.select(media.c.media_id).where(media.c.message_id.not_in(waits)).limit(_PAGE)
    found = connection.execute(gone).scalars().all()
    if found:
        connection.execute(sa.delete(media).where(media.c.media_id.in_(found)))
    clear = media.c.name.not_like(f"{texts.SEALED_NAME}%") & (media.c.name != "")
    rows = connection.execute(sa.select(media).where(clear).limit(_PAGE).with_for_update()).all()
    for row in rows:
        sealed = texts.seal_name(connection, row.media_id, row.name)
        connection.execute(sa.update(media).where(media.c.media_id == row.media_id).values(name=sealed))
    return len(found) + len(rows)


def _turns(connection: Connection) -> int:
    clear = _in_clear(turns.c.body) | ((turns.c.state != TurnState.OPEN) & (turns.c.body != b""))
    rows = connection.execute(sa.select(turns).where(clear).limit(_PAGE).with_for_update()).all()
    for row in rows:
        body = _read(row.body)
        values: dict[str, Any] = {"approval_id": body.get("approval_id", row.approval_id), "body": b""}
        if row.state == TurnState.OPEN and body:
            values["body"] = texts.seal_body(connection, "turns", row.turn_id, body)
        connection.execute(sa.update(turns).where(turns.c.turn_id == row.turn_id).values(**values))
    return len(rows)


def _outbox(connection: Connection) -> int:
    clear = _in_clear(outbox.c.body)
    rows = connection.execute(sa.select(outbox).where(clear).limit(_PAGE).with_for_update()).all()
    for row in rows:
        of_it = outbox.c.outbox_id == row.outbox_id
        sealed = texts.seal_body(connection, "outbox", row.outbox_id, _read(row.body))
        connection.execute(sa.update(outbox).where(of_it).values(body=sealed))
        delivered = row.state == State.SENT and row.delivery >= Delivery.DELIVERED
        if delivered or row.state in (State.FAILED, State.SILENCED):
            now = connection.execute(sa.select(outbox).where(of_it)).one()
            connection.execute(sa.update(outbox).where(of_it).values(outgoing.emptied(connection, now)))
    return len(rows)


def _backlog(connection: Connection) -> int:
    query = sa.select(backlog).where(_in_clear(backlog.c.body)).limit(_PAGE).with_for_update()
    rows = connection.execute(query).all()
    for row in rows:
        sealed = sealer_of(connection).seal(bytes(row.body), place_of(row.webhook_id))
        connection.execute(sa.update(backlog).where(backlog.c.webhook_id == row.webhook_id).values(body=sealed))
    return len(rows)


def _read(body: bytes) -> dict[str, Any]:
    """Return a body that was stored in clear, {} if it is none."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
