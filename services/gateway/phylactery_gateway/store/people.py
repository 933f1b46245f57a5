"""People and their conversations. Functions of a connection: they run within the transaction of an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.auth.levels import CHANNEL_SUBJECTS
from phylactery_chassis.util.ids import new_id
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import REASSIGNED, Identity, Sender
from phylactery_gateway.tables import NEVER_US, conversations, identities, users


def user_of(connection: Connection, channel: str, sender: Sender, now_us: int) -> str:
    """Return the id of the person with these identities; a person not known yet gets one.

    The first identity decides. A weaker one finds a person only if nothing stronger is known of them.
    """
    strongest, *weaker = sender.identities
    held = _held(connection, channel, strongest)
    if held is not None and not held.current:
        return str(held.user_id)  # a late message: the phone number it names may be somebody else's by now
    user_id, changed = (held.user_id, False) if held is not None else (None, True)
    if user_id is None:
        user_id = _by_weaker(connection, channel, sender.identities) or new_id("usr")
        user_id = _claim(connection, channel, strongest, user_id)
        new = insert(users).values(user_id=user_id, channel=channel, create_us=now_us)
        connection.execute(new.on_conflict_do_nothing())
    for identity in weaker:
        changed |= _take(connection, channel, identity, user_id)
    if changed:
        _note_renamed(connection, user_id)
    return user_id


def rename(
    connection: Connection, channel: str, previous: Sequence[Identity], current: Sequence[Identity]
) -> str | None:
    """Give a person their new identities and return the person's id, None if nobody has the previous ones.

    The previous business-scoped id still finds them, because messages may arrive late; a previous phone number does
    not. Whoever wrote under the new business-scoped id before this was told is the same person: they are merged.
    """
    held = _held(connection, channel, previous[0])
    user_id = held.user_id if held is not None else _by_weaker(connection, channel, previous)
    if user_id is None:
        return None
    for identity in previous:
        if identity not in current:
            _leave(connection, *_where(channel, identity), identities.c.user_id == user_id, kind=identity.kind)
    for identity in current:
        other = _held(connection, channel, identity)
        if other is not None and other.user_id != user_id and identity.kind not in REASSIGNED:
            _merge(connection, other.user_id, user_id)
        _take(connection, channel, identity, user_id)
    _note_renamed(connection, user_id)
    return str(user_id)


def conversation_of(connection: Connection, channel: str, user_id: str, account: str, language: str) -> sa.Row[Any]:
    """Return the conversation of a person with an account, locked until the end of the transaction."""
    query = sa.select(conversations).where(conversations.c.user_id == user_id, conversations.c.account == account)
    found = connection.execute(query.with_for_update()).first()
    if found is not None:
        return found
    connection.execute(
        insert(conversations)
        .values(
            conversation_id=new_id("cnv"),
            user_id=user_id,
            channel=channel,
            account=account,
            language=language,
            last_position=0,
            last_inbound_us=0,
            work_us=NEVER_US,
            turn_owner="",
            turn_until_us=0,
            event_after=0,
            check_us=NEVER_US,
            human_until_us=0,
            pair_us=0,
            template_us=0,
            opted_out=False,
        )
        .on_conflict_do_nothing()
    )
    return connection.execute(query.with_for_update()).one()


def identities_of(connection: Connection, user_id: str) -> dict[str, str]:
    """Return a person's present identities by kind; of a merged person, those of whom they were merged into."""
    into = sa.select(users.c.merged_into).where(users.c.user_id == user_id)
    owner = connection.execute(into).scalar() or user_id
    query = sa.select(identities.c.kind, identities.c.value).where(identities.c.user_id == owner, identities.c.current)
    return {row.kind: row.value for row in connection.execute(query)}


def _where(channel: str, identity: Identity) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        identities.c.channel == channel,
        identities.c.kind == identity.kind,
        identities.c.value == identity.value,
    )


def _held(connection: Connection, channel: str, identity: Identity) -> sa.Row[Any] | None:
    """Return whose an identity is, and whether it is their present one; None if it is nobody's."""
    query: sa.Select[Any] = sa.select(identities.c.user_id, identities.c.current).where(*_where(channel, identity))
    if identity.kind in REASSIGNED:
        query = query.where(identities.c.current)
    return connection.execute(query).first()


def _by_weaker(connection: Connection, channel: str, given: Sequence[Identity]) -> str | None:
    for identity in given[1:]:
        held = _held(connection, channel, identity)
        if held is not None and given[0].kind not in identities_of(connection, held.user_id):
            return str(held.user_id)
    return None


def _claim(connection: Connection, channel: str, identity: Identity, user_id: str) -> str:
    """Give an identity that nobody has to a person; return whose it is, which may be another process's choice."""
    _retire(connection, user_id, identity.kind)
    made = insert(identities).values(
        channel=channel, kind=identity.kind, value=identity.value, user_id=user_id, current=True
    )
    if connection.execute(made.on_conflict_do_nothing().returning(identities.c.user_id)).first() is not None:
        return user_id
    found = _held(connection, channel, identity)
    assert found is not None, "the row that conflicted is committed"
    return str(found.user_id)


def _take(connection: Connection, channel: str, identity: Identity, user_id: str) -> bool:
    """Give an identity to a person, whoever had it; return False if they have it already."""
    held = _held(connection, channel, identity)
    if held is not None and held.user_id == user_id and held.current:
        return False
    _retire(connection, user_id, identity.kind)
    made = insert(identities).values(
        channel=channel, kind=identity.kind, value=identity.value, user_id=user_id, current=True
    )
    connection.execute(
        made.on_conflict_do_update(
            index_elements=[identities.c.channel, identities.c.kind, identities.c.value],
            set_={"user_id": user_id, "current": True},
        )
    )
    return True


def _note_renamed(connection: Connection, user_id: str) -> None:
    """Note that a person who wrote before has another identity: who has it now is the channel's word alone.

    A network gives numbers to others, so an operator's lift was for the identity of then. The agent is told before it
    gets the next message (see ``TurnWorker``).
    """
    wrote = sa.select(conversations.c.user_id).where(conversations.c.user_id == user_id)
    renamed = sa.update(users).where(users.c.user_id == user_id, wrote.exists())
    connection.execute(renamed.values(renamed=users.c.renamed + 1))


def _retire(connection: Connection, user_id: str, kind: str) -> None:
    """Give up a person's identities of a kind: one of each is current."""
    _leave(connection, identities.c.user_id == user_id, identities.c.kind == kind, kind=kind)


def _leave(connection: Connection, *which: sa.ColumnElement[bool], kind: str) -> None:
    """Mark identities as former, and remove those that somebody else may have next."""
    if kind in REASSIGNED:
        connection.execute(sa.delete(identities).where(*which))
    else:
        connection.execute(sa.update(identities).where(*which).values(current=False))


def _merge(connection: Connection, user_id: str, into: str) -> None:
    """Give a person's identities to another, who is the same; what was said under the former id stays where it is."""
    of_them = identities.c.user_id == user_id
    connection.execute(sa.delete(identities).where(of_them, identities.c.kind.in_(REASSIGNED)))
    connection.execute(sa.update(identities).where(of_them).values(user_id=into, current=False))
    merged = (users.c.user_id == user_id) | (users.c.merged_into == user_id)
    connection.execute(sa.update(users).where(merged).values(merged_into=into))


def subject_of(channel: str, user_id: str) -> str:
    """Return the name under which the agent knows a person of a channel."""
    return f"{CHANNEL_SUBJECTS[channel]}{user_id}"
