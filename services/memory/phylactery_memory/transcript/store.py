"""Threads and their messages in SQL. A thread is identified by tenant, subject and thread_id together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowInsert, RowUpdate
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.tables import messages, threads
from phylactery_memory.transcript.model import DEFAULT_LIMITS, Limits, Message, Page, page_length, place

_THREAD = (
    threads.c.tenant == sa.bindparam("of_tenant"),
    threads.c.subject == sa.bindparam("of_subject"),
    threads.c.thread_id == sa.bindparam("of_thread"),
)
_IN_THREAD = (
    messages.c.tenant == sa.bindparam("of_tenant"),
    messages.c.subject == sa.bindparam("of_subject"),
    messages.c.thread_id == sa.bindparam("of_thread"),
)
_LOCK = Query(sa.select(threads.c.last_sequence).where(*_THREAD).with_for_update())
_THREADS = Query(sa.select(sa.func.count().label("threads")).where(*_THREAD[:2]))
_OPEN = RowInsert(threads, "tenant", "subject", "thread_id", "last_sequence", "create_us", "update_us")
_ADD = RowInsert(
    messages,
    "tenant",
    "subject",
    "thread_id",
    "sequence",
    "message_id",
    "role",
    "run_id",
    "create_us",
    "chars",
    "content",
)
_SET_THREAD = RowUpdate(threads, "tenant", "subject", "thread_id")
_NEWEST = sa.bindparam("most", type_=sa.Integer)
_BEFORE = (*_IN_THREAD, messages.c.sequence < sa.bindparam("before"))
_newest_first = messages.c.sequence.desc()
_HEADS = Query(sa.select(messages.c.sequence, messages.c.chars).where(*_BEFORE).order_by(_newest_first).limit(_NEWEST))
_PAGE = Query(sa.select(messages).where(*_BEFORE).order_by(_newest_first).limit(_NEWEST))
_AFTER_ALL = 2**62
"""Above every real sequence, so that all messages are before it."""


@cache
def _named(count: int) -> Query:
    """Return the query for this many messages of a thread by id."""
    ids = [sa.bindparam(f"id_{place}", type_=sa.String) for place in range(count)]
    return Query(sa.select(messages).where(*_IN_THREAD, messages.c.message_id.in_(ids)))


class MessageStore:
    """The transcript of each owner's threads. Raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, limits: Limits = DEFAULT_LIMITS) -> None:
        self._database, self._limits = database, limits

    async def append(
        self, owner: Principal, thread_id: str, new: Sequence[Message], now_us: int
    ) -> tuple[int, Sequence[Message]]:
        """Append messages in order, all or none; return the thread's last sequence and the new messages, once durable.

        Raise AlreadyExists MESSAGE_CONFLICT if a message_id already exists with other content, ResourceExhausted
        MESSAGE_LIMIT if a limit would be exceeded.
        """

        def work(connection: Connection) -> tuple[int, Sequence[Message]]:
            return _append(connection, owner, thread_id, new, now_us, limits=self._limits)

        try:
            return await self._database.write(work)
        except IntegrityError:
            # Another replica created the thread between our read and our insert: its row can be locked now.
            return await self._database.write(work)

    async def page(
        self, owner: Principal, thread_id: str, *, before: int | None, page_size: int, max_characters: int
    ) -> Page:
        """Return the newest messages with a sequence below ``before`` (None for all), newest first."""
        return await self._database.read(
            lambda connection: _page(connection, _where(owner, thread_id), before, page_size, max_characters)
        )


def _where(owner: Principal, thread_id: str) -> dict[str, Any]:
    return {"of_tenant": owner.tenant, "of_subject": owner.subject, "of_thread": thread_id}


def _append(
    connection: Connection, owner: Principal, thread_id: str, new: Sequence[Message], now_us: int, *, limits: Limits
) -> tuple[int, Sequence[Message]]:
    key, where = (owner.tenant, owner.subject, thread_id), _where(owner, thread_id)
    there = _LOCK.one(connection, where)
    last = 0 if there is None else int(there.last_sequence)
    if there is None:
        counted = _THREADS.one(connection, where)
        limits.check_thread(0 if counted is None else int(counted.threads))
        _OPEN.run(connection, [(*key, 0, now_us, now_us)])
    ids = {f"id_{place}": message.message_id for place, message in enumerate(new)}
    rows = _named(len(new)).all(connection, {**where, **ids}) if new else ()
    placed = place(new, {row.message_id: _message(row) for row in rows}, last)
    if not placed:
        return last, ()
    limits.check_messages(thread_id, placed[-1].sequence)
    _ADD.run(connection, [(*key, *_row(message)) for message in placed])
    last = placed[-1].sequence
    _SET_THREAD.run(connection, *key, last_sequence=last, update_us=now_us)
    return last, placed


def _page(
    connection: Connection, where: dict[str, Any], before: int | None, page_size: int, max_characters: int
) -> Page:
    wanted = {**where, "before": _AFTER_ALL if before is None else before}
    # Sizes first: the contents of a full page may be fifty times what the page may hold.
    heads = _HEADS.all(connection, {**wanted, "most": page_size + 1})
    if not heads:
        return Page([], 0)
    count = page_length([head.chars for head in heads], page_size, max_characters)
    page = [_message(row) for row in _PAGE.all(connection, {**wanted, "most": count})]
    return Page(page, page[-1].sequence if len(heads) > count else 0)


def _row(message: Message) -> tuple[Any, ...]:
    """Return a message as a row in the column order of _ADD, after its thread."""
    said = (message.sequence, message.message_id, message.role, message.run_id, message.create_us)
    return (*said, len(message.content), message.content.encode())


def _message(row: Record) -> Message:
    return Message(row.message_id, row.role, bytes(row.content).decode(), row.run_id, row.create_us, row.sequence)
