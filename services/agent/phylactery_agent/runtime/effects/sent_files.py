"""Files that the agent sends: events of the thread, stored once per effect, and found again by their id.

An id is the run that sent it and a hash of the effect's key, so the same effect has the same id in every process.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import NotFound
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.crypto import sha256 as hashed
from sqlalchemy.engine import Connection

from phylactery_agent.ports import FileRefusedError, SentFile
from phylactery_agent.runtime.storage.events import SILENT, append_event
from phylactery_agent.runtime.storage.schema import EVENTS
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites

KIND: Final = "file"
_DIGITS: Final = 32


class TurnFiles:
    """Implementation of ports.SentFiles for one turn, under its lease."""

    def __init__(self, writes: TurnWrites) -> None:
        self._writes = writes

    async def send(self, name: str, mime_type: str, size_bytes: int, sha256: str, path: str, *, key: str) -> SentFile:
        """Store the event of a file, once per key; see ports.SentFiles."""
        lease = self._writes.lease
        file = SentFile(file_id_of(lease.run_id, key), name, mime_type, size_bytes, sha256, path)

        def work(connection: Connection, now: int) -> SentFile:
            there = _find(connection, lease.thread_key, file.file_id)
            if there is not None:
                return there
            told = append_event(connection, lease, KIND, asdict(file), once=_once(file.file_id), now_us=now)
            if told == SILENT:
                raise FileRefusedError("HANDED_OFF", "a person has the conversation")
            return file

        sent = await self._writes.write(work)
        reach("agent.send_file.sent")
        return sent


class SentFileStore:
    """Reader of the files that were sent."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, thread_key: str, file_id: str) -> SentFile:
        """Return a file that was sent in a thread. Raise NotFound FILE_NOT_FOUND."""
        found = await self._database.read(lambda connection: _find(connection, thread_key, file_id))
        if found is None:
            raise NotFound("FILE_NOT_FOUND", f"file '{file_id}' not found", metadata={"file_id": file_id})
        return found


def file_id_of(run_id: str, key: str) -> str:
    """Return the id of the file that the effect with this key sends."""
    return f"{run_id}.{hashed(key).removeprefix('sha256:')[:_DIGITS]}"


def _once(file_id: str) -> str:
    return f"{KIND}:{file_id}"


def _find(connection: Connection, thread_key: str, file_id: str) -> SentFile | None:
    query = sa.select(EVENTS.c.payload).where(
        EVENTS.c.run_id == file_id.rpartition(".")[0],
        EVENTS.c.once == _once(file_id),
        EVENTS.c.thread_key == thread_key,
        EVENTS.c.kind == KIND,
    )
    payload: Any = connection.execute(query.limit(1)).scalar()
    return None if payload is None else SentFile(**json.loads(payload))
