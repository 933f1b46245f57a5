"""Messages to send: added once for each reason, sent in the order of their conversation.

A text is sent at least once. A file is sent at most once: that its sending begins is noted before, and where nobody
knows how it ended, the person is told so instead.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Delivery, File, Outgoing, Status
from phylactery_gateway.channels.port import SECOND_US, Action, Address, Channel, SendError
from phylactery_gateway.i18n.texts import say
from phylactery_gateway.store import people, texts
from phylactery_gateway.store.accounts import account_burst, account_of, hold_templates, pause, set_rate, wait_us
from phylactery_gateway.tables import NEVER_US, conversations, outbox

SETTLE_US: Final = 20 * SECOND_US
"""How long the channel's own word is waited for after a send that nobody knows the end of."""
_LONGEST_PAUSE_US: Final = 3_600 * SECOND_US
_PAGE: Final = 500
MAX_TRIES: Final = 10
HUMAN: Final = "human:"
"""How the source of a message of a person of the business begins. Nothing silences one."""
_TEMPLATE: Final = "t:"
FILE_CHANGED: Final = "FILE_CHANGED"
NOT_TAKEN: Final = "FILE_NOT_TAKEN"
_FILE_NOTICES: Final[Mapping[str, str]] = {FILE_CHANGED: "file_changed", NOT_TAKEN: "file_not_taken"}
_REFERENCE, _BEGUN = "reference", "begun"
"""In the body of a file: what the channel calls it once it is uploaded, and whether its sending began."""

NUMBERED: Final = "numbered"
"""In the body of a message that was emptied: whether its options could be chosen by their number."""

_log = get_logger("outbox")


class State(StrEnum):
    """Where a message to send is."""

    PENDING = "pending"
    SENDING = "sending"
    UNCERTAIN = "uncertain"
    WINDOW = "window"
    """It waits until the person writes."""
    SENT = "sent"
    FAILED = "failed"
    SILENCED = "silenced"
    """Somebody of the business has the conversation."""
    IN_DOUBT = "in_doubt"
    """A file of which nobody knows whether it was sent. It is not sent again."""


_OPEN: Final = (State.PENDING, State.SENDING, State.UNCERTAIN, State.WINDOW)
_DUE: Final = (State.PENDING, State.SENDING, State.UNCERTAIN)
_ON_ITS_WAY: Final = (State.SENDING, State.UNCERTAIN, State.SENT, State.IN_DOUBT)
_SILENCED: Final[Mapping[str, Any]] = {"state": State.SILENCED, "body": b"", "emptied": True}
_UNTOLD_US: Final = 24 * 3_600 * SECOND_US
"""So long after it was sent, a message of which the channel said no more is not sent again."""


class Parcel(NamedTuple):
    """A message that this process is to send now."""

    outbox_id: str
    conversation_id: str
    channel: str
    address: Address
    language: str
    message: Outgoing
    tries: int
    template: bool
    """Whether the template goes instead, because the window is closed."""
    subject: str
    """Whom the agent serves in the conversation, for what is fetched there."""
    reference: str = ""
    """What the channel calls a file that is uploaded already."""
    may_fail: bool = True
    """Whether the channel may tell later that it could not be delivered."""


def add(
    connection: Connection,
    conversation_id: str,
    source: str,
    messages: Sequence[Outgoing],
    now_us: int,
    *,
    state: State = State.PENDING,
) -> int:
    """Add messages for a reason, once: the same reason again adds nothing. Return how many were added."""
    added = 0
    for number, message in enumerate(messages):
        position = connection.execute(
            sa.update(conversations)
            .where(conversations.c.conversation_id == conversation_id)
            .values(last_position=conversations.c.last_position + 1)
            .returning(conversations.c.last_position)
        ).scalar_one_or_none()
        if position is None:  # the person was erased meanwhile
            break
        outbox_id = new_id("out")
        silenced = state is State.SILENCED
        made = insert(outbox).values(
            outbox_id=outbox_id,
            conversation_id=conversation_id,
            position=position,
            source=f"{source}:{number}",
            body=b"" if silenced else texts.seal_body(connection, "outbox", outbox_id, message.stored()),
            emptied=silenced,
            state=state,
            tries=0,
            next_us=now_us,
            external_id="",
            delivery=int(Delivery.UNKNOWN),
            error_code="",
            create_us=now_us,
            sent_us=0,
        )
        row = connection.execute(made.on_conflict_do_nothing().returning(outbox.c.outbox_id)).first()
        added += row is not None
    return added


def open_window(connection: Connection, conversation_id: str, now_us: int) -> None:
    """Let go what waited for the person to write."""
    of_it = (outbox.c.conversation_id == conversation_id, outbox.c.state == State.WINDOW)
    connection.execute(sa.update(outbox).where(*of_it).values(state=State.PENDING, next_us=now_us))


def silence(connection: Connection, conversation_id: str) -> None:
    """Give up what is still to be sent in a conversation, except what people wrote and what may be on its way."""
    of_it = (
        outbox.c.conversation_id == conversation_id,
        outbox.c.state.in_((State.PENDING, State.WINDOW)),
        ~outbox.c.source.startswith(HUMAN),
    )
    connection.execute(sa.update(outbox).where(*of_it).values(_SILENCED))


def read(connection: Connection, row: sa.Row[Any]) -> dict[str, Any]:
    """Return the body of a message; of one that was emptied, or cannot be opened, there is no text in it."""
    return texts.open_body(connection, "outbox", row.outbox_id, row.body) or {"text": "", "options": []}


def _body(connection: Connection, row: sa.Row[Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    return {"body": texts.seal_body(connection, "outbox", row.outbox_id, changed)}


def emptied(connection: Connection, row: sa.Row[Any]) -> dict[str, Any]:
    """Return the columns of a message whose text is not needed any more.

    What its buttons do stays, because they may be pressed, and whether its numbers could be typed.
    """
    body = read(connection, row)
    options = [{"title": "", "does": one["does"]} for one in body["options"]]
    numbered = Outgoing.read(body).is_numbered
    left = _body(connection, row, {"text": "", "options": options, NUMBERED: numbered}) if options else {"body": b""}
    return {**left, "emptied": True}


def template_id(outbox_id: str) -> str:
    """Return the id under which the channel tells what became of the template that was sent instead of a message."""
    return f"{_TEMPLATE}{outbox_id}"


def apply_status(connection: Connection, channel: Channel, status: Status, now_us: int) -> None:
    """Apply what a channel says of a message. A delivery only grows; a message once delivered has not failed."""
    template = status.outbox_id.startswith(_TEMPLATE)
    found = _of_status(connection, status)
    if found is None:
        return
    conversation, row = found
    if template:
        if row.state in (State.SENDING, State.UNCERTAIN):  # by a process that did not live to say so
            _change(connection, conversation, template_us=now_us)
        if status.error_code:  # the message it was sent for waits as before
            _consequences(connection, conversation, channel.error_of(status.error_code), now_us)
        return
    if row.state != State.SENT and row.external_id == status.external_id:
        return  # this try is known to have failed
    if status.error_code:
        known = row.external_id in ("", status.external_id) and row.state in _ON_ITS_WAY
        if row.delivery < Delivery.DELIVERED and known:
            error = channel.error_of(status.error_code)
            _log.warning("message was not delivered", outbox_id=row.outbox_id, error_code=error.code)
            values = _after(connection, conversation, row, error, now_us) | {"external_id": status.external_id}
            connection.execute(sa.update(outbox).where(outbox.c.outbox_id == row.outbox_id).values(**values))
        return
    values = {"delivery": max(row.delivery, int(status.delivery)), "external_id": status.external_id}
    if row.state in (*_DUE, State.IN_DOUBT) and row.tries:  # it was sent by a process that did not live to say so
        values |= {"state": State.SENT, "sent_us": now_us}
    if status.delivery >= Delivery.DELIVERED and values.get("state", row.state) == State.SENT and not row.emptied:
        values |= emptied(connection, row)
    connection.execute(sa.update(outbox).where(outbox.c.outbox_id == row.outbox_id).values(**values))


def _of_status(connection: Connection, status: Status) -> tuple[sa.Row[Any], sa.Row[Any]] | None:
    """Return the conversation and the message a status is about: by our own id, known before the channel's."""
    own = status.outbox_id.removeprefix(_TEMPLATE)
    for column, value in ((outbox.c.outbox_id, own), (outbox.c.external_id, status.external_id)):
        if value:
            query = sa.select(outbox.c.outbox_id, outbox.c.conversation_id).where(column == value)
            found = connection.execute(query).first()
            if found is not None:
                return _locked(connection, found.conversation_id, found.outbox_id)
    return None


def _locked(connection: Connection, conversation_id: str, outbox_id: str) -> tuple[sa.Row[Any], sa.Row[Any]] | None:
    """Return a conversation and its message. Locks are taken in this order everywhere, an account's after them."""
    of_it = conversations.c.conversation_id == conversation_id
    conversation = connection.execute(sa.select(conversations).where(of_it).with_for_update()).first()
    query = sa.select(outbox).where(outbox.c.outbox_id == outbox_id).with_for_update()
    row = connection.execute(query).first()
    return None if conversation is None or row is None else (conversation, row)


def _change(connection: Connection, conversation: sa.Row[Any], **values: Any) -> None:
    of_it = conversations.c.conversation_id == conversation.conversation_id
    connection.execute(sa.update(conversations).where(of_it).values(**values))


def _consequences(connection: Connection, conversation: sa.Row[Any], error: SendError, now_us: int) -> None:
    """Store what an error means for more than its message: for the person, or for the whole account."""
    until_us = now_us + int(max(error.retry_after, 1.0) * SECOND_US)
    match error.action:
        case Action.OPTED_OUT:
            _change(connection, conversation, opted_out=True)
        case Action.PAUSE:
            pause(connection, conversation.channel, conversation.account, error.code, until_us)
        case Action.NO_TEMPLATES:
            hold_templates(connection, conversation.channel, conversation.account, until_us)


def _after(
    connection: Connection, conversation: sa.Row[Any], row: sa.Row[Any], error: SendError, now_us: int
) -> dict[str, Any]:
    """Return the columns of a message after an error, which a call or a status told, and store its consequences."""
    values = _next(connection, conversation, row, error, now_us)
    if row.emptied:  # the channel tells so late that it is not sent again
        return values | {"state": State.FAILED}
    values |= _of_file(connection, row, error, values["state"], now_us)
    return values | (emptied(connection, row) if values["state"] is State.FAILED else {})


def _next(
    connection: Connection, conversation: sa.Row[Any], row: sa.Row[Any], error: SendError, now_us: int
) -> dict[str, Any]:
    """Return what is done next about a message, and store what its error means besides."""
    _consequences(connection, conversation, error, now_us)
    common: dict[str, Any] = {"error_code": error.code[:64]}
    wait_for_us = max(int(error.retry_after * SECOND_US), min(SECOND_US << min(row.tries, 20), _LONGEST_PAUSE_US))
    match error.action:
        case Action.WINDOW:  # the channel knows better than our clock, unless the person has written since
            if conversation.last_inbound_us <= (row.sent_us or now_us):
                _change(connection, conversation, last_inbound_us=0)
            return common | {"state": State.PENDING, "next_us": now_us}
        case Action.FAIL | Action.OPTED_OUT | Action.NO_TEMPLATES:
            return common | {"state": State.FAILED}
        case _ if row.tries >= MAX_TRIES and error.action is not Action.PAUSE:
            return common | {"state": State.FAILED}
        case Action.UNCERTAIN:
            return common | {"state": State.UNCERTAIN, "next_us": now_us + max(wait_for_us, SETTLE_US)}
        case Action.WITHOUT_OPTIONS:
            return common | _without_options(connection, row, now_us + wait_for_us)
        case _:
            return common | {"state": State.PENDING, "next_us": now_us + wait_for_us}


def _of_file(connection: Connection, row: sa.Row[Any], error: SendError, state: State, now_us: int) -> dict[str, Any]:
    """Return what an error changes besides if the message is a file, and tell the person that it is not sent."""
    body = read(connection, row)
    file = Outgoing.read(body).file
    if file is None:
        return {}
    if error.action is Action.UNCERTAIN:  # however often it was tried before: this time it may have been sent
        return {"state": State.UNCERTAIN, "next_us": now_us + SETTLE_US}
    if state is State.FAILED:
        _tell(connection, row, _FILE_NOTICES.get(error.code, "file_not_sent"), file, now_us)
        return {}
    return _body(connection, row, body | {_BEGUN: False})


def _tell(connection: Connection, row: sa.Row[Any], key: str, file: File, now_us: int) -> None:
    """Tell the person what became of a file, once."""
    of_it = conversations.c.conversation_id == row.conversation_id
    language = connection.execute(sa.select(conversations.c.language).where(of_it)).scalar() or ""
    notice = Outgoing(say(key, language, name=file.name))
    add(connection, row.conversation_id, f"file:{row.outbox_id}:{key}", [notice], now_us)


def _after_template(
    connection: Connection, conversation: sa.Row[Any], row: sa.Row[Any], error: SendError, now_us: int
) -> dict[str, Any]:
    """Return the columns of a message whose template was not sent: it waits, whatever is wrong with the template."""
    if error.action in (Action.RETRY, Action.UNCERTAIN, Action.SLOW_DOWN, Action.PAUSE):
        values = _next(connection, conversation, row, error, now_us)
        if values["state"] is not State.FAILED:
            return values
    else:
        _consequences(connection, conversation, error, now_us)
    return {"state": State.WINDOW, "next_us": NEVER_US, "error_code": error.code[:64]}


def _without_options(connection: Connection, row: sa.Row[Any], next_us: int) -> dict[str, Any]:
    """Return the columns of a message that goes on as plain text; one that was plain text already has failed."""
    body = read(connection, row)
    if body.get("plain") or not body["options"]:
        return {"state": State.FAILED}
    text = Outgoing.read(body).with_lines().text
    return {
        "state": State.PENDING,
        "next_us": next_us,
        **_body(connection, row, body | {"plain": True, "text": text}),
    }


class Outbox:
    """The store of what is to be sent."""

    def __init__(self, database: Database, lease_us: int) -> None:
        """Take a process for dead that needs longer than ``lease_us`` for one message, which is then sent again."""
        self._database, self._lease_us = database, lease_us

    async def due(self, now_us: int, most: int, channels: Collection[str]) -> Sequence[str]:
        """Return the ids of messages to send now: of each conversation at most the first that is not sent yet.

        Those of channels that are not configured wait, and keep none of the others from being sent.
        """
        earlier = outbox.alias("earlier")
        blocked = sa.exists().where(
            earlier.c.conversation_id == outbox.c.conversation_id,
            earlier.c.position < outbox.c.position,
            earlier.c.state.in_(_OPEN),
        )
        query = (
            sa.select(outbox.c.outbox_id)
            .join(conversations, conversations.c.conversation_id == outbox.c.conversation_id)
            .where(
                outbox.c.state.in_(_DUE),
                outbox.c.next_us <= now_us,
                conversations.c.channel.in_(list(channels)),
                ~blocked,
            )
            .order_by(outbox.c.next_us)
            .limit(most)
        )
        return await self._database.read(lambda connection: connection.execute(query).scalars().all())

    async def claim(self, outbox_id: str, channels: Mapping[str, Channel], now_us: int) -> Parcel | None:
        """Take a message to send it, None if it is not to be sent now: another process has it, or a rate is used up."""
        return await self._database.write(
            lambda connection: _claim(connection, outbox_id, channels, now_us, self._lease_us)
        )

    async def begin(self, parcel: Parcel, reference: str, now_us: int) -> bool:
        """Note that the sending of a file begins; return False if this process may not send it any more.

        From now on it counts as sent unless the channel says that it was not.
        """

        def work(connection: Connection) -> bool:
            found = _locked(connection, parcel.conversation_id, parcel.outbox_id)
            if found is None:
                return False
            conversation, row = found
            if row.state != State.SENDING or row.tries != parcel.tries:  # another process took this one for dead
                return False
            body = read(connection, row) | {_REFERENCE: reference, _BEGUN: True}
            values: Mapping[str, Any] = _body(connection, row, body) | {"next_us": now_us + self._lease_us}
            if silent := conversation.human_until_us > now_us or conversation.claimed:
                values = _SILENCED
            connection.execute(sa.update(outbox).where(outbox.c.outbox_id == parcel.outbox_id).values(**values))
            return not silent

        return await self._database.write(work)

    async def sent(self, parcel: Parcel, external_id: str, now_us: int) -> None:
        """Record that a message was sent. After a template the message itself waits for the person."""

        def work(connection: Connection) -> None:
            found = _locked(connection, parcel.conversation_id, parcel.outbox_id)
            if found is None:
                return
            conversation, row = found
            where = outbox.c.outbox_id == parcel.outbox_id
            if parcel.template:
                _change(connection, conversation, template_us=now_us)
                if row.state in _DUE:
                    waits = {"state": State.WINDOW, "next_us": NEVER_US, "tries": 0}
                    connection.execute(sa.update(outbox).where(where).values(**waits))
                return
            failed_since = row.state != State.SENT and row.external_id == external_id != ""
            if row.state in (*_DUE, State.SENT, State.IN_DOUBT) and not failed_since:
                values = {"state": State.SENT, "external_id": external_id, "sent_us": now_us}
                if not parcel.may_fail and not row.emptied:
                    values |= emptied(connection, row)
                connection.execute(sa.update(outbox).where(where).values(**values))

        await self._database.write(work)

    async def empty_untold(self, now_us: int) -> int:
        """Empty messages that were sent a day ago and of which the channel never told more; return how many."""
        before_us = now_us - _UNTOLD_US
        old = ((outbox.c.state == State.SENT) & (outbox.c.sent_us < before_us)) | (
            (outbox.c.state == State.IN_DOUBT) & (outbox.c.next_us < before_us)
        )
        query = sa.select(outbox).where(old, ~outbox.c.emptied).limit(_PAGE).with_for_update()

        def work(connection: Connection) -> int:
            rows = connection.execute(query).all()
            for row in rows:
                values = emptied(connection, row)
                connection.execute(sa.update(outbox).where(outbox.c.outbox_id == row.outbox_id).values(values))
            return len(rows)

        count = last = await self._database.write(work)
        while last == _PAGE:
            last = await self._database.write(work)
            count += last
        return count

    async def failed(self, parcel: Parcel, error: SendError, now_us: int) -> None:
        """Record that a message was not sent, or that nobody knows, and what follows from it."""

        def work(connection: Connection) -> None:
            found = _locked(connection, parcel.conversation_id, parcel.outbox_id)
            if found is None or found[1].state not in _DUE:
                return
            after = _after_template if parcel.template else _after
            values = after(connection, *found, error, now_us)
            of_message = outbox.c.outbox_id == parcel.outbox_id
            connection.execute(sa.update(outbox).where(of_message).values(**values))

        await self._database.write(work)


def _claim(
    connection: Connection, outbox_id: str, channels: Mapping[str, Channel], now_us: int, lease_us: int
) -> Parcel | None:
    of_message = outbox.c.outbox_id == outbox_id
    conversation_id = connection.execute(sa.select(outbox.c.conversation_id).where(of_message)).scalar()
    locked = _locked(connection, conversation_id, outbox_id) if conversation_id else None
    if locked is None:
        return None
    row, found = locked
    if found.state not in _DUE or found.next_us > now_us:
        return None
    channel = channels.get(row.channel)
    if channel is None:
        return None
    account = account_of(connection, row.channel, row.account)
    stored = read(connection, found)
    message = Outgoing.read(stored)
    if message.file is not None and stored.get(_BEGUN) and found.state == State.UNCERTAIN:
        _tell(connection, found, "file_in_doubt", message.file, now_us)
        connection.execute(sa.update(outbox).where(of_message).values(state=State.IN_DOUBT))
        return None
    unseen = message.file is not None and not stored.get(_BEGUN)
    postponed = _postponed(found, row, account, channel, unseen=unseen, now_us=now_us, lease_us=lease_us)
    if not message.text:  # it cannot be opened
        postponed = {"state": State.FAILED, "error_code": "UNREADABLE"}
    if postponed:
        connection.execute(sa.update(outbox).where(of_message).values(**postponed))
        return None
    limits = channel.limits
    set_rate(connection, row.channel, row.account, max(account.rate_us, now_us) + limits.account_us)
    pair_us = max(row.pair_us, now_us) + limits.pair_us
    _change(connection, row, pair_us=pair_us)
    fresh = {"external_id": "", "sent_us": 0}
    taken = {**fresh, "state": State.SENDING, "tries": found.tries + 1, "next_us": now_us + lease_us}
    connection.execute(sa.update(outbox).where(of_message).values(**taken))
    return Parcel(
        outbox_id,
        row.conversation_id,
        row.channel,
        Address(row.account, people.identities_of(connection, row.user_id)),
        row.language,
        Outgoing(message.text) if stored.get("plain") else message,
        found.tries + 1,
        _closed(row, channel, now_us),
        people.subject_of(row.channel, row.user_id),
        stored.get(_REFERENCE, ""),
        limits.tells_delivery,
    )


def _closed(row: sa.Row[Any], channel: Channel, now_us: int) -> bool:
    """Return True if the person may not be written to freely now."""
    window_us = channel.limits.window_us
    return window_us is not None and now_us - row.last_inbound_us > window_us


def _postponed(
    found: sa.Row[Any],
    row: sa.Row[Any],
    account: sa.Row[Any],
    channel: Channel,
    *,
    unseen: bool,
    now_us: int,
    lease_us: int,
) -> dict[str, Any]:
    """Return the columns of a message that is not sent now, nothing if it is.

    ``unseen`` is true for a file whose sending never began.
    """
    limits = channel.limits
    if found.state == State.SENDING and not unseen:  # its process died, perhaps after it was sent: a status may say so
        return {"state": State.UNCERTAIN, "next_us": now_us + lease_us // 2}
    if (row.human_until_us > now_us or row.claimed) and not found.source.startswith(HUMAN):
        return dict(_SILENCED)
    asked = limits.window_us is not None and now_us - row.template_us < limits.window_us
    if _closed(row, channel, now_us) and (asked or row.opted_out or account.templates_from_us > now_us):
        return {"state": State.WINDOW, "next_us": NEVER_US}
    wait = max(
        account.paused_until_us - now_us,
        wait_us(row.pair_us, limits.pair_us, limits.pair_burst, now_us),
        wait_us(account.rate_us, limits.account_us, account_burst(limits.account_us), now_us),
    )
    return {"next_us": now_us + wait} if wait > 0 else {}
