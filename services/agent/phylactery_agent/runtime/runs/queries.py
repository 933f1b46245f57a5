"""A user's runs and their ledger, newest first, and the nodes of one run in their order, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from phylactery_chassis.db.columns import JSON_TUPLE, Columns
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import NotFound
from phylactery_chassis.rpc.paging import decode_token, encode_token
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.runs.store import of_owner, owned_run, run_of, standing_run, tool_call_of, with_thread
from phylactery_agent.runtime.storage.records import Owner, Page, StoredRun, StoredStep, StoredThread, StoredToolCall
from phylactery_agent.runtime.storage.schema import RUNS, STEPS, THREADS, TOOL_CALLS

T = TypeVar("T")
_STEP = Columns(StoredStep, STEPS, forms={"next_nodes": JSON_TUPLE})
_THREAD = Columns(StoredThread, THREADS, besides=("owner",))


class RunLists:
    """Lists. Every method raises InvalidArgument for a page_token of another list."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def runs(self, owner: Owner, *, thread_id: str, status: str, size: int, token: str) -> Page[StoredRun]:
        """Return the owner's runs; an empty thread_id or status names all."""
        query = of_owner(owner)
        if thread_id:
            query = query.where(RUNS.c.thread_key == owner.thread_key(thread_id))
        if status:
            query = query.where(RUNS.c.status == status)
        if token:
            query = query.where(before(token, RUNS.c.created_us, RUNS.c.run_id))
        query = query.order_by(RUNS.c.created_us.desc(), RUNS.c.run_id.desc()).limit(size + 1)

        def work(connection: Connection) -> Page[StoredRun]:
            found = [run_of(row) for row in connection.execute(query)]
            return page_of(found, size, lambda run: (run.created_us, run.run_id))

        return await self._database.read(work)

    async def tool_calls(self, owner: Owner, *, state: str, size: int, token: str) -> Page[StoredToolCall]:
        """Return the ledger of all the owner's runs; an empty state names all."""
        query = with_thread().where(TOOL_CALLS.c.tenant == owner.tenant, TOOL_CALLS.c.user_id == owner.user_id)
        if state:
            query = query.where(TOOL_CALLS.c.state == state)
        key = (TOOL_CALLS.c.created_us, TOOL_CALLS.c.run_id, TOOL_CALLS.c.tool_call_id)
        if token:
            query = query.where(before(token, *key))
        query = query.order_by(*(column.desc() for column in key)).limit(size + 1)

        def work(connection: Connection) -> Page[StoredToolCall]:
            found = [tool_call_of(row) for row in connection.execute(query)]
            return page_of(found, size, lambda call: (call.created_us, call.run_id, call.tool_call_id))

        return await self._database.read(work)

    async def steps(self, owner: Owner, run_id: str, *, size: int, token: str) -> Page[StoredStep]:
        """Return the nodes one of the owner's runs executed, oldest first. Raise NotFound RUN_NOT_FOUND."""
        key = (STEPS.c.superstep, STEPS.c.position)
        query = sa.select(STEPS).where(STEPS.c.run_id == run_id)
        if token:
            after = (sa.literal(part) for part in decode_token(token, int, int))
            query = query.where(sa.tuple_(*key) > sa.tuple_(*after))
        query = query.order_by(*key).limit(size + 1)

        def work(connection: Connection) -> Page[StoredStep]:
            owned_run(connection, owner, run_id)
            found = [_STEP.read(row) for row in connection.execute(query)]
            return page_of(found, size, lambda step: (step.superstep, step.position))

        return await self._database.read(work)


def before(token: str, *columns: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Return the condition for rows after a place in an order that goes down: a time, then names."""
    parts = decode_token(token, int, *([str] * (len(columns) - 1)))
    return sa.tuple_(*columns) < sa.tuple_(*(sa.literal(part) for part in parts))


def page_of(found: list[T], size: int, place: Any) -> Page[T]:
    """Return the page of what was found, one more than asked for where there is more; place says where a row is."""
    more = len(found) > size
    rows = found[:size]
    return Page(rows, encode_token(*place(rows[-1])) if more else "")


@dataclass(frozen=True, slots=True)
class ListedThread:
    """A thread and the run that tells where it stands, None where no message of it was begun."""

    thread: StoredThread
    run: StoredRun | None


class ThreadStore:
    """Reads threads."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, owner: Owner, thread_id: str) -> StoredThread:
        """Return one of the owner's threads. Raise NotFound THREAD_NOT_FOUND."""

        def work(connection: Connection) -> StoredThread:
            row = connection.execute(
                sa.select(THREADS).where(THREADS.c.thread_key == owner.thread_key(thread_id))
            ).one_or_none()
            if row is None:
                raise no_thread(thread_id)
            return _THREAD.read(row, owner=owner)

        return await self._database.read(work)

    async def page(self, owner: Owner, *, size: int, token: str) -> Page[ListedThread]:
        """Return some of the owner's threads, the newest opened first. Raise InvalidArgument for a foreign token."""
        query = sa.select(THREADS).where(THREADS.c.tenant == owner.tenant, THREADS.c.user_id == owner.user_id)
        if token:
            query = query.where(before(token, THREADS.c.created_us, THREADS.c.thread_key))
        query = query.order_by(THREADS.c.created_us.desc(), THREADS.c.thread_key.desc()).limit(size + 1)

        def work(connection: Connection) -> Page[ListedThread]:
            threads = [_THREAD.read(row, owner=owner) for row in connection.execute(query)]
            page = page_of(threads, size, lambda thread: (thread.created_us, owner.thread_key(thread.thread_id)))
            listed = [ListedThread(thread, standing_run(connection, owner, thread.thread_id)) for thread in page.rows]
            return Page(listed, page.next_page_token)

        return await self._database.read(work)


def no_thread(thread_id: str) -> NotFound:
    """Return what is wrong with a thread that is not there, or is another's."""
    return NotFound("THREAD_NOT_FOUND", f"thread '{thread_id}' not found", metadata={"thread_id": thread_id})
