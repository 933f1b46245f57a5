"""Memories of users in SQL, with their index. The principal is part of every query.

Every write locks the owner's row first, so that it is based on what it read, also with several replicas.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.columns import JSON_TUPLE, Columns, Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import note_removed
from phylactery_chassis.db.statements import Query, Record
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.memories import index
from phylactery_memory.memories.model import Kind, Layer, Memory, Origin, Source, Trust
from phylactery_memory.retrieval.words import INDEX_VERSION
from phylactery_memory.tables import memory_owners, memory_postings, memory_records, user_memory

T = TypeVar("T")

_REBUILD_AT_ONCE = 500
_MEMORY = Columns(
    Memory,
    user_memory,
    forms={
        "text": Form(lambda data: bytes(data).decode(), str.encode),
        "layer": Form(Layer, int),
        "kind": Form(Kind, int),
        "source": Form(Source, int),
        "trust": Form(Trust, int),
        "lineage": Form(
            lambda text: tuple(Origin(*origin) for origin in json.loads(text)),
            lambda lineage: json.dumps([[o.thread_id, o.message_id, o.pointer] for o in lineage]),
        ),
        "supersedes": JSON_TUPLE,
    },
)

_owner = sa.select(memory_owners).where(
    memory_owners.c.tenant == sa.bindparam("of_tenant"), memory_owners.c.subject == sa.bindparam("of_subject")
)
_OWNER, _LOCKED_OWNER = Query(_owner), Query(_owner.with_for_update())


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of a query; 0, empty and None do not filter. at_us None includes memories that no longer hold."""

    at_us: int | None = None
    thread_id: str = ""
    kind: int = 0
    layer: int = 0
    min_trust: int = 0
    about: str = ""
    attribute: str = ""


class MemoryRepository:
    """One user's memories inside one transaction. Created by MemoryStore; for writing, with the owner's row locked."""

    def __init__(self, connection: Connection, owner: Principal, row: Record) -> None:
        self.connection = connection
        self.owner = owner
        self.owner_id: int = row.owner_id
        self.count: int = row.memories
        self._last_number: int = row.last_number

    def get(self, memory_id: str) -> Memory | None:
        """Return a memory of this user."""
        return self._first(user_memory.c.memory_id == memory_id)

    def same_text(self, content_hash: str) -> list[Memory]:
        """Return the memories with a text, the oldest first."""
        return self._all(user_memory.c.content_hash == content_hash)

    def facts(self, about: str, attribute: str) -> list[Memory]:
        """Return every memory with this attribute of this subject, the oldest first."""
        return self._all(user_memory.c.about == about, user_memory.c.attribute == attribute)

    def by_number(self, numbers: Sequence[int]) -> dict[int, Memory]:
        """Return memories by their index numbers."""
        return {memory.number: memory for memory in self._all(user_memory.c.number.in_(numbers))}

    def page(self, wanted: Filter, *, before: int | None, limit: int) -> list[Memory]:
        """Return matching memories numbered below ``before`` (None for all), most recently written first."""
        conditions = _conditions(wanted)
        if before is not None:
            conditions.append(user_memory.c.number < before)
        rows = self.connection.execute(
            sa.select(user_memory)
            .where(user_memory.c.owner_id == self.owner_id, *conditions)
            .order_by(user_memory.c.number.desc())
            .limit(limit)
        )
        return [_MEMORY.read(row) for row in rows]

    def add(self, new: Sequence[Memory]) -> list[Memory]:
        """Add memories and their words; return them with their numbers."""
        numbered = [replace(memory, number=self._last_number + at) for at, memory in enumerate(new, 1)]
        self.connection.execute(sa.insert(user_memory), [_row(self.owner_id, memory) for memory in numbered])
        index.add(self.connection, self.owner_id, numbered)
        self._last_number += len(new)
        self.count += len(new)
        self._save()
        return numbered

    def put(self, memory: Memory) -> None:
        """Update an existing memory; its text and valid_us never change."""
        row = _row(self.owner_id, memory)
        self.connection.execute(
            sa.update(user_memory)
            .where(user_memory.c.owner_id == self.owner_id, user_memory.c.number == memory.number)
            .values({name: value for name, value in row.items() if name not in ("owner_id", "number")})
        )
        index.replace_record(self.connection, memory, self.owner_id)

    def remove(self, memory: Memory) -> None:
        """Remove a memory with its words and vectors."""
        self.connection.execute(
            sa.delete(user_memory).where(user_memory.c.owner_id == self.owner_id, user_memory.c.number == memory.number)
        )
        index.remove(self.connection, self.owner_id, memory)
        note_removed(self.connection)
        self.count -= 1
        self._save()

    def rebuild(self) -> None:
        """Rebuild the index of words from the texts."""
        for table in (memory_postings, memory_records):
            self.connection.execute(sa.delete(table).where(table.c.owner_id == self.owner_id))
        after = 0
        while standing := self._all(user_memory.c.number > after, limit=_REBUILD_AT_ONCE):
            index.add(self.connection, self.owner_id, standing)
            after = standing[-1].number
        self._save()

    def _save(self) -> None:
        self.connection.execute(
            sa.update(memory_owners)
            .where(memory_owners.c.owner_id == self.owner_id)
            .values(last_number=self._last_number, memories=self.count, index_version=INDEX_VERSION)
        )

    def _first(self, *conditions: sa.ColumnElement[bool]) -> Memory | None:
        found = self._all(*conditions, limit=1)
        return found[0] if found else None

    def _all(self, *conditions: sa.ColumnElement[bool], limit: int | None = None) -> list[Memory]:
        rows = self.connection.execute(
            sa.select(user_memory)
            .where(user_memory.c.owner_id == self.owner_id, *conditions)
            .order_by(user_memory.c.number)
            .limit(limit)
        )
        return [_MEMORY.read(row) for row in rows]


class MemoryStore:
    """The memories of their owners. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, owner: Principal, work: Callable[[MemoryRepository], T]) -> T:
        """Run work on the owner's memories and return once it is durable."""
        try:
            return await self._database.write(lambda connection: work(_locked(connection, owner)))
        except IntegrityError:
            # Another replica created the owner's row between our read and our insert: it can be locked now.
            return await self._database.write(lambda connection: work(_locked(connection, owner)))

    async def read(self, owner: Principal, work: Callable[[MemoryRepository], T]) -> T | None:
        """Run work on a snapshot of the owner's memories; None if there was never one."""

        def run(connection: Connection) -> T | None:
            row = _OWNER.one(connection, _named(owner))
            return None if row is None else work(MemoryRepository(connection, owner, row))

        return await self._database.read(run)

    async def ask(self, work: Callable[[Connection], T]) -> T:
        """Run read-only work that reads other tables than these."""
        return await self._database.read(work)


def _named(owner: Principal) -> dict[str, str]:
    return {"of_tenant": owner.tenant, "of_subject": owner.subject}


def _locked(connection: Connection, owner: Principal) -> MemoryRepository:
    row = _LOCKED_OWNER.one(connection, _named(owner))
    if row is None:
        connection.execute(
            sa.insert(memory_owners).values(
                tenant=owner.tenant, subject=owner.subject, last_number=0, memories=0, index_version=INDEX_VERSION
            )
        )
        row = _LOCKED_OWNER.one(connection, _named(owner))
        assert row is not None, "what was just written is there"
    shelf = MemoryRepository(connection, owner, row)
    if row.index_version != INDEX_VERSION:
        shelf.rebuild()
    return shelf


def _conditions(wanted: Filter) -> list[sa.ColumnElement[bool]]:
    columns = user_memory.c
    conditions = [
        columns[name] == value
        for name, value in (
            ("thread_id", wanted.thread_id),
            ("kind", wanted.kind),
            ("layer", wanted.layer),
            ("about", wanted.about),
            ("attribute", wanted.attribute),
        )
        if value
    ]
    if wanted.min_trust:
        conditions.append(columns.trust >= wanted.min_trust)
    if wanted.at_us is not None:
        conditions += [columns.valid_us <= wanted.at_us, columns.invalid_us > wanted.at_us]
    return conditions


def _row(owner_id: int, memory: Memory) -> dict[str, object]:
    return {"owner_id": owner_id, "content_hash": memory.content_hash, **_MEMORY.named(memory)}
