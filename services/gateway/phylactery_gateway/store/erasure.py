"""Erasure of a person: their identities, conversations, messages and files, and what the channel said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import FailedPrecondition, NotFound
from sqlalchemy.engine import Connection

from phylactery_gateway.store.backlog import refuse_while_waiting
from phylactery_gateway.store.people import subject_of
from phylactery_gateway.tables import conversations, identities, inbox, media, messages, outbox, turns, users

_PAGE: Final = 500


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased; subjects are the names under which the agent knows the person."""

    subjects: tuple[str, ...]
    received: int
    sent: int


async def erase(database: Database, channel: str, value: str, now_us: int) -> Erased:
    """Erase the person who has an identity on a channel: a phone number, a business-scoped id, a chat id.

    The ids of received elements stay until the retention removes them, so that a webhook delivered again is not a new
    message; their bodies are emptied. It may be repeated after an interruption: the identity goes last. Raise NotFound
    PERSON_NOT_FOUND, and FailedPrecondition CONVERSATION_BUSY while the agent serves a message of theirs, or one may be
    in a webhook that is not read yet.
    """
    place: tuple[str, str] | None = ("", "")
    while place is not None:
        after = place

        def empty(connection: Connection, after: tuple[str, str] = after) -> tuple[str, str] | None:
            return _empty_page(connection, channel, _names(connection, _people(connection, channel, value)), after)

        place = await database.write(empty)

    def remove(connection: Connection) -> Erased:
        refuse_while_waiting(connection, channel)
        people = _people(connection, channel, value)
        of_them = _locked_conversations(connection, people, now_us)
        names = _names(connection, people)
        since = inbox.c.receive_us >= now_us  # received since the bodies were emptied
        _empty(connection, connection.execute(_bodies(channel).where(since)).all(), names)
        subjects = tuple(subject_of(channel, one) for one in people)
        return Erased(subjects, *_remove(connection, people, of_them))

    return await database.write(remove)


def _people(connection: Connection, channel: str, value: str) -> list[str]:
    """Return the ids of the person: their own, and those that were merged into it. Raise NotFound."""
    held = sa.select(identities.c.user_id).where(identities.c.channel == channel, identities.c.value == value)
    owners = {str(one) for one in connection.execute(held).scalars()}
    if not owners:
        raise NotFound("PERSON_NOT_FOUND", f"nobody is known on {channel} as '{value}'")
    merged = sa.select(users.c.user_id).where(users.c.merged_into.in_(owners))
    return sorted(owners | {str(one) for one in connection.execute(merged).scalars()})


def _names(connection: Connection, people: list[str]) -> frozenset[str]:
    """Return the identities of a person and the channel's ids of their messages."""
    of_them = sa.select(conversations.c.conversation_id).where(conversations.c.user_id.in_(people))
    queries = (
        sa.select(identities.c.value).where(identities.c.user_id.in_(people)),
        sa.select(messages.c.external_id).where(messages.c.conversation_id.in_(of_them)),
        sa.select(outbox.c.external_id).where(outbox.c.conversation_id.in_(of_them)),
    )
    return frozenset(str(one) for query in queries for one in connection.execute(query).scalars() if one)


def _bodies(channel: str) -> sa.Select[Any]:
    return sa.select(inbox.c.channel, inbox.c.account, inbox.c.element_id, inbox.c.body).where(
        inbox.c.channel == channel, inbox.c.body != b""
    )


def _empty_page(
    connection: Connection, channel: str, names: frozenset[str], after: tuple[str, str]
) -> tuple[str, str] | None:
    """Empty the bodies of one page that name the person; return where the next page begins, None after the last."""
    place = sa.tuple_(inbox.c.account, inbox.c.element_id)
    query = _bodies(channel).where(place > sa.tuple_(*(sa.literal(one) for one in after)))
    rows = connection.execute(query.order_by(inbox.c.account, inbox.c.element_id).limit(_PAGE)).all()
    _empty(connection, rows, names)
    return (rows[-1].account, rows[-1].element_id) if len(rows) == _PAGE else None


def _empty(connection: Connection, rows: Any, names: frozenset[str]) -> None:
    for row in rows:
        if _is_about(row.body, names):
            key = inbox.c.channel == row.channel, inbox.c.account == row.account, inbox.c.element_id == row.element_id
            connection.execute(sa.update(inbox).where(*key).values(body=b""))


def _is_about(body: bytes, names: frozenset[str]) -> bool:
    """Return True if a stored element has one of the names as a value, or cannot be read."""
    try:
        return any(one in names for one in _scalars(json.loads(body)))
    except (ValueError, RecursionError):
        return True


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
    connection.execute(sa.delete(identities).where(identities.c.user_id.in_(people)))
    connection.execute(sa.delete(users).where(users.c.user_id.in_(people)))
    return counted[0], counted[1]
