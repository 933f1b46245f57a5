"""Erasure of a person: their identities, conversations, messages and files."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed, scrub_removed
from phylactery_chassis.errors import DomainError, FailedPrecondition, NotFound
from phylactery_chassis.telemetry.logs import get_logger
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
    media,
    messages,
    outbox,
    turns,
    users,
)

_log = get_logger("erasure")


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased; subjects are the names under which the agent knows the person."""

    subjects: tuple[str, ...]
    received: int
    sent: int


async def erase(database: Database, channel: str, value: str, now_us: int) -> Erased:
    """Erase the person who has an identity on a channel: a phone number as it is spelled, a business-scoped id, a chat.

    With a number, those are erased besides who had it before and are known by nothing else. The ids of received
    elements stay until the retention removes them, so that a webhook delivered again is not a new message. That the
    business wrote by hand to somebody nobody knows is erased, too. Raise NotFound PERSON_NOT_FOUND, and
    FailedPrecondition CONVERSATION_BUSY while the agent serves a message of theirs, or one may be in a webhook that is
    not read yet.
    """

    def remove(connection: Connection) -> Erased:
        refuse_while_waiting(connection, channel)
        people = everybody(connection, channel, value)
        of_them = _locked_conversations(connection, people, now_us)
        values, phones = _names(connection, channel, people, value)
        named = echoes.c.value.in_(values) | (echoes.c.kind.in_(REASSIGNED) & echoes.c.value.in_(phones))
        echoed = connection.execute(sa.delete(echoes).where(echoes.c.channel == channel, named)).rowcount
        if not people and not echoed:
            raise NotFound("PERSON_NOT_FOUND", f"nobody is known on {channel} as '{value}'")
        subjects = tuple(subject_of(channel, one) for one in people)
        note_removed(connection)
        return Erased(subjects, *_remove(connection, people, of_them))

    erased = await database.write(remove)
    try:
        await scrub_removed(database)
    except DomainError as error:
        _log.warning(
            "what was erased is still in free pages of the file; within an hour the gateway empties them",
            reason=error.reason,
        )
    return erased


def _names(connection: Connection, channel: str, people: list[str], value: str) -> tuple[set[str], set[str]]:
    """Return the identities of people and the named one, and of phone numbers the one form of all spellings."""
    queries = (sa.select(table.c.value).where(table.c.user_id.in_(people)) for table in (identities, former))
    values = {value, *(str(one) for query in queries for one in connection.execute(query).scalars())}
    number = normal(value) if has_phones(channel) else None
    return values, {number} if number else set()


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
