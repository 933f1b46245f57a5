"""The saver: one ordered writer with group commit, a row per checkpoint, a row per changed value.

What LangGraph writes within one turn of the event loop (a task's results and the checkpoint they lead to) shares one
transaction; what other threads write at the same moment joins it. The newest checkpoint is the one stored last: each
thread counts its own, so no clock is asked. A turn gives its checkpoints to a holder, which writes them with what first
rests on them and proves its lease in the same transaction: see ``held_by``.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DataLoss, Unavailable
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from phylactery_agent.checkpoints import rows
from phylactery_agent.checkpoints.rows import NEWEST, Listing, Place, Row, Write
from phylactery_agent.checkpoints.serializer import NotPlainError, PlainSerializer, pack, unpack

T = TypeVar("T")


class Holder(Protocol):
    """Writes a checkpoint later, with what first rests on it, in one transaction and under its own fence."""

    def hold(self, work: Callable[[Connection, int], None], *, slot: object, kept: Any) -> None:
        """Take a write in the place of what was held in this slot."""
        ...

    def held(self, slot: object) -> Any:
        """Return what was given as ``kept`` with the write that waits in a slot, or None."""
        ...

    async def flush(self) -> None:
        """Write what is held."""
        ...


_HOLDER: ContextVar[Holder | None] = ContextVar("phylactery_holder", default=None)
_VERSION_BITS: Final = 30
_INLINE_CHARACTERS = 200
"""A text up to here lies in the checkpoint itself: a row of its own would take more."""
_NO_TASK: Final = "00000000-0000-0000-0000-000000000000"
"""The task LangGraph names for what no node wrote."""
_RESULTS: Final = ""
"""The channel of a row that holds all results of a task, each with its own; no channel of a graph has this name."""
_PAIR: Final = 2
_LIST_PAGE = 50
_TRIES = 50


@contextlib.contextmanager
def held_by(holder: Holder) -> Iterator[None]:
    """Give every checkpoint made in the block, and by tasks begun in it, to a holder instead of writing it at once.

    Of the checkpoints of a line that wait together only the last is written: the others are steps nobody heard of.
    Its slot is a rows.Place.
    """
    token = _HOLDER.set(holder)
    try:
        yield
    finally:
        _HOLDER.reset(token)


@dataclass(frozen=True, slots=True)
class _Packed:
    """A checkpoint on its way to the store: its body, the values that have rows of their own, and which it names."""

    body: bytes
    blobs: dict[tuple[str, str], bytes]
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A checkpoint that a holder has: the row, and every value it names that is not stored yet."""

    row: Row
    blobs: dict[tuple[str, str], bytes]

    def write(self, connection: Connection, _now_us: int) -> None:
        """Store it."""
        rows.put(connection, self.row, self.blobs)


class Checkpoints(BaseCheckpointSaver[int]):
    """The saver. Asynchronous alone; every method raises Unavailable STORE_UNAVAILABLE where the store fails.

    With keep_writes False nothing is kept between checkpoints: results of a task matter only where others run beside
    it and fail, and a graph whose nodes never do is spared the rows.
    """

    def __init__(self, database: Database, *, keep_writes: bool = True) -> None:
        super().__init__(serde=PlainSerializer())
        self._database, self._keep_writes = database, keep_writes

    def get_next_version(self, current: int | None, channel: None) -> int:  # noqa: ARG002 - LangGraph's signature
        """Return a version above the current one that no other branch of the thread can have met."""
        count = (current or 0) >> _VERSION_BITS
        return (count + 1 << _VERSION_BITS) | secrets.randbits(_VERSION_BITS)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, durably, as the newest of its line. Raise NotPlainError."""
        place = _place(config)
        told = get_serializable_checkpoint_metadata(config, metadata)
        packed = _pack(checkpoint, new_versions)
        row = Row(
            place,
            0,
            checkpoint["id"],
            get_checkpoint_id(config) or "",
            str(told.get("run_id") or ""),
            packed.body,
            pack(told),
        )
        holder = _HOLDER.get()
        if holder is None:
            await self._write(lambda connection: rows.put(connection, row, packed.blobs))
        else:
            _hold(holder, row, packed)
        return _config(place, checkpoint["id"])

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote on top of a checkpoint, durably. Raise NotPlainError."""
        if not self._keep_writes:
            return
        place, checkpoint_id = _place(config), get_checkpoint_id(config) or ""
        kept = _kept(writes, task_id, task_path)
        replace = all(one.position < 0 for one in kept)
        await self._write(lambda connection: rows.put_writes(connection, place, checkpoint_id, kept, replace=replace))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint named, or the newest; None where there is none.

        Raise NotPlainError for what is no plain data, and DataLoss where a value is missing.
        """
        place, checkpoint_id = _place(config), get_checkpoint_id(config) or ""
        holder = _HOLDER.get()
        if holder is not None and holder.held(place) is not None:
            await holder.flush()
        # most runs begin with nothing: a server is asked that in one question, and outside any transaction
        found = await self._database.read_quickly(
            lambda connection: rows.find(connection, place, checkpoint_id), one=True
        )
        if found is None:
            return None
        return await self._database.read_quickly(lambda connection: _find(connection, place, checkpoint_id))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, newest first, whose metadata holds what the filter says."""
        named = (config or {}).get("configurable", {})
        thread_id, namespace = named.get("thread_id"), named.get("checkpoint_ns")
        below = await self._sequence_of(thread_id, namespace, before)
        asked = Listing(thread_id, namespace, named.get("checkpoint_id"), below)
        after: Row | None = None
        answered = 0
        while limit is None or answered < limit:
            found = await self._database.read(lambda connection, after=after: _list(connection, asked, after))  # type: ignore[misc]
            for row, one in found:
                if answered != limit and _fits(one.metadata, filter):
                    answered += 1
                    yield one
                after = row
            if len(found) < _LIST_PAGE:
                return

    async def _sequence_of(self, thread_id: str | None, namespace: str | None, before: RunnableConfig | None) -> int:
        """Return the place in the order of the checkpoint others must come before."""
        named = (before or {}).get("configurable", {})
        checkpoint_id = named.get("checkpoint_id")
        if not checkpoint_id:
            return NEWEST
        place = Place(named.get("thread_id") or thread_id or "", named.get("checkpoint_ns") or namespace or "")
        row = await self._database.read_quickly(lambda connection: rows.find(connection, place, checkpoint_id))
        return 0 if row is None else row.sequence

    async def adelete_thread(self, thread_id: str) -> None:
        """Drop everything of a thread."""
        await self.forget(thread_id)

    async def forget(self, thread_id: str) -> int:
        """Drop everything of a thread, and return how many checkpoints there were."""
        return await self._write(lambda connection: rows.delete_thread(connection, thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Drop the checkpoints some runs made; values of theirs that later ones share stay."""
        await self._write(lambda connection: rows.delete_runs(connection, run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another; what stood under that name is dropped first."""

        def work(connection: Connection) -> None:
            if source_thread_id != target_thread_id:
                rows.delete_thread(connection, target_thread_id)
                rows.copy_thread(connection, source_thread_id, target_thread_id)

        await self._write(work)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop what threads need no more: all but the newest of each line, or everything with strategy "delete".

        Raise ValueError for another strategy.
        """
        if strategy not in {"keep_latest", "delete"}:
            raise ValueError(f"there is no strategy {strategy!r}; keep_latest and delete are")

        def work(connection: Connection) -> None:
            for thread_id in thread_ids if strategy == "delete" else ():
                rows.delete_thread(connection, thread_id)
            for place in rows.lines_of(connection, thread_ids) if strategy == "keep_latest" else ():
                newest = rows.find(connection, place, "")
                if newest is not None:
                    rows.keep_only(connection, place, newest, _body(newest)["blobs"])

        await self._write(work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        for _ in range(_TRIES):
            # another process may take the next place in the thread's order at that moment: then it shows
            with contextlib.suppress(IntegrityError):
                return await self._database.write(work)
        raise Unavailable("STORE_UNAVAILABLE", "another process writes the same thread faster; try again in a moment")


def _place(config: RunnableConfig) -> Place:
    named = config["configurable"]
    return Place(named["thread_id"], named.get("checkpoint_ns", ""))


def _config(place: Place, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": place.thread_id,
            "checkpoint_ns": place.namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def _kept(writes: Sequence[tuple[str, Any]], task_id: str, task_path: str) -> list[Write]:
    """Return the rows of what a task wrote: one for its results, which come once, and one for each special value.

    What is written for no task comes again and again, longer each time, and what stands there of it stays: one each.
    """
    special = any(channel in WRITES_IDX_MAP for channel, _ in writes)
    if writes and not special and task_id != _NO_TASK:
        return [Write(task_id, 0, task_path, _RESULTS, pack(list(writes)))]
    return [
        Write(task_id, WRITES_IDX_MAP.get(channel, number), task_path, channel, pack(value))
        for number, (channel, value) in enumerate(writes)
    ]


def _values_of(write: Write) -> list[tuple[str, str, Any]]:
    """Return task, channel and value of what a row of writes holds."""
    value = unpack(write.body)
    if write.channel != _RESULTS:
        return [(write.task_id, write.channel, value)]
    if not isinstance(value, list) or not all(isinstance(one, list) and len(one) == _PAIR for one in value):
        raise NotPlainError("what a task wrote is damaged")
    return [(write.task_id, channel, one) for channel, one in value]


def _small(value: Any) -> bool:
    """Return whether a value lies in the checkpoint itself; the same value always does, or never."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) <= _INLINE_CHARACTERS
    return value is None or kind in {bool, int, float} or (kind in {list, dict, tuple} and not value)


def _pack(checkpoint: Checkpoint, new_versions: ChannelVersions) -> _Packed:
    """Pack a checkpoint: small values inside, of the others those that are new.

    A value whose version is not new was stored with the checkpoint that made it so.
    """
    values, versions = checkpoint["channel_values"], checkpoint["channel_versions"]
    inside: dict[str, Any] = {}
    outside: dict[str, str] = {}
    blobs: dict[tuple[str, str], bytes] = {}
    for channel, value in values.items():
        if channel not in versions or _small(value):
            inside[channel] = value
            continue
        outside[channel] = version = str(versions[channel])
        if channel in new_versions:
            blobs[channel, version] = pack(value)
    body: dict[str, Any] = {**checkpoint, "channel_values": inside}
    return _Packed(pack({"checkpoint": body, "blobs": outside}), blobs, outside)


def _hold(holder: Holder, row: Row, packed: _Packed) -> None:
    """Give a checkpoint to a holder, with the values it still names of the one that waits there, which it replaces."""
    before: _Waiting | None = holder.held(row.place)
    waiting = _Waiting(row, packed.blobs)
    if before is not None:
        both = before.blobs | packed.blobs
        named = {key: body for key, body in both.items() if packed.names.get(key[0]) == key[1]}
        waiting = _Waiting(replace(row, parent_id=before.row.parent_id), named)
    holder.hold(waiting.write, slot=row.place, kept=waiting)


def _body(row: Row) -> dict[str, Any]:
    body = unpack(row.body)
    if not isinstance(body, dict) or not {"checkpoint", "blobs"} <= body.keys():
        raise NotPlainError("a checkpoint is damaged")
    return body


def _find(connection: Connection, place: Place, checkpoint_id: str) -> CheckpointTuple | None:
    row = rows.find(connection, place, checkpoint_id)
    return None if row is None else _tuple(connection, row)


def _tuple(connection: Connection, row: Row) -> CheckpointTuple:
    """Put a checkpoint together again."""
    body = _body(row)
    checkpoint, wanted = body["checkpoint"], body["blobs"]
    blobs = rows.blobs_of(connection, row.place, wanted)
    missing = wanted.keys() - blobs.keys()
    if missing:
        raise DataLoss(
            "INTERNAL",
            f"the values of {len(missing)} channels of a stored run are missing: restore a backup of the database",
        )
    checkpoint["channel_values"] |= {channel: unpack(blob) for channel, blob in blobs.items()}
    return CheckpointTuple(
        config=_config(row.place, row.checkpoint_id),
        checkpoint=checkpoint,
        metadata=unpack(row.metadata),
        parent_config=_config(row.place, row.parent_id) if row.parent_id else None,
        pending_writes=[
            value for one in rows.writes_of(connection, row.place, row.checkpoint_id) for value in _values_of(one)
        ],
    )


def _list(connection: Connection, asked: Listing, after: Row | None) -> list[tuple[Row, CheckpointTuple]]:
    return [(row, _tuple(connection, row)) for row in rows.page(connection, asked, after, _LIST_PAGE)]


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(metadata.get(name) == value for name, value in (wanted or {}).items())
