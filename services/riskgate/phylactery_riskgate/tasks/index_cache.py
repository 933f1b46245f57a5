"""Index cache of tasks: the current index of a task and of those it continues.

The database is authoritative: the number of a task's pieces is read each time, so what another process received a
moment ago counts here. An index built for the same number is cached in memory, within bounds, and extended by new
pieces.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Generic, TypeVar

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import DataLoss, NotFound
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crypto import hmac_sha256, keyed_hash
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.domain.intent.facts import IndexReader
from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.packing import unpacked
from phylactery_riskgate.domain.intent.said import Message
from phylactery_riskgate.domain.intent.understood import Uses, task_of
from phylactery_riskgate.domain.intent.words import Piece
from phylactery_riskgate.domain.model import BoundCall, CatalogTool
from phylactery_riskgate.store import asks as ask_rows
from phylactery_riskgate.store import tasks as rows
from phylactery_riskgate.store.tasks import Task
from phylactery_riskgate.tasks.retractions import TakenBack

_log = get_logger("tasks")

_SEALING, _HASHING = "phylactery-task-pieces-v1", "phylactery-task-hashes-v1"


class TaskVault:
    """Encryption of a task's pieces, and the keyed hashes that detect repeated input."""

    def __init__(self, data_key: bytes) -> None:
        """Derive both keys from the data key."""
        self._vault = Vault(hmac_sha256(data_key, _SEALING.encode()))
        self._key = hmac_sha256(data_key, _HASHING.encode())

    def seal(self, task: Task, number: int, bytes_: bytes) -> bytes:
        """Return packed bytes, sealed for their place."""
        return self._vault.seal(bytes_, _place(task, number))

    def open(self, task: Task, number: int, sealed: bytes) -> Piece:
        """Return the piece. Raise DataLoss INTERNAL if it was altered, moved, or sealed under another key."""
        try:
            return unpacked(self._vault.open(sealed, _place(task, number)))
        except (DataLoss, ValueError):
            raise unreadable(task) from None

    def hash(self, *parts: str) -> str:
        """Return a keyed hash of texts."""
        written = [part.encode() for part in parts]
        # so that different lists of texts never have the same encoding
        sizes = ",".join(str(len(part)) for part in written)
        return keyed_hash(self._key, b"\n".join([sizes.encode(), *written]))


def unreadable(task: Task) -> DataLoss:
    """Return the error for an unreadable task: nothing is decided with what is left of it."""
    return DataLoss(
        "INTERNAL",
        f"the data of task '{task.id}' cannot be decrypted: it was altered, or written with another data key or "
        f"version; begin another task",
    )


def _place(task: Task, number: int) -> str:
    return f"{task.tenant}/{task.id}/{number}"


MAX_CHAIN = 10
"""Maximum length of a chain: the named task and those it continues."""
_KEEP_BYTES = 64 * 1024 * 1024
"""Size limit in bytes of unpacked pieces; the index built from them is a few times larger."""
_SHORT_CHARACTERS, _READ_BYTES = 1_000, 128
"""A message up to this length, read, is of the size of an index. A longer one counts so many bytes a character."""
_KEEP_SECONDS = 600
"""An index unused for this long is dropped, so that data erased elsewhere does not remain in memory."""
_FEW_PIECES, _FEW_BYTES = 2, 32 * 1024
"""Number and size of pieces that are added in about the time a thread switch takes."""

_Key = tuple[tuple[str, int], ...]


T = TypeVar("T")


@dataclass(slots=True)
class _Kept(Generic[T]):
    """An index, or the reading of a message, and the tasks with their numbers of pieces that it was built from."""

    key: _Key
    value: T
    size: int
    used_us: int


class _Memory(Generic[T]):
    """The thread-safe cache of this process's indexes, or of its readings of messages.

    Room is made at the tenant that has the most in it, so that none loses its indexes because another one works.
    """

    def __init__(self) -> None:
        self._kept: dict[str, OrderedDict[str, _Kept[T]]] = {}
        """By tenant, the least recently used first."""
        self._tenants: dict[str, str] = {}
        """By task."""
        self._sizes: Counter[str] = Counter()
        self._lock = threading.Lock()

    def find(self, task_id: str, now_us: int) -> _Kept[T] | None:
        """Return the last index built for a task."""
        with self._lock:
            tenant = self._tenants.get(task_id)
            if tenant is None:
                return None
            kept = self._kept[tenant][task_id]
            kept.used_us = now_us
            self._kept[tenant].move_to_end(task_id)
            return kept

    def put(self, tenant: str, task_id: str, kept: _Kept[T]) -> None:
        """Cache an index, and evict others if there is no room."""
        with self._lock:
            self._drop(task_id)
            self._kept.setdefault(tenant, OrderedDict())[task_id] = kept
            self._tenants[task_id] = tenant
            self._sizes[tenant] += kept.size
            while self._sizes.total() > _KEEP_BYTES:
                most, _ = self._sizes.most_common(1)[0]
                self._drop(next(iter(self._kept[most])))

    def forget(self, task_id: str) -> None:
        """Drop every index that a task is part of."""
        self._drop_where(lambda kept: any(task_id == one for one, _ in kept.key))

    def forget_idle(self, now_us: int) -> None:
        """Drop idle indexes, also if a clock was set back."""
        limit = _KEEP_SECONDS * MICROSECONDS
        self._drop_where(lambda kept: abs(now_us - kept.used_us) > limit)

    def _drop_where(self, over: Callable[[_Kept[T]], bool]) -> None:
        with self._lock:
            found = [name for of_tenant in self._kept.values() for name, kept in of_tenant.items() if over(kept)]
            for name in found:
                self._drop(name)

    def _drop(self, name: str) -> None:
        tenant = self._tenants.pop(name, None)
        if tenant is None:
            return
        self._sizes[tenant] -= self._kept[tenant].pop(name).size
        if not self._kept[tenant]:
            del self._kept[tenant], self._sizes[tenant]


class TaskIndexes:
    """The cache of task indexes, backed by the database."""

    def __init__(self, core: DecisionContext, vault: TaskVault) -> None:
        self._core, self._vault = core, vault
        self._memory, self._messages = _Memory[TaskIndex](), _Memory[Message]()

    async def index_for(self, who: Principal, task_id: str, thread_id: str) -> TaskIndex:
        """Return the index of a task of this user and thread, and of those it continues.

        Raise NotFound TASK_NOT_FOUND if it is unknown, ended, expired, or another user's or thread's; DataLoss INTERNAL
        if the stored data cannot be opened; and Unavailable STORE_UNAVAILABLE.
        """
        return (await self.reader_for(who, task_id, thread_id)).index

    def keep(self, tenant: str, task_id: str, message: Message) -> None:
        """Keep the reading of the message that began a task, for the index that is built of what is stored."""
        kept = _Kept(((task_id, 1),), message, _READ_BYTES * len(message.text), self._core.clock.now_us())
        self._messages.put(tenant, task_id, kept)

    async def read_ahead(self, who: Principal, task_id: str, thread_id: str) -> None:
        """Read what a task's index in memory lacks of its results, in a thread, so that no call has to wait for it.

        Of a task that is not in memory nothing is read: its first call reads everything. No answer depends on it, so an
        error is left to the call that meets it again.
        """
        if self._memory.find(task_id, self._core.clock.now_us()) is None:
            return
        try:
            index = await self.index_for(who, task_id, thread_id)
            if index.unread:
                await self._core.threads.run((who.tenant, who.subject), index.unread, index.read_ahead)
        except Exception:  # noqa: BLE001 - whatever it is, the result is stored, and a call will meet it again
            _log.warning("a result could not be read ahead", task=task_id, exc_info=True)

    async def reader_for(self, who: Principal, task_id: str, thread_id: str) -> IndexReader:
        """Return the same with the current uses and retractions of its asks."""
        read = partial(self._read, who=who, task_id=task_id, thread_id=thread_id)
        found = await self._core.database.read_quickly(partial(read, few=True))
        if found is None:
            found = await self._core.database.read(read)
        assert found is not None, "only a quick look may find it too much"
        return found

    def forget(self, task_id: str) -> None:
        """Drop the indexes of a removed task, and the reading of its message."""
        self._memory.forget(task_id)
        self._messages.forget(task_id)

    def forget_idle(self) -> None:
        """Drop indexes that were not used for a while."""
        self._memory.forget_idle(self._core.clock.now_us())
        self._messages.forget_idle(self._core.clock.now_us())

    def _read(
        self, connection: Connection, who: Principal, task_id: str, thread_id: str, *, few: bool = False
    ) -> IndexReader | None:
        """Return the reader of facts; with ``few``, None if more than a few pieces have to be read."""
        chain = _chain(connection, who, task_id, thread_id, self._core.clock.now_us())
        index = self._index(connection, chain, few=few)
        if index is None:
            return None
        named = [task.id for task in chain]
        used = ask_rows.uses_of(connection, who.tenant, who.subject, named)
        taken = TakenBack(self._core.hashes, who, ask_rows.find_retractions(connection, who.tenant, who.subject, named))

        def retracted_by(tool: CatalogTool, bound: BoundCall, ask: str) -> str:
            return taken.by(tool, bound, (task_id, task_of(ask)))

        def uses(bound: BoundCall) -> Uses:
            kept = self._core.hashes.keep(who.tenant, who.subject, bound.tool, bound.args_hash)
            return Uses(Counter(one.ask for one in used), {one.ask for one in used if one.args_hash == kept})

        return IndexReader(index, uses if used else None, retracted_by if taken.retractions else None)

    def _index(self, connection: Connection, chain: Sequence[Task], *, few: bool) -> TaskIndex | None:
        now_us, task_id = self._core.clock.now_us(), chain[-1].id
        key = tuple((task.id, task.pieces) for task in chain)
        kept = self._memory.find(task_id, now_us)
        if kept is not None and kept.key == key:
            return kept.value
        since, last, size = _since(kept, key), chain[-1], sum(task.size for task in chain)
        if few and (kept is None or since is None or last.pieces - since > _FEW_PIECES):
            return None
        if few and kept is not None and size + _read_size(kept.value) - kept.size > _FEW_BYTES:
            return None
        if kept is None or since is None:
            pieces = [piece for task in chain for piece in self._open(connection, task)]
            known = [message for task in chain for message in self._read_before(task.id, now_us)]
            index = _built(last, lambda: TaskIndex(pieces, [task.id for task in chain], known))
        else:
            more = self._open(connection, last, since)
            index = _built(last, lambda: reduce(TaskIndex.with_piece, more, kept.value))
        self._memory.put(last.tenant, task_id, _Kept(key, index, size + _read_size(index), now_us))
        return index

    def _read_before(self, task_id: str, now_us: int) -> Sequence[Message]:
        """Return the messages of a task that were read already."""
        begun, index = self._messages.find(task_id, now_us), self._memory.find(task_id, now_us)
        return (*(() if begun is None else (begun.value,)), *(() if index is None else index.value.said))

    def _open(self, connection: Connection, task: Task, since: int = 0) -> list[Piece]:
        """Return the pieces of a task from a number on. Raise DataLoss if one is missing or altered."""
        sealed = rows.sealed_pieces(connection, task, since)
        if [number for number, _ in sealed] != list(range(since, task.pieces)):
            raise unreadable(task)
        return [self._vault.open(task, number, bytes_) for number, bytes_ in sealed]


def _read_size(index: TaskIndex) -> int:
    """Return about how many bytes an index takes for the readings of long messages."""
    return _READ_BYTES * sum(len(text) for text in index.messages if len(text) > _SHORT_CHARACTERS)


def task_not_found(task_id: str) -> NotFound:
    """Return the error for a task that does not exist, has expired, or is not the caller's in this thread."""
    return NotFound(
        "TASK_NOT_FOUND",
        f"no valid task '{task_id}' of this user in this thread; begin one with the user's words",
        metadata={"task_id": task_id},
    )


def find_earlier(
    connection: Connection, who: Principal, task_id: str, thread_id: str, now_us: int, *, lock: bool = False
) -> Task | None:
    """Return a task of this user and thread that another may continue.

    With lock, raise BusyError if another replica has it locked.
    """
    task = rows.find_task(connection, who.tenant, who.subject, task_id, lock=lock)
    counts = task is not None and task.thread_id == thread_id and (task.open(now_us) or task.kept(now_us))
    return task if counts else None


def find_open(
    connection: Connection, who: Principal, task_id: str, thread_id: str, now_us: int, *, lock: bool = False
) -> Task | None:
    """Return an open task of this user and thread.

    With lock, raise BusyError if another replica has it locked.
    """
    task = rows.find_task(connection, who.tenant, who.subject, task_id, lock=lock)
    return task if task is not None and task.thread_id == thread_id and task.open(now_us) else None


def _chain(connection: Connection, who: Principal, task_id: str, thread_id: str, now_us: int) -> list[Task]:
    """Return a task and those it continues, the earliest first, up to one that is not valid any more."""
    task = find_open(connection, who, task_id, thread_id, now_us)
    if task is None:
        raise task_not_found(task_id)
    chain = [task]
    while len(chain) < MAX_CHAIN and chain[0].continues_id:
        earlier = find_earlier(connection, who, chain[0].continues_id, thread_id, now_us)
        if earlier is None:
            break
        chain.insert(0, earlier)
    return chain


def _built(task: Task, build: Callable[[], TaskIndex]) -> TaskIndex:
    """Build an index. Raise DataLoss if it contains pieces of another RiskGate version that cannot be read."""
    try:
        return build()
    except (AttributeError, LookupError, TypeError, ValueError):
        raise unreadable(task) from None


def _since(kept: _Kept[TaskIndex] | None, key: _Key) -> int | None:
    """Return the piece from which a cached index must be extended, or None if it cannot be extended."""
    if kept is None or kept.key[:-1] != key[:-1] or kept.key[-1][1] > key[-1][1]:
        return None
    return kept.key[-1][1]
