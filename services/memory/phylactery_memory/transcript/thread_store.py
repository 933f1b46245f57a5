"""Deletion of a whole thread in SQL, idempotent by request id."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass

import sqlalchemy as sa
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log, note_removed
from phylactery_chassis.errors import STORE_FAILED, AlreadyExists
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_memory.outputs.objects import OutputObjects
from phylactery_memory.outputs.rows import delete, own
from phylactery_memory.tables import messages, outputs, thread_deletions, threads


@dataclass(frozen=True, slots=True)
class Deleted:
    """The number of removed messages and outputs."""

    messages: int
    outputs: int


class ThreadStore:
    """Deletes threads. Raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, objects: OutputObjects | None = None) -> None:
        """``objects`` stores the texts of outputs if the database does not."""
        self._database, self._objects = database, objects

    async def delete(self, owner: Principal, thread_id: str, request_id: str, now_us: int) -> Deleted:
        """Delete the owner's thread and its outputs, also from the log; a repeated request returns the first result.

        Objects of outputs are removed now, or once the object store is available again. Raise AlreadyExists
        REQUEST_CONFLICT if the same request_id named another thread.
        """

        def work(connection: Connection) -> Deleted:
            return _delete(connection, owner, thread_id, request_id, now_us)

        try:
            deleted = await self._database.write(work)
        except IntegrityError:  # another replica received the same request concurrently: its row is visible now
            deleted = await self._database.write(work)
        if deleted.outputs and self._objects is not None:
            with contextlib.suppress(*STORE_FAILED):
                await self._objects.remove_doomed()
        await forget_log(self._database)
        return deleted


def _delete(connection: Connection, owner: Principal, thread_id: str, request_id: str, now_us: int) -> Deleted:
    whose = {"tenant": owner.tenant, "subject": owner.subject}
    asked = connection.execute(
        sa.select(thread_deletions).where(
            thread_deletions.c.tenant == owner.tenant,
            thread_deletions.c.subject == owner.subject,
            thread_deletions.c.request_id == request_id,
        )
    ).one_or_none()
    thread_hash = _hash(owner, thread_id, request_id)
    if asked is not None:
        if asked.thread_hash not in ("", thread_hash):  # rows of an earlier version hold no hash
            raise AlreadyExists(
                "REQUEST_CONFLICT",
                f"request_id '{request_id}' was used for another thread; use a new one",
                metadata={"request_id": request_id},
            )
        return Deleted(asked.messages, asked.outputs)
    # Wait for concurrent appends to the thread.
    connection.execute(sa.select(threads.c.thread_id).where(_of(threads, owner, thread_id)).with_for_update())
    said = connection.execute(sa.delete(messages).where(_of(messages, owner, thread_id))).rowcount
    connection.execute(sa.delete(threads).where(_of(threads, owner, thread_id)))
    note_removed(connection)
    deleted = Deleted(said, delete(connection, *own(owner), outputs.c.thread_id == thread_id))
    connection.execute(
        sa.insert(thread_deletions).values(
            **whose,
            request_id=request_id,
            messages=deleted.messages,
            outputs=deleted.outputs,
            create_us=now_us,
            thread_hash=thread_hash,
        )
    )
    return deleted


def _hash(owner: Principal, thread_id: str, request_id: str) -> str:
    """Return a hash that identifies the thread. It depends on the request, so that it does not reveal the thread id."""
    named = json.dumps([owner.tenant, owner.subject, request_id, thread_id])
    return sha256(named)


def _of(table: sa.Table, owner: Principal, thread_id: str) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.tenant == owner.tenant, table.c.subject == owner.subject, table.c.thread_id == thread_id)
