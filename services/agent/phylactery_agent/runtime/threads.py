"""Threads, as their owners see them."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.errors import NotFound
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.model import Owner, StoredThread
from phylactery_agent.runtime.schema import THREADS


class ThreadStore:
    """Reads threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: Owner, thread_id: str) -> StoredThread:
        """Answers one of the owner's threads. Raises NotFound THREAD_NOT_FOUND."""

        def work(connection: Connection) -> StoredThread:
            row = connection.execute(
                sa.select(THREADS).where(THREADS.c.thread_key == owner.thread_key(thread_id))
            ).one_or_none()
            if row is None:
                raise NotFound(
                    "THREAD_NOT_FOUND", f"there is no thread '{thread_id}' of yours", metadata={"thread_id": thread_id}
                )
            return StoredThread(
                thread_id=row.thread_id,
                owner=owner,
                graph=row.graph,
                first_sequence=row.first_sequence,
                last_sequence=row.last_sequence,
                created_us=row.created_us,
                updated_us=row.updated_us,
            )

        return await self._database.read(work)
