"""People and their conversations. Functions of a connection: they run within the transaction of an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.util.ids import new_id
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import Identity, Sender
from phylactery_gateway.tables import NEVER_US, conversations, identities, users


def user_of(connection: Connection, channel: str, sender: Sender, now_us: int) -> str:
    """Return the id of the person with these identities; a person not known yet gets one.

    The first identity decides. A weaker one (a phone number, which a network gives to somebody else later) finds a
    person only if nothing stronger is known of them.
    """
    strongest = sender.identities[0]
    user_id = _find(connection, channel, strongest)
    if user_id is None:
        user_id = _by_weaker(connection, channel, sender.identities) or new_id("usr")
        user_id = _claim(connection, channel, strongest, user_id)
        new = insert(users).values(user_id=user_id, channel=channel, create_us=now_us)
        connection.execute(new.on_conflict_do_nothing())
    for identity in sender.identities[1:]:
        _take(connection, channel, identity, user_id)
    return user_id


def rename(
    connection: Connection, channel: str, previous: Sequence[Identity], current: Sequence[Identity], now_us: int
) -> str | None:
    """Give a person their new identities and return the person's id, None if nobody has the previous ones.

    The previous business-scoped id still finds them, because messages may arrive late; a previous phone number does
    not, because somebody else may have it.
    """
    user_id = next((one for one in (_find(connection, channel, identity) for identity in previous) if one), None)
    if user_id is None:
        return None
    strongest = previous[0].kind
    for identity in previous:
        if identity in current:
            continue
        of_it = _where(channel, identity)
        if identity.kind == strongest and len(previous) > 1:
            connection.execute(sa.update(identities).where(*of_it).values(current=False))
        else:
            connection.execute(sa.delete(identities).where(*of_it))
    for identity in current:
        _take(connection, channel, identity, user_id)
    connection.execute(
        insert(users).values(user_id=user_id, channel=channel, create_us=now_us).on_conflict_do_nothing()
    )
    return user_id


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
    """Return a person's present identities by kind."""
    query = sa.select(identities.c.kind, identities.c.value).where(
        identities.c.user_id == user_id, identities.c.current
    )
    return {row.kind: row.value for row in connection.execute(query)}


def _where(channel: str, identity: Identity) -> tuple[sa.ColumnElement[bool], ...]:
    return (
        identities.c.channel == channel,
        identities.c.kind == identity.kind,
        identities.c.value == identity.value,
    )


def _find(connection: Connection, channel: str, identity: Identity) -> str | None:
    return connection.execute(sa.select(identities.c.user_id).where(*_where(channel, identity))).scalar()


def _by_weaker(connection: Connection, channel: str, given: Sequence[Identity]) -> str | None:
    for identity in given[1:]:
        user_id = _find(connection, channel, identity)
        if user_id is not None and given[0].kind not in identities_of(connection, user_id):
            return user_id
    return None


def _claim(connection: Connection, channel: str, identity: Identity, user_id: str) -> str:
    """Give an identity that nobody has to a person; return whose it is, which may be another process's choice."""
    _retire(connection, user_id, identity.kind)
    made = insert(identities).values(
        channel=channel, kind=identity.kind, value=identity.value, user_id=user_id, current=True
    )
    if connection.execute(made.on_conflict_do_nothing().returning(identities.c.user_id)).first() is not None:
        return user_id
    found = _find(connection, channel, identity)
    assert found is not None, "the row that conflicted is committed"
    return found


def _take(connection: Connection, channel: str, identity: Identity, user_id: str) -> None:
    """Give an identity to a person, whoever had it."""
    query = sa.select(identities.c.user_id, identities.c.current).where(*_where(channel, identity))
    held = connection.execute(query).first()
    if held is not None and held.user_id == user_id and held.current:
        return
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


def _retire(connection: Connection, user_id: str, kind: str) -> None:
    """Mark a person's identities of a kind as former: one of each is current."""
    of_kind = (identities.c.user_id == user_id, identities.c.kind == kind)
    connection.execute(sa.update(identities).where(*of_kind).values(current=False))
