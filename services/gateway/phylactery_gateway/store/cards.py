"""What a person has before them on a phone, as the messages that they were sent tell it.

The rules are those of phylactery_client.cards; here is the record, which the table of sent messages is. A card is a
message with the buttons of one approval. No word that was written before it could be read is for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa
from phylactery_client.cards import Before, Extent, Meant, ShownCall, ShownMessage
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Outgoing, option_id
from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.store import outbox as outgoing
from phylactery_gateway.tables import outbox, turns

_LAST_ROWS: Final = 60
_LAST_TURNS: Final = 100
_READING_US: Final = SECOND_US
"""Nobody answers what they have had before them for less than this. A channel's times are whole seconds besides."""


def before(connection: Connection, conversation_id: str, written_us: int, quotes: str = "") -> Before:
    """Return what a text is about: the message that it quotes, else what the person had before them."""
    of_it = (outbox.c.conversation_id == conversation_id, outbox.c.state == outgoing.State.SENT)
    query = sa.select(outbox).where(*of_it)
    if quotes:
        query = query.where(outbox.c.external_id == quotes)
    else:
        query = query.where(outbox.c.sent_us.between(1, written_us - _READING_US))
    rows = connection.execute(query.order_by(outbox.c.position.desc()).limit(1 if quotes else _LAST_ROWS)).all()
    shown = tuple(_shown(connection, row) for row in reversed(rows))
    answered = _answered(connection, conversation_id)
    # a button of a plan answers all of it, and its turn names the first
    plans = (one.calls for one in shown if one.calls and one.calls[0].approval_id in answered)
    answered |= {call.approval_id for calls in plans for call in calls}
    return Before(shown, answered, quoted=bool(quotes))


def pressed(connection: Connection, conversation_id: str, outbox_id: str, number: int) -> Mapping[str, Any]:
    """Return what an option of a message of a conversation does, sent or not.

    Nothing if there is no such option, or it says yes to what the message does not show.
    """
    query = sa.select(outbox).where(outbox.c.outbox_id == outbox_id, outbox.c.conversation_id == conversation_id)
    row = connection.execute(query).first()
    if row is None:
        return {}
    options = Outgoing.read(outgoing.read(connection, row)).options
    does = options[number].does if number < len(options) else {}
    refused = does.get("approve") and not all(call.takes(approve=True) for call in _shown(connection, row).calls)
    return {} if refused else does


def option_for(connection: Connection, meant: Meant | None, *, approve: bool) -> str:
    """Return the id of the option that answers a call, '' for none."""
    if meant is None:
        return ""
    query = sa.select(outbox).where(outbox.c.outbox_id == meant[0].key)
    options = Outgoing.read(outgoing.read(connection, connection.execute(query).one())).options
    place = next((at for at, one in enumerate(options) if one.does.get("approve") is approve), None)
    return "" if place is None else option_id(meant[0].key, place)


def option_by_sign(connection: Connection, conversation_id: str, on: str, sign: str) -> str | None:
    """Return the option that an emoji on a message chooses, '' if it chooses none, None if the message asks nothing.

    An emoji that was taken away says nothing.
    """
    about = before(connection, conversation_id, 0, on) if on and sign else None
    newest = about.newest if about is not None else None
    if about is None or newest is None or not newest.calls:
        return None
    answer = about.by_sign(sign)
    return "" if answer is None else option_for(connection, (newest, newest.calls[0]), approve=answer)


def _answered(connection: Connection, conversation_id: str) -> frozenset[str]:
    given = (
        sa.select(turns.c.approval_id)
        .where(turns.c.conversation_id == conversation_id, turns.c.approval_id != "")
        .order_by(turns.c.create_us.desc())
        .limit(_LAST_TURNS)
    )
    return frozenset(connection.execute(given).scalars())


def _shown(connection: Connection, row: sa.Row[Any]) -> ShownMessage:
    """Return a message with the call that its buttons answer, in as much as it was sent."""
    body, source = outgoing.read(connection, row), row.source.rpartition(":")[0]
    message = Outgoing.read(body)
    asks = next((one.does for one in message.options if "approval" in one.does), None)
    if asks is None:
        numbered = body.get(outgoing.NUMBERED, message.is_numbered)
        return ShownMessage(row.outbox_id, row.sent_us, source, choices=len(message.options) if numbered else 0)
    own = any(one.does.get("approve") for one in message.options)
    extent = Extent(asks.get("extent", Extent.WHOLE))
    sent = extent if _was_sent(connection, row, source) else Extent.HIDDEN
    high = asks.get("high_risk") is not False  # one from before its risk was noted may be
    calls = tuple(
        ShownCall(str(name), str(args_hash), sent, own, high, bool(asks.get("form")))
        for name, args_hash in ((asks["approval"], asks["args_hash"]), *asks.get("also", ()))
    )
    return ShownMessage(row.outbox_id, row.sent_us, source, calls)


def _was_sent(connection: Connection, row: sa.Row[Any], source: str) -> bool:
    """Return True if all earlier parts of a message were sent, too."""
    missing = sa.select(outbox.c.outbox_id).where(
        outbox.c.conversation_id == row.conversation_id,
        outbox.c.source.startswith(f"{source}:", autoescape=True),
        outbox.c.position < row.position,
        outbox.c.state != outgoing.State.SENT,
    )
    return connection.execute(missing.limit(1)).first() is None
