"""Threads, as their owners see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import NotFound
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.model import Owner, Page, StoredRun, StoredThread
from phylactery_agent.runtime.run_lists import before, page_of
from phylactery_agent.runtime.runs import newest_run, run_of
from phylactery_agent.runtime.schema import RUNS, THREADS


@dataclass(frozen=True, slots=True)
class ListedThread:
    """A thread and its newest run, None where no message of it was begun."""

    thread: StoredThread
    run: StoredRun | None


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
                raise no_thread(thread_id)
            return _thread(row, owner)

        return await self._database.read(work)

    async def page(self, owner: Owner, *, size: int, token: str) -> Page[ListedThread]:
        """Answers some of the owner's threads, the newest opened first. Raises InvalidArgument for a foreign token."""
        query = sa.select(THREADS).where(THREADS.c.tenant == owner.tenant, THREADS.c.user_id == owner.user_id)
        if token:
            query = query.where(before(token, THREADS.c.created_us, THREADS.c.thread_key))
        query = query.order_by(THREADS.c.created_us.desc(), THREADS.c.thread_key.desc()).limit(size + 1)

        def work(connection: Connection) -> Page[ListedThread]:
            threads = [_thread(row, owner) for row in connection.execute(query)]
            page = page_of(threads, size, lambda thread: (thread.created_us, owner.thread_key(thread.thread_id)))
            listed = [ListedThread(thread, _newest(connection, owner, thread.thread_id)) for thread in page.rows]
            return Page(listed, page.next_page_token)

        return await self._database.read(work)


def no_thread(thread_id: str) -> NotFound:
    """Answers what is wrong with a thread that is not there, or is another's."""
    return NotFound("THREAD_NOT_FOUND", f"there is no thread '{thread_id}' of yours", metadata={"thread_id": thread_id})


def _newest(connection: Connection, owner: Owner, thread_id: str) -> StoredRun | None:
    row = connection.execute(sa.select(RUNS).where(RUNS.c.run_id == newest_run(owner, thread_id))).one_or_none()
    return None if row is None else run_of(row)


def _thread(row: Row[Any], owner: Owner) -> StoredThread:
    return StoredThread(
        thread_id=row.thread_id,
        owner=owner,
        graph=row.graph,
        first_sequence=row.first_sequence,
        last_sequence=row.last_sequence,
        created_us=row.created_us,
        updated_us=row.updated_us,
    )
