"""Threads and their messages in SQL. A thread is named by tenant, subject and thread_id together."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.identity import Principal
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.domain.messages import DEFAULT_LIMITS, Limits, Message, Page, page_length, place
from phylactery_memory.store.tables import messages, threads


class MessageStore:
    """Keeps the transcript of its owners' threads. Raises Unavailable STORE_UNAVAILABLE where the database fails."""

    def __init__(self, database: Database, limits: Limits = DEFAULT_LIMITS) -> None:
        self._database, self._limits = database, limits

    async def append(
        self, owner: Principal, thread_id: str, new: Sequence[Message], now_us: int
    ) -> tuple[int, Sequence[Message]]:
        """Adds messages in order, all or none; answers the thread's last sequence and what was new, once durable.

        Raises AlreadyExists MESSAGE_CONFLICT where a message_id stands with other content, ResourceExhausted
        MESSAGE_LIMIT where there would be more than one may have.
        """

        def work(connection: Connection) -> tuple[int, Sequence[Message]]:
            return _append(connection, owner, thread_id, new, now_us, limits=self._limits)

        try:
            return await self._database.write(work)
        except IntegrityError:
            # Another replica opened the thread between our look and our insert: now its row can be locked.
            return await self._database.write(work)

    async def page(
        self, owner: Principal, thread_id: str, *, before: int | None, page_size: int, max_characters: int
    ) -> Page:
        """Answers the newest messages with a sequence under before (None for all), newest first."""
        return await self._database.read(
            lambda connection: _page(connection, _before(owner, thread_id, before), page_size, max_characters)
        )


def _in_thread(owner: Principal, thread_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(
        messages.c.tenant == owner.tenant, messages.c.subject == owner.subject, messages.c.thread_id == thread_id
    )


def _append(
    connection: Connection, owner: Principal, thread_id: str, new: Sequence[Message], now_us: int, *, limits: Limits
) -> tuple[int, Sequence[Message]]:
    key = {"tenant": owner.tenant, "subject": owner.subject, "thread_id": thread_id}
    this_thread = sa.and_(*(threads.c[name] == value for name, value in key.items()))
    last = connection.execute(sa.select(threads.c.last_sequence).where(this_thread).with_for_update()).scalar()
    if last is None:
        last = 0
        theirs = threads.c.tenant == owner.tenant, threads.c.subject == owner.subject
        limits.check_thread(connection.execute(sa.select(sa.func.count()).where(*theirs)).scalar_one())
        connection.execute(sa.insert(threads).values(**key, last_sequence=0, create_us=now_us, update_us=now_us))
    rows = connection.execute(
        sa.select(messages).where(
            _in_thread(owner, thread_id), messages.c.message_id.in_([message.message_id for message in new])
        )
    )
    placed = place(new, {row.message_id: _message(row) for row in rows}, last)
    if not placed:
        return last, ()
    limits.check_messages(thread_id, placed[-1].sequence)
    connection.execute(
        sa.insert(messages),
        [
            {
                **key,
                "sequence": message.sequence,
                "message_id": message.message_id,
                "role": message.role,
                "run_id": message.run_id,
                "create_us": message.create_us,
                "chars": len(message.content),
                "content": message.content.encode(),
            }
            for message in placed
        ],
    )
    last = placed[-1].sequence
    connection.execute(sa.update(threads).where(this_thread).values(last_sequence=last, update_us=now_us))
    return last, placed


def _before(owner: Principal, thread_id: str, before: int | None) -> sa.ColumnElement[bool]:
    thread = _in_thread(owner, thread_id)
    return thread if before is None else sa.and_(thread, messages.c.sequence < before)


def _page(connection: Connection, wanted: sa.ColumnElement[bool], page_size: int, max_characters: int) -> Page:
    newest_first = messages.c.sequence.desc()
    # Sizes first: the contents of a full page could be fifty times what the page may hold.
    heads = connection.execute(
        sa.select(messages.c.sequence, messages.c.chars).where(wanted).order_by(newest_first).limit(page_size + 1)
    ).all()
    count = page_length([head.chars for head in heads], page_size, max_characters)
    rows = connection.execute(sa.select(messages).where(wanted).order_by(newest_first).limit(count))
    page = [_message(row) for row in rows]
    return Page(page, page[-1].sequence if len(heads) > count else 0)


def _message(row: sa.Row[tuple[object, ...]]) -> Message:
    columns = row._mapping  # noqa: SLF001 - the documented way to read a row by name
    return Message(
        columns["message_id"],
        columns["role"],
        bytes(columns["content"]).decode(),
        columns["run_id"],
        columns["create_us"],
        columns["sequence"],
    )
