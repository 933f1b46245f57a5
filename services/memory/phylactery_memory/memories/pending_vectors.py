"""Memories without a vector, in SQL. A row is removed with its memory, or once it has a vector."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.engine import Connection

from phylactery_memory.memories import index
from phylactery_memory.memories.model import Memory
from phylactery_memory.retrieval.vectors import Vector
from phylactery_memory.tables import memory_owners, pending_vectors, user_memory

BATCH: Final = 32
"""Memories per request. Each failure halves it for its members, so a text that the endpoint refuses ends up alone."""
BATCH_CHARACTERS: Final = 32_000
"""Characters per request beyond the first memory: an endpoint must respond within its timeout."""
FIRST_WAIT_US: Final = 60 * MICROSECONDS
LONGEST_WAIT_US: Final = 3_600 * MICROSECONDS
"""A memory waits FIRST_WAIT_US after its first failure; every failure doubles the wait, up to this maximum."""
_DOUBLINGS: Final = 6

_ITS_MEMORY = sa.and_(
    user_memory.c.owner_id == pending_vectors.c.owner_id, user_memory.c.number == pending_vectors.c.number
)
_DUE = (
    sa.select(
        pending_vectors.c.owner_id,
        pending_vectors.c.number,
        pending_vectors.c.tries,
        user_memory.c.memory_id,
        user_memory.c.text,
    )
    .join(user_memory, _ITS_MEMORY)
    .where(pending_vectors.c.due_us <= sa.bindparam("now_us"))
    .order_by(pending_vectors.c.due_us, pending_vectors.c.owner_id, pending_vectors.c.number)
    .limit(BATCH)
)
_CLAIMED = _DUE.with_for_update(of=pending_vectors, skip_locked=True)


@dataclass(frozen=True, slots=True)
class PendingVector:
    """A memory without a vector. memory_id distinguishes it from one that reuses its numbers after an erasure."""

    owner_id: int
    number: int
    memory_id: str
    text: str
    tries: int


def add(connection: Connection, owner_id: int, memory: Memory) -> None:
    """Record that an existing memory has no vector yet."""
    row = {"owner_id": owner_id, "number": memory.number, "tries": 0, "due_us": memory.create_us}
    connection.execute(sa.insert(pending_vectors).values(**row))


class PendingVectors:
    """The queue. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, now_us: int) -> Sequence[PendingVector]:
        """Return some due memories, postponed as if they had failed, so that no other replica takes them meanwhile."""

        def work(connection: Connection) -> Sequence[PendingVector]:
            batch = _batch(
                [
                    PendingVector(row.owner_id, row.number, row.memory_id, bytes(row.text).decode(), row.tries)
                    for row in connection.execute(_CLAIMED, {"now_us": now_us})
                ]
            )
            for one in batch:
                wait_us = min(FIRST_WAIT_US << min(one.tries, _DOUBLINGS), LONGEST_WAIT_US)
                connection.execute(
                    sa.update(pending_vectors)
                    .where(pending_vectors.c.owner_id == one.owner_id, pending_vectors.c.number == one.number)
                    .values(tries=one.tries + 1, due_us=now_us + wait_us)
                )
            return batch

        if not await self._database.read(lambda connection: connection.execute(_DUE, {"now_us": now_us}).first()):
            return ()  # the usual case, without a write
        return await self._database.write(work)

    async def settle(self, model: str, found: Sequence[tuple[PendingVector, Vector]]) -> int:
        """Store the vectors of memories that still exist and still wait; return their number."""
        by_owner: dict[int, list[tuple[PendingVector, Vector]]] = defaultdict(list)
        for one, vector in found:
            by_owner[one.owner_id].append((one, vector))
        return sum(
            [
                await self._database.write(partial(_settle, owner_id=owner_id, model=model, found=mine))
                for owner_id, mine in by_owner.items()
            ]
        )


def _settle(connection: Connection, owner_id: int, model: str, found: Sequence[tuple[PendingVector, Vector]]) -> int:
    # Every writer to the user's blocks holds this row; after an erasure it does not exist.
    connection.execute(
        sa.select(memory_owners.c.owner_id).where(memory_owners.c.owner_id == owner_id).with_for_update()
    )
    numbers = [one.number for one, _ in found]
    waiting = sa.select(user_memory.c.memory_id).join(pending_vectors, _ITS_MEMORY)
    mine = pending_vectors.c.owner_id == owner_id
    standing = set(connection.scalars(waiting.where(mine, pending_vectors.c.number.in_(numbers))))
    vectors = {one.number: vector for one, vector in found if one.memory_id in standing}
    if vectors:
        index.add_vectors(connection, owner_id, model, vectors)
        connection.execute(sa.delete(pending_vectors).where(mine, pending_vectors.c.number.in_(list(vectors))))
    return len(vectors)


def _batch(due: Sequence[PendingVector]) -> Sequence[PendingVector]:
    """Return the first due memories, as many as one request may hold."""
    batch: list[PendingVector] = []
    most, characters = BATCH, 0
    for one in due:
        most = min(most, max(BATCH >> one.tries, 1))
        characters += len(one.text)
        if batch and (len(batch) >= most or characters > BATCH_CHARACTERS):
            break
        batch.append(one)
    return batch
