"""Whom an operator lifts: people by the channel's own id of them, never by a name they chose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.auth.levels import CHANNEL_SUBJECTS
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import InvalidArgument, NotFound
from sqlalchemy.engine import Connection

from phylactery_gateway.channels.messages import REASSIGNED, Identity, Sender
from phylactery_gateway.channels.phones import with_country
from phylactery_gateway.store import people
from phylactery_gateway.tables import former, users

_IDS: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "whatsapp": (("phone", r"[1-9][0-9]{6,14}"), ("bsuid", r"[A-Z]{2}\.(?:ENT\.)?[A-Za-z0-9]{1,128}")),
    "telegram": (("chat", r"[1-9][0-9]{0,19}"),),
}
"""The forms of a channel's own ids, by kind, of a phone number the normal one."""


@dataclass(frozen=True, slots=True)
class Known:
    """A person of a channel, with the identities that they have now."""

    subject: str
    channel: str
    identities: Mapping[str, str]
    left: bool = False
    """True if somebody else has their number now, and they have no other id."""


def has_phones(channel: str) -> bool:
    """Return True if a channel knows people by phone numbers."""
    return any(kind in REASSIGNED for kind, _ in _IDS.get(channel, ()))


def identity_of(channel: str, value: str) -> Identity:
    """Return the identity that an operator named. Raise InvalidArgument if it is none of the channel's own ids.

    A phone number is taken in any spelling that says that its country is in it (see ``phones.with_country``).
    """
    forms = _IDS.get(channel)
    if forms is None:
        raise InvalidArgument("INVALID_REQUEST", f"there is no channel '{channel}'; there are {', '.join(_IDS)}")
    for kind, form in forms:
        named = (with_country(value) or "") if kind == "phone" else value
        if re.fullmatch(form, named):
            return Identity(kind, named)
    raise InvalidArgument(
        "INVALID_REQUEST",
        f"this is no id of {channel}: give a {' or a '.join(kind for kind, _ in forms)} as the channel writes it, "
        "a phone number with its country, for example 34600000001 or +34 600 000 001; names are not accepted, because "
        "anybody may choose any",
    )


async def to_lift(database: Database, identity: Identity, channel: str, now_us: int) -> tuple[str, int]:
    """Return the subject of whoever has an identity now, and the number of their last change of identity.

    Somebody who has not written yet is noted. The operator knows the present identity, so once the agent lifted them,
    that change is told (note_told); one of since ends the lift. Raise NotFound PERSON_NOT_FOUND for an identity that
    somebody had before.
    """

    def work(connection: Connection) -> tuple[str, int]:
        user_id = people.find(connection, channel, (identity,), now_us)
        if user_id is None:
            user_id = people.user_of(connection, channel, Sender((identity,)), now_us)
        present = people.identities_of(connection, user_id).get(identity.kind, "")
        if Identity(identity.kind, present).compared != identity.compared:
            raise NotFound("PERSON_NOT_FOUND", f"'{identity.value}' is a former id on {channel}; give the present one")
        renamed = connection.execute(sa.select(users.c.renamed).where(users.c.user_id == user_id)).scalar()
        return people.subject_of(channel, user_id), int(renamed or 0)

    return await database.write(work)


async def known_as(database: Database, subject: str) -> Known | None:
    """Return the person behind a subject, None if it is nobody's here. Of who has no id any more, the former number."""
    channel = next((name for name, prefix in CHANNEL_SUBJECTS.items() if subject.startswith(prefix)), "")
    user_id = subject.removeprefix(CHANNEL_SUBJECTS.get(channel, ""))

    def work(connection: Connection) -> Known | None:
        there = connection.execute(sa.select(users.c.user_id).where(users.c.user_id == user_id)).first()
        if there is None:
            return None
        before = sa.select(former.c.value).where(former.c.user_id == user_id)
        if known := people.identities_of(connection, user_id):
            return Known(subject, channel, known)
        return Known(subject, channel, dict.fromkeys(connection.execute(before).scalars(), ""), left=True)

    return await database.read(work)


async def subjects_of(database: Database, identity: Identity, channel: str) -> Sequence[str]:
    """Return the subjects under which the agent may know whoever has an identity (see ``people.everybody``)."""
    everybody = await database.read(lambda connection: people.everybody(connection, channel, identity.value))
    return [people.subject_of(channel, one) for one in everybody]


async def untold(database: Database, subject: str) -> int:
    """Return the number of the last change of a person's identity if the agent was not told of it, else 0."""

    def work(connection: Connection) -> int:
        query = sa.select(users.c.renamed).where(_is(subject), users.c.renamed > users.c.renamed_told)
        return int(connection.execute(query).scalar() or 0)

    return await database.read(work)


async def note_told(database: Database, subject: str, number: int) -> None:
    """Note that the agent was told of a change; one of since is told next time."""
    told = sa.update(users).where(_is(subject), users.c.renamed_told < number).values(renamed_told=number)
    await database.write(lambda connection: connection.execute(told))


def _is(subject: str) -> sa.ColumnElement[bool]:
    return users.c.user_id == subject.partition(":")[2]
