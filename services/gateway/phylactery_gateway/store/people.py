"""People and their conversations. Functions of a connection: they run within the transaction of an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.auth.levels import CHANNEL_SUBJECTS
from phylactery_chassis.util.ids import new_id
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import REASSIGNED, Identity, Renamed, Sender
from phylactery_gateway.channels.phones import normal
from phylactery_gateway.channels.port import SECOND_US
from phylactery_gateway.tables import NEVER_US, conversations, echoes, former, identities, users

AWAY_US: Final = 90 * 24 * 3_600 * SECOND_US
"""Who was not seen for so long is not known by a phone number any more: networks give numbers to others after it."""
_CLOCKS_US: Final = 60 * SECOND_US
"""How far the channel's clock may be from ours."""


def user_of(connection: Connection, channel: str, sender: Sender, now_us: int) -> str:
    """Return the id of the person with these identities; a person not known yet gets one.

    The first identity decides. A weaker one finds a person only if nothing stronger is known of them. A phone number
    alone finds nobody who was not seen for AWAY_US: whoever has it then is somebody else.
    """
    strongest = sender.identities[0]
    held = _held(connection, channel, strongest, now_us)
    if held is not None and not held.current:
        return str(held.user_id)  # a late message: the phone number it names may be somebody else's by now
    user_id, changed = (held.user_id, False) if held is not None else (None, True)
    if user_id is None:
        user_id = _by_weaker(connection, channel, sender.identities, now_us) or new_id("usr")
        user_id = _claim(connection, channel, strongest, user_id, now_us)
        new = insert(users).values(user_id=user_id, channel=channel, create_us=now_us, seen_us=now_us)
        connection.execute(new.on_conflict_do_nothing())
    for identity in sender.identities:
        changed |= _take(connection, channel, identity, user_id)
    if changed:
        _note_renamed(connection, user_id)
    return user_id


def find(connection: Connection, channel: str, given: Sequence[Identity], now_us: int) -> str | None:
    """Return the id of the person with these identities, the one that counts most first; None if nobody is known."""
    held = _held(connection, channel, given[0], now_us)
    return str(held.user_id) if held is not None else _by_weaker(connection, channel, given, now_us)


def note_seen(connection: Connection, user_id: str, now_us: int) -> None:
    """Note that a person wrote."""
    seen = sa.update(users).where(users.c.user_id == user_id, users.c.seen_us < now_us).values(seen_us=now_us)
    connection.execute(seen)


def rename(connection: Connection, channel: str, renamed: Renamed, now_us: int) -> str | None:
    """Give a person their new identities and return the person's id, None if nobody has the previous ones.

    The previous business-scoped id still finds them, because messages may arrive late; a previous phone number does
    not. Whoever wrote under the new business-scoped id before this was told is the same person: they are merged; so is
    whoever is known by the new number alone and began to write after the change. Another spelling is no change.
    """
    previous, current = renamed.previous, renamed.current
    user_id = find(connection, channel, previous, now_us)
    if user_id is None:
        return None
    kept = {identity.compared for identity in current}
    changed = False
    for identity in previous:
        if identity.compared not in kept:
            _leave(connection, *_where(channel, identity), identities.c.user_id == user_id, kind=identity.kind)
            changed = True
    for identity in current:
        other = _holder(connection, channel, identity)
        if other is not None and other.user_id != user_id and _is_the_same(connection, other, identity, renamed):
            _merge(connection, other.user_id, user_id)
        changed |= _take(connection, channel, identity, user_id)
    if changed:
        _note_renamed(connection, user_id)
    note_seen(connection, user_id, now_us)
    return user_id


def _is_the_same(connection: Connection, other: sa.Row[Any], identity: Identity, renamed: Renamed) -> bool:
    """Return True if whoever has a person's new identity already is that person."""
    if identity.kind not in REASSIGNED:
        return True
    began = sa.select(users.c.create_us).where(users.c.user_id == other.user_id)
    since = renamed.changed_us and int(connection.execute(began).scalar() or 0) >= renamed.changed_us - _CLOCKS_US
    return bool(since) and set(identities_of(connection, other.user_id)) <= REASSIGNED


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


def conversations_of(connection: Connection, user_id: str, account: str) -> Sequence[sa.Row[Any]]:
    """Return a person's conversations with an account, locked: their own, and of those who were merged into them."""
    merged = sa.select(users.c.user_id).where(users.c.merged_into == user_id)
    of_them = (conversations.c.user_id == user_id) | conversations.c.user_id.in_(merged)
    query = sa.select(conversations).where(of_them, conversations.c.account == account)
    return connection.execute(query.order_by(conversations.c.conversation_id).with_for_update()).all()


def note_echo(connection: Connection, channel: str, account: str, given: Sequence[Identity], until_us: int) -> None:
    """Note that the business wrote to somebody nobody knows, so that the agent does not when they answer."""
    for kind, value in (identity.compared for identity in given):
        made = insert(echoes).values(channel=channel, account=account, kind=kind, value=value, until_us=until_us)
        connection.execute(
            made.on_conflict_do_update(
                index_elements=[echoes.c.channel, echoes.c.account, echoes.c.kind, echoes.c.value],
                set_={"until_us": until_us},
            )
        )


def echoed_until(connection: Connection, channel: str, account: str, given: Sequence[Identity]) -> int:
    """Return until when the business itself has a conversation with somebody it wrote to before they wrote, else 0."""
    until_us = 0
    for kind, value in (identity.compared for identity in given):
        query = sa.select(echoes.c.until_us).where(
            echoes.c.channel == channel, echoes.c.account == account, echoes.c.kind == kind, echoes.c.value == value
        )
        until_us = max(until_us, int(connection.execute(query).scalar() or 0))
    return until_us


def everybody(connection: Connection, channel: str, value: str) -> list[str]:
    """Return the ids of all who are known by an id of a channel, a phone number in any spelling.

    They are whoever has it, who was merged into them, and who had it before and is known by nothing else now.
    """
    there, before_them = (_named(table, channel, value) for table in (identities, former))
    owners = set(connection.execute(sa.select(identities.c.user_id).where(there)).scalars())
    before = sa.select(former.c.user_id).where(before_them)
    owners |= {one for one in connection.execute(before).scalars() if not identities_of(connection, one)}
    merged = sa.select(users.c.user_id).where(users.c.merged_into.in_(owners))
    return sorted(str(one) for one in owners | set(connection.execute(merged).scalars()))


def _named(table: sa.Table, channel: str, value: str) -> sa.ColumnElement[bool]:
    """Return the condition that an identity is a value; only of a phone number another spelling is the same."""
    spelled = table.c.kind.in_(REASSIGNED) & (table.c.value == (normal(value) or value))
    return (table.c.channel == channel) & ((table.c.value == value) | spelled)


def identities_of(connection: Connection, user_id: str) -> dict[str, str]:
    """Return a person's present identities by kind, as the channel writes them.

    Of a merged person, they are those of whom they were merged into.
    """
    into = sa.select(users.c.merged_into).where(users.c.user_id == user_id)
    owner = connection.execute(into).scalar() or user_id
    query = sa.select(identities).where(identities.c.user_id == owner, identities.c.current)
    return {row.kind: row.written or row.value for row in connection.execute(query)}


def _where(channel: str, identity: Identity) -> tuple[sa.ColumnElement[bool], ...]:
    kind, value = identity.compared
    return identities.c.channel == channel, identities.c.kind == kind, identities.c.value == value


def _holder(connection: Connection, channel: str, identity: Identity) -> sa.Row[Any] | None:
    """Return whose an identity is, and whether it is their present one; None if it is nobody's."""
    query: sa.Select[Any] = (
        sa.select(identities.c.user_id, identities.c.current, identities.c.written, users.c.seen_us)
        .outerjoin(users, users.c.user_id == identities.c.user_id)
        .where(*_where(channel, identity))
    )
    if identity.kind in REASSIGNED:
        query = query.where(identities.c.current)
    return connection.execute(query).first()


def _held(connection: Connection, channel: str, identity: Identity, now_us: int) -> sa.Row[Any] | None:
    """Return the holder of an identity that still tells who somebody is, None if there is none."""
    found = _holder(connection, channel, identity)
    return None if found is not None and _is_away(found, identity, now_us) else found


def _is_away(holder: sa.Row[Any], identity: Identity, now_us: int) -> bool:
    return identity.kind in REASSIGNED and holder.seen_us is not None and holder.seen_us < now_us - AWAY_US


def _by_weaker(connection: Connection, channel: str, given: Sequence[Identity], now_us: int) -> str | None:
    for identity in given[1:]:
        held = _held(connection, channel, identity, now_us)
        if held is not None and given[0].kind not in identities_of(connection, held.user_id):
            return str(held.user_id)
    return None


def _claim(connection: Connection, channel: str, identity: Identity, user_id: str, now_us: int) -> str:
    """Give an identity that nobody has to a person; return whose it is, which may be another process's choice.

    Nobody has the number of who is away. It is taken from exactly them, so of two processes that see this only one
    takes it, and the other finds whom it was given to.
    """
    _retire(connection, user_id, identity.kind)
    made = _made(channel, identity, user_id)
    if connection.execute(made.on_conflict_do_nothing().returning(identities.c.user_id)).first() is not None:
        return user_id
    found = _holder(connection, channel, identity)
    assert found is not None, "the row that conflicted is committed"
    if _is_away(found, identity, now_us):
        of_them = identities.c.user_id == found.user_id
        taken = sa.update(identities).where(*_where(channel, identity), of_them)
        if connection.execute(taken.values(user_id=user_id, written=identity.value)).rowcount:
            _note_former(connection, channel, identity, found.user_id)
            return user_id
        found = _holder(connection, channel, identity)
        assert found is not None, "whoever took it committed"
    return str(found.user_id)


def _made(channel: str, identity: Identity, user_id: str) -> Insert:
    kind, value = identity.compared
    return insert(identities).values(
        channel=channel, kind=kind, value=value, user_id=user_id, current=True, written=identity.value
    )


def _note_former(connection: Connection, channel: str, identity: Identity, user_id: str) -> None:
    """Note who had a number, so that an operator can still erase them by it: some are known by nothing else."""
    kind, value = identity.compared
    made = insert(former).values(channel=channel, kind=kind, value=value, user_id=user_id)
    connection.execute(made.on_conflict_do_nothing())


def _take(connection: Connection, channel: str, identity: Identity, user_id: str) -> bool:
    """Give an identity to a person, whoever had it; return False if they have it already, in whichever spelling."""
    held = _holder(connection, channel, identity)
    if held is not None and held.user_id == user_id and held.current:
        if held.written != identity.value:
            spelled = sa.update(identities).where(*_where(channel, identity)).values(written=identity.value)
            connection.execute(spelled)
        return False
    if held is not None and held.user_id != user_id and identity.kind in REASSIGNED:
        _note_former(connection, channel, identity, held.user_id)
    _retire(connection, user_id, identity.kind)
    connection.execute(
        _made(channel, identity, user_id).on_conflict_do_update(
            index_elements=[identities.c.channel, identities.c.kind, identities.c.value],
            set_={"user_id": user_id, "current": True, "written": identity.value},
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
