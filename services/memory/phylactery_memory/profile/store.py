"""Profiles in SQL. The principal is part of every query; every write locks the profile's row first."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from typing import TypeVar

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.memories.model import NEVER, Origin, Source, Trust
from phylactery_memory.profile.model import MAX_SUPERSEDED, Profile, ProfileField, superseding
from phylactery_memory.tables import memory_profile, profile_owners

T = TypeVar("T")

_MINE = (
    memory_profile.c.tenant == sa.bindparam("of_tenant"),
    memory_profile.c.subject == sa.bindparam("of_subject"),
)
_REVISION = Query(
    sa.select(profile_owners.c.revision).where(
        profile_owners.c.tenant == sa.bindparam("of_tenant"), profile_owners.c.subject == sa.bindparam("of_subject")
    )
)
_ALL = (
    sa.select(memory_profile)
    .where(*_MINE)
    .order_by(memory_profile.c.name, memory_profile.c.valid_us.desc(), memory_profile.c.revision.desc())
)
_EVER_HELD, _HOLDING = Query(_ALL), Query(_ALL.where(memory_profile.c.invalid_us == NEVER))


class ProfileStore:
    """The profiles of their owners. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def read(self, owner: Principal, *, superseded: int = 0) -> Profile:
        """Return the owner's profile with up to ``superseded`` former values per name."""
        return await self._database.read(lambda connection: load(connection, owner, superseded=superseded))

    async def ask(self, work: Callable[[Connection], T]) -> T:
        """Run read-only work that reads other tables than these."""
        return await self._database.read(work)

    async def write(self, work: Callable[[Connection], T]) -> T:
        """Run work that changes a profile and return once it is durable."""
        try:
            return await self._database.write(work)
        except IntegrityError:
            # Another replica created the owner's row between our read and our insert: it can be locked now.
            return await self._database.write(work)


def load(connection: Connection, owner: Principal, *, superseded: int = 0) -> Profile:
    """Return the owner's profile as seen in this transaction."""
    mine = {"of_tenant": owner.tenant, "of_subject": owner.subject}
    found = _REVISION.one(connection, mine)
    if found is None:
        return Profile()
    revision = int(found.revision)
    fields = [_field(row) for row in (_EVER_HELD if superseded else _HOLDING).all(connection, mine)]
    by_name = groupby((field for field in fields if not field.holds), key=lambda field: field.name)
    before = [field for _, history in by_name for field in islice(history, superseded)]
    return Profile([field for field in fields if field.holds], revision, before)


def locked(connection: Connection, owner: Principal) -> Profile:
    """Return the owner's profile, locked until the end of this transaction."""
    key = _of(profile_owners, owner)
    found = connection.execute(sa.select(profile_owners.c.revision).where(*key).with_for_update()).first()
    if found is None:
        values = {"tenant": owner.tenant, "subject": owner.subject, "revision": 0}
        connection.execute(sa.insert(profile_owners).values(**values))
    return load(connection, owner)


def change(
    connection: Connection, owner: Principal, profile: Profile, new: Sequence[ProfileField], remove: Iterable[str] = ()
) -> None:
    """Remove names with their history, and add values that end the current ones.

    ``profile`` is the result of locked(). Raise what superseding() raises.
    """
    names = set(remove)
    left = Profile([field for field in profile.fields if field.name not in names], profile.revision)
    added, ended = superseding(left, new)
    removed = _remove(connection, owner, memory_profile.c.name.in_(sorted(names))) if names else 0
    if not added and not removed:
        return
    revision = profile.revision + 1
    mine = _of(memory_profile, owner)
    for field in ended:
        connection.execute(
            sa.update(memory_profile)
            .where(*mine, memory_profile.c.name == field.name, memory_profile.c.invalid_us == NEVER)
            .values(invalid_us=field.invalid_us)
        )
    if added:
        connection.execute(sa.insert(memory_profile), [_row(owner, field, revision) for field in added])
    for field in ended:
        _trim(connection, owner, field.name)
    connection.execute(sa.update(profile_owners).where(*_of(profile_owners, owner)).values(revision=revision))


def drop(connection: Connection, owner: Principal, memory_id: str) -> None:
    """Remove every value taken from a memory, current or superseded."""
    taken = [*_of(memory_profile, owner), memory_profile.c.memory_id == memory_id]
    _change_some(connection, owner, taken, sa.delete(memory_profile).where(*taken))


def end(connection: Connection, owner: Principal, memory_id: str, at_us: int) -> None:
    """End the current values taken from a memory."""
    taken = [*_of(memory_profile, owner), memory_profile.c.memory_id == memory_id, memory_profile.c.invalid_us == NEVER]
    _change_some(connection, owner, taken, sa.update(memory_profile).where(*taken).values(invalid_us=at_us))


def end_field(connection: Connection, owner: Principal, name: str, at_us: int) -> None:
    """End the current value of a name, whatever it was taken from."""
    held = [*_of(memory_profile, owner), memory_profile.c.name == name, memory_profile.c.invalid_us == NEVER]
    _change_some(connection, owner, held, sa.update(memory_profile).where(*held).values(invalid_us=at_us))


def restore(connection: Connection, owner: Principal, memory_id: str) -> None:
    """Make the newest value of each name that was taken from a memory current again, unless the name has another."""
    mine, current = _of(memory_profile, owner), memory_profile.alias()
    holds = sa.exists().where(
        current.c.tenant == owner.tenant,
        current.c.subject == owner.subject,
        current.c.name == memory_profile.c.name,
        current.c.invalid_us == NEVER,
    )
    taken = [*mine, memory_profile.c.memory_id == memory_id, ~holds]
    newest = sa.select(memory_profile.c.name, sa.func.max(memory_profile.c.revision)).where(*taken)
    for name, revision in connection.execute(newest.group_by(memory_profile.c.name)).all():
        this = [*mine, memory_profile.c.name == name, memory_profile.c.revision == revision]
        _change_some(connection, owner, this, sa.update(memory_profile).where(*this).values(invalid_us=NEVER))


def _change_some(
    connection: Connection, owner: Principal, which: list[sa.ColumnElement[bool]], statement: sa.Delete | sa.Update
) -> None:
    """Run a statement on existing values under the profile's lock, and increase its revision."""
    if connection.execute(sa.select(memory_profile.c.name).where(*which)).first() is None:
        return
    profile = locked(connection, owner)
    if connection.execute(statement).rowcount:
        connection.execute(
            sa.update(profile_owners).where(*_of(profile_owners, owner)).values(revision=profile.revision + 1)
        )


def _of(table: sa.Table, owner: Principal) -> list[sa.ColumnElement[bool]]:
    return [table.c.tenant == owner.tenant, table.c.subject == owner.subject]


def _remove(connection: Connection, owner: Principal, which: sa.ColumnElement[bool]) -> int:
    return connection.execute(sa.delete(memory_profile).where(*_of(memory_profile, owner), which)).rowcount


def _trim(connection: Connection, owner: Principal, name: str) -> None:
    """Remove the oldest superseded values of a name beyond the number kept."""
    before = [*_of(memory_profile, owner), memory_profile.c.name == name, memory_profile.c.invalid_us != NEVER]
    oldest = connection.execute(
        sa.select(memory_profile.c.revision)
        .where(*before)
        .order_by(memory_profile.c.revision.desc())
        .offset(MAX_SUPERSEDED)
        .limit(1)
    ).scalar_one_or_none()
    if oldest is not None:
        connection.execute(sa.delete(memory_profile).where(*before, memory_profile.c.revision <= oldest))


def _row(owner: Principal, field: ProfileField, revision: int) -> dict[str, object]:
    return {
        "tenant": owner.tenant,
        "subject": owner.subject,
        "name": field.name,
        "revision": revision,
        "value": json.dumps(field.value, ensure_ascii=False).encode(),
        "source": int(field.source),
        "trust": int(field.trust),
        "lineage": json.dumps([[o.thread_id, o.message_id, o.pointer] for o in field.lineage]),
        "memory_id": field.memory_id,
        "valid_us": field.valid_us,
        "invalid_us": field.invalid_us,
    }


def _field(row: Record) -> ProfileField:
    return ProfileField(
        name=row.name,
        value=json.loads(bytes(row.value)),
        source=Source(row.source),
        trust=Trust(row.trust),
        lineage=tuple(Origin(*origin) for origin in json.loads(row.lineage)),
        memory_id=row.memory_id,
        valid_us=row.valid_us,
        invalid_us=row.invalid_us,
    )
