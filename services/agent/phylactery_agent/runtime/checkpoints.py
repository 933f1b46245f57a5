"""LangGraph's own store, in a file of its own, with a serializer that loads plain data and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiosqlite
import ormsgpack
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from phylactery_chassis.errors import DomainError, StartError, StoreFull, Unavailable
from phylactery_chassis.store_faults import is_full

CHECKPOINT_FILE = "checkpoints.db"


class NotPlainError(ValueError):
    """A checkpoint holds, or would hold, something other than plain data."""


_OPTIONS = ormsgpack.OPT_NON_STR_KEYS | ormsgpack.OPT_REPLACE_SURROGATES


def _refuse(_code: int, _data: bytes) -> Any:
    raise NotPlainError("a checkpoint holds an object; only plain data is loaded")


def _plain(value: Any) -> str:
    """Answers what stands for the one object LangGraph itself writes, a node's exception: its type, not its text."""
    if isinstance(value, BaseException):
        return type(value).__name__
    raise NotPlainError(f"the graph's state holds a {type(value).__name__}; only plain data is stored")


class PlainSerializer:
    """MessagePack of plain data. LangGraph's default would import and call what a stored blob names."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Answers the bytes. Raises NotPlainError."""
        try:
            return "msgpack", ormsgpack.packb(obj, default=_plain, option=_OPTIONS)
        except ormsgpack.MsgpackEncodeError as error:
            raise NotPlainError(f"the graph's state cannot be stored: {error}") from error

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Answers the data. Raises NotPlainError for any other form, pickle and JSON constructors included."""
        kind, blob = data
        if kind != "msgpack":
            raise NotPlainError(f"a checkpoint has the form '{kind}'; only msgpack of plain data is loaded")
        try:
            return ormsgpack.unpackb(blob, ext_hook=_refuse, option=ormsgpack.OPT_NON_STR_KEYS)
        except ormsgpack.MsgpackDecodeError as error:
            raise NotPlainError("a checkpoint is damaged") from error


class Checkpoints(AsyncSqliteSaver):
    """One commit per superstep. A node that ran and whose checkpoint was not written runs again, here as anywhere."""

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keeps nothing: results between supersteps matter to nodes that run side by side, and ours never do."""

    async def forget(self, thread_key: str) -> int:
        """Drops every checkpoint of a thread, and answers how many there were. Raises Unavailable."""
        query = "SELECT count(*) FROM checkpoints WHERE thread_id = ?"
        try:
            async with self.lock, self.conn.execute(query, (thread_key,)) as cursor:
                row = await cursor.fetchone()
            await self.adelete_thread(thread_key)
        except sqlite3.Error as error:
            raise _fault(error) from None
        return int(row[0]) if row else 0

    async def forget_log(self) -> None:
        """Empties the write-ahead log, where dropped checkpoints still stand. Raises Unavailable."""
        try:
            async with self.lock, self.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)") as cursor:
                row = await cursor.fetchone()
        except sqlite3.Error as error:
            raise _fault(error) from None
        if row is None or row[0]:
            raise Unavailable(
                "STORE_UNAVAILABLE",
                "everything is erased, and a reader still holds old states; ask again with the same request_id",
            )


def _fault(error: sqlite3.Error) -> DomainError:
    if is_full(error):
        return StoreFull("the file of states")
    return Unavailable(
        "STORE_UNAVAILABLE", f"the file of states did not take it ({type(error).__name__}); try again in a moment"
    )


@asynccontextmanager
async def open_checkpoints(folder: Path) -> AsyncIterator[Checkpoints]:
    """Opens <folder>/checkpoints.db, durable at every commit, and closes it after the block.

    Raises StartError when the file cannot be used.
    """
    path = folder / CHECKPOINT_FILE
    async with AsyncExitStack() as stack:
        try:
            connection = await stack.enter_async_context(aiosqlite.connect(path))
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000", "secure_delete=ON"):
                await connection.execute(f"PRAGMA {pragma}")
            saver = Checkpoints(connection, serde=PlainSerializer())
            await saver.setup()
        except sqlite3.Error as error:
            raise StartError(
                f"{path} cannot be used for the graph's state ({error}); "
                "restore a backup of the data folder, or name another in AGENT_DATA_DIR"
            ) from None
        yield saver
