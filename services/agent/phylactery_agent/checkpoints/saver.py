"""Checkpoint saver: one ordered writer with group commit, a row per checkpoint, a row per changed value.

LangGraph's writes within one iteration of the event loop (a task's results and the checkpoint they lead to) share one
transaction, which concurrent writes of other threads join. The newest checkpoint is the one stored last: each thread
has its own counter, so no clock is needed. A turn passes its checkpoints to a holder, which writes them together with
the first write that depends on them and checks its lease in the same transaction: see ``held_by``.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
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


class Cover(Protocol):
    """Encryption of stored checkpoints, bound to their thread."""

    def cover(self, data: bytes, *, of: str) -> bytes:
        """Return the data encrypted."""
        ...

    def uncover(self, covered: bytes, *, of: str) -> bytes:
        """Return the data. Raise if it was altered or encrypted under another key."""
        ...


class Holder(Protocol):
    """A writer of deferred checkpoints, stored with their first dependent write under the holder's own fence."""

    def hold(self, work: Callable[[Connection, int], None], *, slot: object, kept: Any) -> None:
        """Accept a deferred write and replace the one previously held in this slot."""
        ...

    def held(self, slot: object) -> Any:
        """Return the ``kept`` value of the deferred write in a slot, or None."""
        ...

    async def flush(self) -> None:
        """Write all deferred checkpoints."""
        ...


_HOLDER: ContextVar[Holder | None] = ContextVar("phylactery_holder", default=None)
"""A context variable, because LangGraph calls the saver from tasks of its own, with arguments of its own."""
_VERSION_BITS: Final = 30
_INLINE_CHARACTERS = 200
"""Texts up to this length are stored inside the checkpoint: a separate row would take more space."""
_NO_TASK: Final = "00000000-0000-0000-0000-000000000000"
"""The task id LangGraph uses for writes that no node made."""
_RESULTS: Final = ""
"""The channel of a row with all results of a task and their channels; no channel of a graph has this name."""
_PAIR: Final = 2
_LIST_PAGE = 50
_TRIES = 50


@contextlib.contextmanager
def held_by(holder: Holder) -> Iterator[None]:
    """Pass every checkpoint made in the block, and by tasks started in it, to a holder instead of writing it at once.

    Of the deferred checkpoints of a line only the last is written: the earlier ones are steps that nothing depends on.
    The slot is a rows.Place.
    """
    token = _HOLDER.set(holder)
    try:
        yield
    finally:
        _HOLDER.reset(token)


@dataclass(frozen=True, slots=True)
class _Packed:
    """A checkpoint prepared for storage: its body, the values with separate rows, and the values it refers to."""

    body: bytes
    blobs: dict[tuple[str, str], bytes]
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A deferred checkpoint: the row, and every referenced value that is not stored yet."""

    row: Row
    blobs: dict[tuple[str, str], bytes]

    def write(self, connection: Connection, _now_us: int) -> None:
        """Store the checkpoint."""
        rows.put(connection, self.row, self.blobs)


class Checkpoints(BaseCheckpointSaver[int]):
    """The checkpoint saver, asynchronous only. Every method raises Unavailable STORE_UNAVAILABLE if the store fails.

    With keep_writes False nothing is stored between checkpoints: a task's results matter only if parallel tasks can
    fail, and a graph without parallel nodes avoids these rows. With a cover, bodies and values are stored encrypted;
    writes between checkpoints are not, so a cover requires keep_writes False.
    """

    def __init__(self, database: Database, *, keep_writes: bool = True, cover: Cover | None = None) -> None:
        if cover is not None and keep_writes:
            raise ValueError("writes between checkpoints are stored as they are; a cover requires keep_writes False")
        super().__init__(serde=PlainSerializer())
        self._database, self._keep_writes, self._cover = database, keep_writes, cover

    def get_next_version(self, current: int | None, channel: None) -> int:  # noqa: ARG002 - LangGraph's signature
        """Return a version above the current one that no other branch of the thread can have used."""
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
        packed = _covered(_pack(checkpoint, new_versions), place, self._cover)
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
        """Store a task's writes on top of a checkpoint, durably. Raise NotPlainError."""
        if not self._keep_writes:
            return
        place, checkpoint_id = _place(config), get_checkpoint_id(config) or ""
        kept = _kept(writes, task_id, task_path)
        replace = all(one.position < 0 for one in kept)
        await self._write(lambda connection: rows.put_writes(connection, place, checkpoint_id, kept, replace=replace))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the named checkpoint, or the newest; None if there is none.

        Raise NotPlainError for data that is not plain, and DataLoss if a value is missing.
        """
        place, checkpoint_id = _place(config), get_checkpoint_id(config) or ""
        holder = _HOLDER.get()
        if holder is not None and holder.held(place) is not None:
            await holder.flush()
        # Most runs start without a checkpoint: the server answers that in one query, outside any transaction.
        found = await self._database.read_quickly(
            lambda connection: rows.find(connection, place, checkpoint_id), one=True
        )
        if found is None:
            return None
        return await self._database.read_quickly(
            lambda connection: _find(connection, place, checkpoint_id, self._cover)
        )

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, newest first, whose metadata matches the filter."""
        named = (config or {}).get("configurable", {})
        thread_id, namespace = named.get("thread_id"), named.get("checkpoint_ns")
        below = await self._sequence_of(thread_id, namespace, before)
        listing = Listing(thread_id, namespace, named.get("checkpoint_id"), below)
        after: Row | None = None
        answered = 0
        while limit is None or answered < limit:
            page = partial(_list, listing=listing, after=after, cover=self._cover)
            found = await self._database.read(page)
            for row, one in found:
                if answered != limit and _fits(one.metadata, filter):
                    answered += 1
                    yield one
                after = row
            if len(found) < _LIST_PAGE:
                return

    async def _sequence_of(self, thread_id: str | None, namespace: str | None, before: RunnableConfig | None) -> int:
        """Return the sequence of the checkpoint that the listed ones must precede."""
        named = (before or {}).get("configurable", {})
        checkpoint_id = named.get("checkpoint_id")
        if not checkpoint_id:
            return NEWEST
        place = Place(named.get("thread_id") or thread_id or "", named.get("checkpoint_ns") or namespace or "")
        row = await self._database.read_quickly(lambda connection: rows.find(connection, place, checkpoint_id))
        return 0 if row is None else row.sequence

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread."""
        await self.forget(thread_id)

    async def forget(self, thread_id: str) -> int:
        """Delete everything of a thread, and return the number of its checkpoints."""
        return await self._write(lambda connection: rows.delete_thread(connection, thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of some runs; values shared with later checkpoints stay."""
        await self._write(lambda connection: rows.delete_runs(connection, run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy everything of a thread to another, whose previous content is deleted first."""

        def work(connection: Connection) -> None:
            if source_thread_id != target_thread_id:
                rows.delete_thread(connection, target_thread_id)
                rows.copy_thread(connection, source_thread_id, target_thread_id)

        await self._write(work)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete what threads no longer need: all but the newest of each line, or everything with strategy "delete".

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
                    rows.keep_only(connection, place, newest, _body(newest, self._cover)["blobs"])

        await self._write(work)

    async def _write(self, work: Callable[[Connection], T]) -> T:
        for _ in range(_TRIES):
            # Another process may take the thread's next sequence at the same moment; the next try sees its row.
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
    """Return the rows of a task's writes: one for its results, which are written once, and one per special value.

    Writes without a task are repeated with a growing list, and stored ones stay: one row each.
    """
    special = any(channel in WRITES_IDX_MAP for channel, _ in writes)
    if writes and not special and task_id != _NO_TASK:
        return [Write(task_id, 0, task_path, _RESULTS, pack(list(writes)))]
    return [
        Write(task_id, WRITES_IDX_MAP.get(channel, number), task_path, channel, pack(value))
        for number, (channel, value) in enumerate(writes)
    ]


def _values_of(write: Write) -> list[tuple[str, str, Any]]:
    """Return task, channel and value of the entries in a row of writes."""
    value = unpack(write.body)
    if write.channel != _RESULTS:
        return [(write.task_id, write.channel, value)]
    if not isinstance(value, list) or not all(isinstance(one, list) and len(one) == _PAIR for one in value):
        raise NotPlainError("what a task wrote is damaged")
    return [(write.task_id, channel, one) for channel, one in value]


def _small(value: Any) -> bool:
    """Return True if a value is stored in the checkpoint itself; deterministic for a value."""
    kind = type(value)
    if kind is str or kind is bytes:
        return len(value) <= _INLINE_CHARACTERS
    return value is None or kind in {bool, int, float} or (kind in {list, dict, tuple} and not value)


def _pack(checkpoint: Checkpoint, new_versions: ChannelVersions) -> _Packed:
    """Pack a checkpoint: small values inline, and of the others only the new ones.

    A value whose version is not new was stored with the checkpoint that introduced it.
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


def _covered(packed: _Packed, place: Place, cover: Cover | None) -> _Packed:
    if cover is None:
        return packed
    blobs = {key: cover.cover(blob, of=place.thread_id) for key, blob in packed.blobs.items()}
    return _Packed(cover.cover(packed.body, of=place.thread_id), blobs, packed.names)


def _uncovered(data: bytes, place: Place, cover: Cover | None) -> bytes:
    return data if cover is None else cover.uncover(data, of=place.thread_id)


def _hold(holder: Holder, row: Row, packed: _Packed) -> None:
    """Pass a checkpoint to a holder, with the values it still refers to from the deferred one it replaces."""
    before: _Waiting | None = holder.held(row.place)
    waiting = _Waiting(row, packed.blobs)
    if before is not None:
        both = before.blobs | packed.blobs
        named = {key: body for key, body in both.items() if packed.names.get(key[0]) == key[1]}
        waiting = _Waiting(replace(row, parent_id=before.row.parent_id), named)
    holder.hold(waiting.write, slot=row.place, kept=waiting)


def _body(row: Row, cover: Cover | None) -> dict[str, Any]:
    body = unpack(_uncovered(row.body, row.place, cover))
    if not isinstance(body, dict) or not {"checkpoint", "blobs"} <= body.keys():
        raise NotPlainError("a checkpoint is damaged")
    return body


def _find(connection: Connection, place: Place, checkpoint_id: str, cover: Cover | None) -> CheckpointTuple | None:
    row = rows.find(connection, place, checkpoint_id)
    return None if row is None else _tuple(connection, row, cover)


def _tuple(connection: Connection, row: Row, cover: Cover | None) -> CheckpointTuple:
    """Reassemble a checkpoint."""
    body = _body(row, cover)
    checkpoint, wanted = body["checkpoint"], body["blobs"]
    blobs = rows.blobs_of(connection, row.place, wanted)
    missing = wanted.keys() - blobs.keys()
    if missing:
        raise DataLoss(
            "INTERNAL",
            f"the values of {len(missing)} channels of a stored run are missing: restore a backup of the database",
        )
    checkpoint["channel_values"] |= {
        channel: unpack(_uncovered(blob, row.place, cover)) for channel, blob in blobs.items()
    }
    return CheckpointTuple(
        config=_config(row.place, row.checkpoint_id),
        checkpoint=checkpoint,
        metadata=unpack(row.metadata),
        parent_config=_config(row.place, row.parent_id) if row.parent_id else None,
        pending_writes=[
            value for one in rows.writes_of(connection, row.place, row.checkpoint_id) for value in _values_of(one)
        ],
    )


def _list(
    connection: Connection, listing: Listing, after: Row | None, cover: Cover | None
) -> list[tuple[Row, CheckpointTuple]]:
    return [(row, _tuple(connection, row, cover)) for row in rows.page(connection, listing, after, _LIST_PAGE)]


def _fits(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(metadata.get(name) == value for name, value in (wanted or {}).items())
