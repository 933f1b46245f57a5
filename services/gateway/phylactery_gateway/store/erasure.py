"""Erasure of a person: their identities, conversations, messages and files, and what the channel said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import FailedPrecondition, NotFound
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import REASSIGNED
from phylactery_gateway.channels.phones import normal
from phylactery_gateway.store.backlog import refuse_while_waiting
from phylactery_gateway.store.lifts import has_phones
from phylactery_gateway.store.people import everybody, subject_of
from phylactery_gateway.tables import (
    conversations,
    echoes,
    former,
    identities,
    inbox,
    media,
    messages,
    outbox,
    turns,
    users,
)

_PAGE: Final = 500


class _About(Enum):
    """Why the body of an element is emptied."""

    NAMED = auto()
    UNREADABLE = auto()


@dataclass(frozen=True, slots=True)
class _Names:
    """What names a person: their identities and the channel's ids of their messages, and their phone numbers."""

    all: frozenset[str]
    phones: frozenset[str]
    """In the form of all their spellings."""


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased; subjects are the names under which the agent knows the person."""

    subjects: tuple[str, ...]
    received: int
    sent: int


async def erase(database: Database, channel: str, value: str, now_us: int) -> Erased:
    """Erase the person who has an identity on a channel: a phone number as it is spelled, a business-scoped id, a chat.

    With a number, those are erased besides who had it before and are known by nothing else. The ids of received
    elements stay until the retention removes them, so that a webhook delivered again is not a new message; their bodies
    are emptied. It may be repeated after an interruption: the identity goes last. That the business wrote by hand to
    somebody nobody knows is erased, too. Raise NotFound PERSON_NOT_FOUND, and FailedPrecondition CONVERSATION_BUSY
    while the agent serves a message of theirs, or one may be in a webhook that is not read yet.
    """
    place: tuple[str, str] | None = ("", "")
    emptied = 0
    while place is not None:
        after = place

        def empty(connection: Connection, after: tuple[str, str] = after) -> tuple[int, tuple[str, str] | None]:
            names = _names(connection, channel, everybody(connection, channel, value), value)
            return _empty_page(connection, channel, names, after)

        count, place = await database.write(empty)
        emptied += count

    def remove(connection: Connection) -> Erased:
        refuse_while_waiting(connection, channel)
        people = everybody(connection, channel, value)
        of_them = _locked_conversations(connection, people, now_us)
        names = _names(connection, channel, people, value)
        since = inbox.c.receive_us >= now_us  # received since the bodies were emptied
        count = _empty(connection, connection.execute(_bodies(channel).where(since)).all(), names)
        echoed = sa.delete(echoes).where(echoes.c.channel == channel, echoes.c.value.in_(names.all))
        if not (people or emptied + count + connection.execute(echoed).rowcount):
            raise NotFound("PERSON_NOT_FOUND", f"nobody is known on {channel} as '{value}'")
        subjects = tuple(subject_of(channel, one) for one in people)
        return Erased(subjects, *_remove(connection, people, of_them))

    return await database.write(remove)


def _names(connection: Connection, channel: str, people: list[str], value: str) -> _Names:
    """Return what names a person. Only of phone numbers every spelling counts: two chats are never one."""
    of_them = sa.select(conversations.c.conversation_id).where(conversations.c.user_id.in_(people))
    queries = (
        *(sa.select(table.c.value, table.c.kind).where(table.c.user_id.in_(people)) for table in (identities, former)),
        sa.select(messages.c.external_id, sa.literal("")).where(messages.c.conversation_id.in_(of_them)),
        sa.select(outbox.c.external_id, sa.literal("")).where(outbox.c.conversation_id.in_(of_them)),
    )
    found = [(str(one), str(kind)) for query in queries for one, kind in connection.execute(query) if one]
    phones = {one for one, kind in found if kind in REASSIGNED}
    if has_phones(channel) and (number := normal(value)):
        phones.add(number)
    return _Names(frozenset({*(one for one, _ in found), *phones, value}), frozenset(phones))


def _bodies(channel: str) -> sa.Select[Any]:
    return sa.select(inbox.c.channel, inbox.c.account, inbox.c.element_id, inbox.c.body).where(
        inbox.c.channel == channel, inbox.c.body != b""
    )


def _empty_page(
    connection: Connection, channel: str, names: _Names, after: tuple[str, str]
) -> tuple[int, tuple[str, str] | None]:
    """Empty the bodies of one page that name the person; return how many, and where the next begins, None if none."""
    place = sa.tuple_(inbox.c.account, inbox.c.element_id)
    query = _bodies(channel).where(place > sa.tuple_(*(sa.literal(one) for one in after)))
    rows = connection.execute(query.order_by(inbox.c.account, inbox.c.element_id).limit(_PAGE)).all()
    emptied = _empty(connection, rows, names)
    return emptied, (rows[-1].account, rows[-1].element_id) if len(rows) == _PAGE else None


def _empty(connection: Connection, rows: Any, names: _Names) -> int:
    """Empty the bodies that name the person, or that cannot be read; return how many name them."""
    named = 0
    for row in rows:
        if about := _is_about(row.body, names):
            key = inbox.c.channel == row.channel, inbox.c.account == row.account, inbox.c.element_id == row.element_id
            connection.execute(sa.update(inbox).where(*key).values(body=b""))
            named += about is _About.NAMED
    return named


def _is_about(body: bytes, names: _Names) -> _About | None:
    """Return whether a stored element has one of the names as a value, a number in any spelling, or cannot be read."""
    try:
        named = any(one in names.all or normal(one) in names.phones for one in _scalars(json.loads(body)))
    except (ValueError, RecursionError):
        return _About.UNREADABLE
    return _About.NAMED if named else None


def _scalars(read: Any) -> Iterator[str]:
    match read:
        case dict():
            for one in read.values():
                yield from _scalars(one)
        case list():
            for one in read:
                yield from _scalars(one)
        case str() | int():
            yield str(read)


def _locked_conversations(connection: Connection, people: list[str], now_us: int) -> list[str]:
    """Return the ids of a person's conversations, locked. Raise FailedPrecondition while one of them is served."""
    rows = connection.execute(
        sa.select(conversations.c.conversation_id, conversations.c.turn_owner, conversations.c.turn_until_us)
        .where(conversations.c.user_id.in_(people))
        .with_for_update()
    ).all()
    if any(row.turn_owner and row.turn_until_us > now_us for row in rows):
        raise FailedPrecondition(
            "CONVERSATION_BUSY", "the agent is answering a message of theirs; run the command again in a minute"
        )
    return [str(row.conversation_id) for row in rows]


def _remove(connection: Connection, people: list[str], of_them: list[str]) -> tuple[int, int]:
    """Remove every row of a person; return how many messages were received and sent."""
    received = sa.select(messages.c.message_id).where(messages.c.conversation_id.in_(of_them))
    connection.execute(sa.delete(media).where(media.c.message_id.in_(received)))
    counted = [
        connection.execute(sa.delete(table).where(table.c.conversation_id.in_(of_them))).rowcount
        for table in (messages, outbox, turns, conversations)
    ]
    for table in (identities, former):
        connection.execute(sa.delete(table).where(table.c.user_id.in_(people)))
    connection.execute(sa.delete(users).where(users.c.user_id.in_(people)))
    return counted[0], counted[1]
