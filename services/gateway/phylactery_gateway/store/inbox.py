"""Elements of webhooks: each is applied once, with everything that follows from it, in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id
from phylactery_understanding.replies.stops import read_stop
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import (
    FETCHED,
    Echoed,
    Element,
    Kept,
    Kind,
    Outgoing,
    Received,
    Renamed,
    Sender,
    Status,
)
from phylactery_gateway.channels.port import SECOND_US, Channel
from phylactery_gateway.i18n.texts import say
from phylactery_gateway.store import outbox, people, texts
from phylactery_gateway.store.accounts import count_inbound
from phylactery_gateway.store.cards import option_by_sign
from phylactery_gateway.tables import conversations, inbox, messages

STALE_US: Final = 8 * 24 * 3_600 * SECOND_US
"""A message older than this is not served: Meta tries for seven days, so it is a replay. Rows are kept longer."""
AT_ONCE: Final = 50
"""So many elements are stored while a channel waits for its acknowledgement; of more, the webhook itself is."""
_LONGEST_WAITS: Final = 3
"""A person who goes on writing is answered after so many debounce times at the latest."""

_log = get_logger("inbox")


class MessageState(StrEnum):
    """Where a received message is."""

    WAITING = "waiting"
    GIVEN = "given"
    """It is part of a turn."""
    WITHDRAWN = "withdrawn"
    """The person deleted it before anybody read it."""
    HUMAN = "human"
    """A person of the business has the conversation, so the agent does not get it."""
    NOTED = "noted"
    """The gateway itself answered it, or there was nothing to answer."""


@dataclass(frozen=True, slots=True)
class InboxRules:
    """How received messages are treated."""

    debounce_us: int
    human_us: int
    """How long the agent is silent after somebody of the business answered by hand."""
    language: str
    """The language of what the gateway itself says, where the channel does not tell the person's."""


class Inbox:
    """The store of what comes in."""

    def __init__(self, database: Database, rules: InboxRules) -> None:
        self._database, self._rules = database, rules

    async def receive(self, channel: Channel, elements: Sequence[Element], now_us: int, *, counted: bool = True) -> int:
        """Store elements, each whole or not at all, and return how many were new, once they are durable.

        Unless they are ``counted``, they were received over a longer time, and hold up nothing that is sent now.
        Of an element that cannot be applied only that it came is noted. Raise Unavailable or StoreFull if the database
        failed for any: the channel then delivers the webhook again, and those that were stored change nothing again.
        """
        works = [self._work(channel, element, now_us, counted=counted) for element in elements]
        results = await self._database.write_all(works)
        new = 0
        for element, result in zip(elements, results, strict=True):
            if isinstance(result, STORE_FAILED):
                raise result
            if isinstance(result, BaseException):
                _log.error("element could not be applied; it is lost", error=type(result).__name__)
                kept = Element(element.account, element.element_id, Kept("not_applied"))
                new += await self._database.write(self._work(channel, kept, now_us, counted=counted))
            else:
                new += result
        return new

    def _work(self, channel: Channel, element: Element, now_us: int, *, counted: bool) -> Callable[[Connection], int]:
        def work(connection: Connection) -> int:
            if not _add(connection, channel.name, element, now_us):
                return 0
            self._apply(connection, channel, element, now_us)
            if counted and isinstance(element.content, Received):
                count_inbound(connection, channel, element.account, now_us)  # last: others wait for its lock
            return 1

        return work

    def _apply(self, connection: Connection, channel: Channel, element: Element, now_us: int) -> None:
        match element.content:
            case Received() as received:
                received = replace(received, sent_us=received.sent_us or now_us)
                if received.sent_us > now_us - STALE_US:
                    take = self._reacted if received.kind is Kind.REACTION else self._received
                    take(connection, channel, element.account, received, now_us)
            case Status() as status:
                outbox.apply_status(connection, channel, status, now_us)
            case Renamed() as renamed:
                people.rename(connection, channel.name, renamed, now_us)
            case Echoed(receiver=receiver):
                self._echoed(connection, channel, element.account, receiver, now_us)
            case Kept():
                pass

    def _received(
        self, connection: Connection, channel: Channel, account: str, received: Received, now_us: int, *, on: str = ""
    ) -> None:
        """Take a message; ``on`` is the one that an emoji which chose something was put on."""
        user_id = people.user_of(connection, channel.name, received.sender, now_us)
        people.note_seen(connection, user_id, now_us)
        language = received.sender.language or self._rules.language
        row = people.conversation_of(connection, channel.name, user_id, account, language)
        human_until_us = max(
            row.human_until_us, people.echoed_until(connection, channel.name, account, received.sender.identities)
        )
        outbox.open_window(connection, row.conversation_id, now_us)
        state, text = MessageState.WAITING, received.text
        if received.kind in (Kind.EDIT, Kind.REVOKE):
            if received.kind is Kind.REVOKE:  # it may overtake what it takes back, which then is never served
                taken = Element(account, received.refers_to, Kept("taken_back"))
                _add(connection, channel.name, taken, now_us)
            if _amend(connection, row.conversation_id, received):
                return
            state = MessageState.NOTED if received.kind is Kind.REVOKE else state
            text = say("correction", row.language, text=text) if received.kind is Kind.EDIT and text else text
        notice = _NOTICES.get(received.kind)
        file = received.media
        if file is not None and file.kind in FETCHED:
            notice = None
        if (notice or file is not None) and row.claimed:  # the agent keeps it for the person who has the conversation
            notice, text = None, f"{say(_named(received), row.language)} {text}".strip()
            file = None
        unread = notice and not (received.kind is Kind.MEDIA and (text or received.passed_on))
        if unread or _tapped(connection, row.conversation_id, received):
            state = MessageState.NOTED
        silent = human_until_us > now_us
        if silent and state is MessageState.WAITING:
            state = MessageState.HUMAN
        position = row.last_position + 1
        message_id = new_id("msg")
        connection.execute(
            sa.insert(messages).values(
                message_id=message_id,
                conversation_id=row.conversation_id,
                position=position,
                external_id=received.external_id,
                kind=received.kind,
                text=b"",
                passed_on=b"",
                option=received.option,
                quotes=received.refers_to if received.kind in _QUOTING else on,
                sent_us=received.sent_us,
                receive_us=now_us,
                state=state,
            )
        )
        if state is MessageState.WAITING:
            texts.seal_message(connection, message_id, text, received.passed_on)
            if file is not None and file.kind in FETCHED:
                texts.add_file(connection, message_id, file, now_us)
        values: dict[str, Any] = {
            "last_position": position,
            "last_inbound_us": now_us,
            "opted_out": False,
            "human_until_us": human_until_us,
        }
        if state is MessageState.WAITING:
            stops = received.kind is Kind.TEXT and read_stop(text) == "stop"  # nothing more of it is worth a pause
            values["work_us"] = now_us if stops else self._work_us(connection, row, now_us)
        connection.execute(
            sa.update(conversations).where(conversations.c.conversation_id == row.conversation_id).values(**values)
        )
        if notice and not silent:
            told = Outgoing(say(notice, row.language))
            outbox.add(connection, row.conversation_id, f"notice:{message_id}", [told], now_us)

    def _reacted(self, connection: Connection, channel: Channel, account: str, received: Received, now_us: int) -> None:
        """Take an emoji for the button that it stands for, or tell how the card it is on is answered, once a card.

        It makes nobody known: who was sent a card is. An emoji that is changed or taken away before it was read is
        withdrawn, as a message is that is deleted.
        """
        user_id = people.find(connection, channel.name, received.sender.identities, now_us)
        for row in people.conversations_of(connection, user_id, account) if user_id else ():
            before = (
                messages.c.conversation_id == row.conversation_id,
                messages.c.kind == Kind.CHOICE,
                messages.c.quotes == received.refers_to,
                messages.c.state == MessageState.WAITING,
            )
            if received.refers_to:
                texts.settle_messages(connection, before, state=MessageState.WITHDRAWN)
            chosen = option_by_sign(connection, row.conversation_id, received.refers_to, received.text)
            if chosen:
                pressed = replace(received, kind=Kind.CHOICE, option=chosen)
                self._received(connection, channel, account, pressed, now_us, on=received.refers_to)
            elif chosen is not None and row.human_until_us <= now_us:
                outbox.open_window(connection, row.conversation_id, now_us)
                told = Outgoing(say("how_to_react", row.language))
                outbox.add(connection, row.conversation_id, f"reaction:{received.refers_to}", [told], now_us)

    def _work_us(self, connection: Connection, row: sa.Row[Any], now_us: int) -> int:
        """Return when the conversation's messages are given to the agent: after a pause in them, but not too late."""
        query = sa.select(sa.func.min(messages.c.receive_us)).where(
            messages.c.conversation_id == row.conversation_id, messages.c.state == MessageState.WAITING
        )
        first = connection.execute(query).scalar() or now_us
        return min(now_us + self._rules.debounce_us, first + _LONGEST_WAITS * self._rules.debounce_us)

    def _echoed(self, connection: Connection, channel: Channel, account: str, receiver: Sender, now_us: int) -> None:
        """Leave the conversation to the person who answered, with everything that was still to be said in it.

        Somebody nobody knows is not made known by it: that the business has the conversation is noted until they write.
        """
        until = now_us + self._rules.human_us
        user_id = people.find(connection, channel.name, receiver.identities, now_us)
        theirs = people.conversations_of(connection, user_id, account) if user_id else ()
        if not theirs:
            people.note_echo(connection, channel.name, account, receiver.identities, until)
        for row in theirs:
            of_it = conversations.c.conversation_id == row.conversation_id
            connection.execute(sa.update(conversations).where(of_it).values(human_until_us=until))
            waiting = (messages.c.conversation_id == row.conversation_id, messages.c.state == MessageState.WAITING)
            texts.settle_messages(connection, waiting, state=MessageState.HUMAN)
            outbox.silence(connection, row.conversation_id)


_TAPS_US: Final = 10 * SECOND_US
"""Within this a button that is pressed again is the same press."""
_QUOTING: Final = (Kind.TEXT, Kind.MEDIA)
_NOTICES: Final = {
    Kind.STICKER: "sticker",
    Kind.MEDIA: "media",
    Kind.UNREADABLE: "unreadable",
}
"""What the gateway itself says to messages that the agent does not get."""


def _named(received: Received) -> str:
    """Return the message that stands for something which is no text."""
    if received.kind is Kind.MEDIA:
        return _FILES.get(received.media.kind if received.media else "", "sent_file")
    return "sent_sticker" if received.kind is Kind.STICKER else "sent_other"


_FILES: Final = {"image": "sent_image", "audio": "sent_audio", "video": "sent_video"}


def _add(connection: Connection, channel: str, element: Element, now_us: int) -> bool:
    """Note that an element came, so that it is applied once; return False if it is there already."""
    kind = f"kept:{element.content.reason}" if isinstance(element.content, Kept) else type(element.content).__name__
    made = insert(inbox).values(
        channel=channel,
        account=element.account,
        element_id=element.element_id,
        kind=kind.lower()[:64],
        receive_us=now_us,
    )
    # an INSERT has no reliable rowcount on PostgreSQL
    added = connection.execute(made.on_conflict_do_nothing().returning(inbox.c.element_id))
    return added.first() is not None


def _tapped(connection: Connection, conversation_id: str, received: Received) -> bool:
    """Return True for a button that was pressed a moment ago already: a finger that taps twice answers once."""
    if received.kind is not Kind.CHOICE:
        return False
    before = sa.select(messages.c.message_id).where(
        messages.c.conversation_id == conversation_id,
        messages.c.kind == Kind.CHOICE,
        messages.c.option == received.option,
        messages.c.state != MessageState.WITHDRAWN,
        messages.c.sent_us.between(received.sent_us - _TAPS_US, received.sent_us + _TAPS_US),
    )
    return connection.execute(before.limit(1)).first() is not None


def _amend(connection: Connection, conversation_id: str, received: Received) -> bool:
    """Change or withdraw a message that nobody has read yet; return True if there was one."""
    which = (
        messages.c.conversation_id == conversation_id,
        messages.c.external_id == received.refers_to,
        messages.c.state == MessageState.WAITING,
    )
    if received.kind is Kind.REVOKE:
        return texts.settle_messages(connection, which, state=MessageState.WITHDRAWN)
    found = connection.execute(sa.select(messages.c.message_id).where(*which)).scalars().all()
    for message_id in found:
        texts.seal_message(connection, message_id, received.text, received.passed_on)
    return bool(found)
