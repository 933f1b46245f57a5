"""A user's runs and their ledger, newest first, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.paging import decode_token, encode_token
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.model import Owner, StoredRun, StoredToolCall
from phylactery_agent.runtime.runs import of_owner, run_of, tool_call_of, with_thread
from phylactery_agent.runtime.schema import RUNS, TOOL_CALLS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and how to ask for those after them; the token is empty where there are none."""

    rows: Sequence[T]
    next_page_token: str


class RunLists:
    """Lists. Every method raises InvalidArgument for a page_token of another list."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def runs(self, owner: Owner, *, thread_id: str, status: str, size: int, token: str) -> Page[StoredRun]:
        """Answers the owner's runs; an empty thread_id or status names all."""
        query = of_owner(owner)
        if thread_id:
            query = query.where(RUNS.c.thread_key == owner.thread_key(thread_id))
        if status:
            query = query.where(RUNS.c.status == status)
        if token:
            query = query.where(_before(token, RUNS.c.created_us, RUNS.c.run_id))
        query = query.order_by(RUNS.c.created_us.desc(), RUNS.c.run_id.desc()).limit(size + 1)

        def work(connection: Connection) -> Page[StoredRun]:
            found = [run_of(row) for row in connection.execute(query)]
            return _page(found, size, lambda run: (run.created_us, run.run_id))

        return await self._database.read(work)

    async def tool_calls(self, owner: Owner, *, state: str, size: int, token: str) -> Page[StoredToolCall]:
        """Answers the ledger of all the owner's runs; an empty state names all."""
        query = with_thread().where(RUNS.c.tenant == owner.tenant, RUNS.c.user_id == owner.user_id)
        if state:
            query = query.where(TOOL_CALLS.c.state == state)
        key = (TOOL_CALLS.c.created_us, TOOL_CALLS.c.run_id, TOOL_CALLS.c.tool_call_id)
        if token:
            query = query.where(_before(token, *key))
        query = query.order_by(*(column.desc() for column in key)).limit(size + 1)

        def work(connection: Connection) -> Page[StoredToolCall]:
            found = [tool_call_of(row) for row in connection.execute(query)]
            return _page(found, size, lambda call: (call.created_us, call.run_id, call.tool_call_id))

        return await self._database.read(work)


def _before(token: str, *columns: sa.Column[Any]) -> sa.ColumnElement[bool]:
    """Answers the condition for rows after a place in an order that goes down: a time, then names."""
    parts = decode_token(token, int, *([str] * (len(columns) - 1)))
    return sa.tuple_(*columns) < sa.tuple_(*(sa.literal(part) for part in parts))


def _page(found: list[T], size: int, place: Any) -> Page[T]:
    more = len(found) > size
    rows = found[:size]
    return Page(rows, encode_token(*place(rows[-1])) if more else "")
